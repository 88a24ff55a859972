"""How are chat completions asked and read, at OpenAI and at gateways that speak its language?

Any base URL. A gateway answers 200 before it knows whether its upstream will: what it says about itself is kept as
evidence, and an error inside the answer is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from breakwater.domain.reading import count, inside, lines, objects, text, tool_call, word
from breakwater.domain.results import Call, Result, Usage
from breakwater.domain.rules.endings import finish_reason
from breakwater.domain.signals import Reply
from breakwater.providers.base import Json
from breakwater.providers.conversation import Part, Turn, instructions_of, parameters_of, schema_of, turns_of
from breakwater.providers.evidence import gateway_evidence, reported_cost
from breakwater.providers.openai_base import OpenAIAdapter
from breakwater.providers.request import Request, in_header, post
from breakwater.providers.tools import Tool, tool_choice_of, tools_of

_DATA_URL = "data:"


class OpenAIChat(OpenAIAdapter):
    """`POST /chat/completions` at OpenAI."""

    names: Mapping[str, str] = {"max_output_tokens": "max_completion_tokens"}

    def request(self, call: Call) -> Request:
        payload = call.payload
        messages = [_message(turn) for turn in turns_of(payload)]
        if instructions := instructions_of(payload):
            messages.insert(0, {"role": "system", "content": instructions})
        body: dict[str, Any] = {**parameters_of(payload, self.names), "model": call.model, "messages": messages}
        if tools := tools_of(payload):
            body["tools"] = [_tool(tool) for tool in tools]
        if (choice := tool_choice_of(payload)) is not None:
            body["tool_choice"] = {"type": "function", "function": choice} if isinstance(choice, dict) else choice
        if schema := schema_of(payload):
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", **schema}}
        return post("/chat/completions", body, dict.fromkeys(self.id_headers, in_header(call.execution_id)))

    def read(self, body: Json, headers: Mapping[str, str]) -> Result:
        del headers
        choice = next(iter(objects(body.get("choices"))), {})
        message = choice.get("message")
        calls = tuple(_call(call) for call in _calls_of(message))
        media = tuple(_images(inside(message, "images")))
        said = _said(inside(message, "content")) or text(choice.get("text"))
        refusal = text(inside(message, "refusal"))
        return Result(
            text=said or refusal,
            tool_calls=calls,
            media=media,
            finish_reason=_finish(choice, calls, refused=bool(refusal and not said)),
            usage=_usage(body.get("usage"), len(media)),
            served_model=word(body.get("model")),
        )


class GatewayChat(OpenAIChat):
    """The same API at a gateway."""

    provider = "gateway"
    default_url = None
    id_headers = ("X-Client-Request-Id", "Idempotency-Key")
    names: Mapping[str, str] = {"max_output_tokens": "max_tokens"}  # which more of them understand

    def result_of(self, reply: Reply, call: Call | None) -> Result | None:
        result = super().result_of(reply, call)
        if result is None:
            return None
        requested = call.model if call else None
        evidence = gateway_evidence(result, reply.body, reply.headers, endpoint="chat", requested=requested)
        return replace(result, evidence=evidence, reported_cost_micros=reported_cost(reply.body, reply.headers))


def _message(turn: Turn) -> dict[str, Any]:
    message: dict[str, Any] = {"role": turn.role, "content": _content(turn)}
    if turn.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in turn.calls
        ]
    if turn.result_of is not None:
        message["tool_call_id"] = turn.result_of
    return message


def _content(turn: Turn) -> str | list[dict[str, Any]] | None:
    if not turn.parts:
        return None if turn.calls else ""
    if turn.role == "tool" or (len(turn.parts) == 1 and turn.parts[0].text):
        return turn.text
    return [_part(part) for part in turn.parts]


def _part(part: Part) -> dict[str, Any]:
    if part.raw is not None:
        return dict(part.raw)
    if part.is_image:
        return {"type": "image_url", "image_url": {"url": part.source}}
    return {"type": "text", "text": part.text}


def _tool(tool: Tool | Json) -> dict[str, Any]:
    if not isinstance(tool, Tool):
        return dict(tool)
    function: dict[str, Any] = {"name": tool.name, "parameters": tool.schema}
    if tool.description:
        function["description"] = tool.description
    if tool.strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def _calls_of(message: Any) -> Iterable[Json]:
    """Calls of tools; some gateways still say `function_call`, which is one call without a name of its own."""
    alone = inside(message, "function_call")
    return objects(inside(message, "tool_calls")) or ([{"function": alone}] if isinstance(alone, Mapping) else [])


def _call(call: Json) -> dict[str, Any]:
    return tool_call(call.get("id"), inside(call, "function", "name"), inside(call, "function", "arguments"))


def _said(content: Any) -> str:
    """The text of an answer; some gateways answer in parts."""
    return content if isinstance(content, str) else lines(part.get("text") for part in objects(content))


def _images(images: Any) -> list[dict[str, Any]]:
    """Images that a chat model made, as OpenRouter gives them."""
    links = [text(inside(image, "image_url", "url")) for image in objects(images)]
    return [_image(link) for link in links if link]


def _image(link: str) -> dict[str, Any]:
    if not link.startswith(_DATA_URL):
        return {"url": link}
    head, _, data = link.removeprefix(_DATA_URL).partition(",")
    return {"b64": data, "mime": head.removesuffix(";base64") or "image/png"}


def _finish(choice: Json, calls: tuple[Any, ...], *, refused: bool) -> str:
    if refused:
        return "content_filter"
    finish = finish_reason(choice.get("finish_reason"))
    return "tool_calls" if calls and finish == "stop" else finish


def _usage(usage: Any, images: int) -> Usage:
    return Usage(
        images=images,
        input_tokens=count(inside(usage, "prompt_tokens")),
        cached_tokens=count(inside(usage, "prompt_tokens_details", "cached_tokens")),
        output_tokens=count(inside(usage, "completion_tokens")),
        reasoning_tokens=count(inside(usage, "completion_tokens_details", "reasoning_tokens")),
    )
