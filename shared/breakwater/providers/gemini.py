"""How is Gemini's generateContent asked and read?

The key travels in a header, never in the URL, which ends in logs. Parameters stand in `generationConfig` under
names of their own; a result of a tool names the function, which is looked up from the call it answers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx

from breakwater.domain.reading import count, inside, lines, objects, tool_call, word
from breakwater.domain.results import Call, Result, Usage
from breakwater.domain.rules.endings import finish_reason
from breakwater.providers import address
from breakwater.providers.base import Adapter, Json
from breakwater.providers.conversation import Part, ToolCall, Turn, joined, parameters_of, schema_of, without_system
from breakwater.providers.request import Request, in_path, post
from breakwater.providers.session_httpx import HttpxSession
from breakwater.providers.tools import Tool, tool_choice_of, tools_of

_NAMES = {
    "max_output_tokens": "maxOutputTokens",
    "top_p": "topP",
    "top_k": "topK",
    "stop": "stopSequences",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
_MODES = {"auto": "AUTO", "required": "ANY", "none": "NONE"}


class GeminiGenerateContent(Adapter):
    """`POST /v1beta/models/{model}:generateContent`."""

    provider = "gemini"

    def __init__(
        self,
        base_url: str | None,
        api_key: str,
        *,
        route_key: str,
        timeout_ms: int,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        url = address.versioned(address.checked_url(base_url, "https://generativelanguage.googleapis.com"), "v1beta")
        session = HttpxSession(url, {"x-goog-api-key": address.checked_key(api_key)}, transport)
        super().__init__(session, route_key=route_key, timeout_ms=timeout_ms)

    def request(self, call: Call) -> Request:
        payload = call.payload
        system, turns = without_system(payload)
        names = {each.id: each.name for turn in turns for each in turn.calls}
        body: dict[str, Any] = {"contents": joined((_role(turn), _parts(turn, names)) for turn in turns)}
        if system:
            body["systemInstruction"] = {"parts": [{"text": system}]}
        if config := _config(payload):
            body["generationConfig"] = config
        if tools := tools_of(payload):
            body["tools"] = _tools(tools)
        if (choice := tool_choice_of(payload)) is not None:
            body["toolConfig"] = {"functionCallingConfig": _choice(choice)}
        return post(f"/models/{in_path(call.model.removeprefix('models/'))}:generateContent", body)

    def read(self, body: Json, headers: Mapping[str, str]) -> Result:
        del headers
        candidate = next(iter(objects(body.get("candidates"))), {})
        parts = objects(inside(candidate, "content", "parts"))
        calls = tuple(_call(part, index) for index, part in enumerate(parts) if inside(part, "functionCall"))
        shown = [part for part in parts if not part.get("thought")]  # drafts are thoughts too
        media = tuple(image for part in shown if (image := _image(part.get("inlineData"))))
        blocked = inside(body, "promptFeedback", "blockReason") is not None
        finish = "content_filter" if blocked else finish_reason(candidate.get("finishReason"))
        return Result(
            text=lines(part.get("text") for part in shown),
            tool_calls=calls,
            media=media,
            finish_reason="tool_calls" if calls and finish == "stop" else finish,
            usage=_usage(body.get("usageMetadata"), sum(one["mime"].startswith("image/") for one in media)),
            served_model=word(body.get("modelVersion")),
            provider_request_id=word(body.get("responseId")),
        )


def _config(payload: Json) -> dict[str, Any]:
    config = parameters_of(payload, _NAMES)
    if isinstance(config.get("stopSequences"), str):
        config["stopSequences"] = [config["stopSequences"]]
    if schema := schema_of(payload):
        config |= {"responseMimeType": "application/json", "responseJsonSchema": schema["schema"]}
    return config


def _role(turn: Turn) -> str:
    return "model" if turn.role == "assistant" else "user"


def _parts(turn: Turn, names: Mapping[str, str]) -> list[dict[str, Any]]:
    if turn.role == "tool":
        call_id = turn.result_of or ""
        answer = {"id": call_id, "name": names.get(call_id, call_id), "response": _response(turn.text)}
        return [{"functionResponse": answer}]
    return [*(_part(part) for part in turn.parts), *(_function_call(call) for call in turn.calls)]


def _part(part: Part) -> dict[str, Any]:
    if part.raw is not None:
        return dict(part.raw)
    if part.url:
        return {"fileData": {"fileUri": part.url, "mimeType": part.mime}}
    if part.data:
        return {"inlineData": {"mimeType": part.mime, "data": part.data}}
    return {"text": part.text}


def _function_call(call: ToolCall) -> dict[str, Any]:
    part: dict[str, Any] = {"functionCall": {"id": call.id, "name": call.name, "args": call.parsed}}
    return {**part, "thoughtSignature": call.signature} if call.signature else part


def _response(text: str) -> dict[str, Any]:
    """What a tool said; this API wants an object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    return value if isinstance(value, dict) else {"result": value}


def _tools(tools: tuple[Tool | Json, ...]) -> list[dict[str, Any]]:
    functions = [_declaration(tool) for tool in tools if isinstance(tool, Tool)]
    others = [dict(tool) for tool in tools if not isinstance(tool, Tool)]
    return [*([{"functionDeclarations": functions}] if functions else []), *others]


def _declaration(tool: Tool) -> dict[str, Any]:
    said = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **said, "parametersJsonSchema": tool.schema}


def _choice(choice: Any) -> dict[str, Any]:
    if isinstance(choice, dict):
        return {"mode": "ANY", "allowedFunctionNames": [choice.get("name")]}
    return {"mode": _MODES.get(str(choice), "AUTO")}


def _call(part: Json, index: int) -> dict[str, Any]:
    function = part.get("functionCall")
    call_id = word(inside(function, "id")) or f"call_{index}"
    call = tool_call(call_id, inside(function, "name"), inside(function, "args"))
    signature = word(part.get("thoughtSignature"))
    return {**call, "signature": signature} if signature else call


def _image(data: Any) -> dict[str, Any] | None:
    content = word(inside(data, "data"))
    return {"b64": content, "mime": word(inside(data, "mimeType")) or "image/png"} if content else None


def _usage(usage: Any, images: int) -> Usage:
    """Thoughts are counted beside the answer here; for us they are part of the output."""
    thoughts = count(inside(usage, "thoughtsTokenCount"))
    return Usage(
        input_tokens=count(inside(usage, "promptTokenCount")) + count(inside(usage, "toolUsePromptTokenCount")),
        cached_tokens=count(inside(usage, "cachedContentTokenCount")),
        output_tokens=count(inside(usage, "candidatesTokenCount")) + thoughts,
        reasoning_tokens=thoughts,
        images=images,
    )
