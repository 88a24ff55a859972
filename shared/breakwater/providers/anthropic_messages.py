"""How is Anthropic's Messages API asked and read?

System messages stand apart from the conversation, roles alternate, results of tools are the user's, and the number
of output tokens must be said. The API has no idempotency; the header we send does no harm and is there in its logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from breakwater.domain.reading import count, inside, lines, objects, tool_call, word
from breakwater.domain.results import Call, Result, Usage
from breakwater.domain.rules.endings import finish_reason
from breakwater.providers import address
from breakwater.providers.base import Adapter, Json
from breakwater.providers.conversation import Part, Turn, joined, parameters_of, schema_of, without_system
from breakwater.providers.request import Request, in_header, post
from breakwater.providers.session_httpx import HttpxSession
from breakwater.providers.tools import Tool, tool_choice_of, tools_of

_VERSION = "2026-10-21"
_MAX_TOKENS = 4_096  # where the input says nothing: the API asks for a number
_NAMES = {"max_output_tokens": "max_tokens", "stop": "stop_sequences"}
_CHOICES = {"auto": "auto", "required": "any", "none": "none"}


class AnthropicMessages(Adapter):
    """`POST /v1/messages`."""

    provider = "anthropic"

    def __init__(
        self,
        base_url: str | None,
        api_key: str,
        *,
        route_key: str,
        timeout_ms: int,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        url = address.versioned(address.checked_url(base_url, "https://api.anthropic.com"), "v1")
        headers = {"x-api-key": address.checked_key(api_key), "anthropic-version": _VERSION}
        super().__init__(HttpxSession(url, headers, transport), route_key=route_key, timeout_ms=timeout_ms)

    def request(self, call: Call) -> Request:
        payload = call.payload
        system, turns = without_system(payload)
        messages = joined((_role(turn), _blocks(turn)) for turn in turns)
        body: dict[str, Any] = {
            "max_tokens": _MAX_TOKENS,
            **_parameters(payload),
            "model": call.model,
            "messages": [{"role": message["role"], "content": message["parts"]} for message in messages],
        }
        if system:
            body["system"] = system
        if tools := tools_of(payload):
            body["tools"] = [_tool(tool) for tool in tools]
        if (choice := _tool_choice(payload)) is not None:
            body["tool_choice"] = choice
        if schema := schema_of(payload):
            beside = body.get("output_config")
            output_format = {"type": "json_schema", "schema": schema["schema"]}
            body["output_config"] = {**(beside if isinstance(beside, dict) else {}), "format": output_format}
        return post("/messages", body, {"idempotency-key": in_header(call.execution_id)})

    def read(self, body: Json, headers: Mapping[str, str]) -> Result:
        del headers
        blocks = objects(body.get("content"))
        return Result(
            text=lines(block.get("text") for block in blocks if block.get("type") == "text"),
            tool_calls=tuple(
                tool_call(block.get("id"), block.get("name"), block.get("input"))
                for block in blocks
                if block.get("type") == "tool_use"
            ),
            finish_reason=finish_reason(body.get("stop_reason")),
            usage=_usage(body.get("usage")),
            served_model=word(body.get("model")),
        )


def _parameters(payload: Json) -> dict[str, Any]:
    parameters = parameters_of(payload, _NAMES)
    parameters.pop("parallel_tool_calls", None)  # said in the tool choice
    if isinstance(parameters.get("stop_sequences"), str):
        parameters["stop_sequences"] = [parameters["stop_sequences"]]
    return parameters


def _role(turn: Turn) -> str:
    return "assistant" if turn.role == "assistant" else "user"


def _blocks(turn: Turn) -> list[dict[str, Any]]:
    if turn.role == "tool":
        return [{"type": "tool_result", "tool_use_id": turn.result_of or "", "content": turn.text}]
    calls = [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.parsed} for call in turn.calls]
    return [*(_block(part) for part in turn.parts), *calls]


def _block(part: Part) -> dict[str, Any]:
    if part.raw is not None:
        return dict(part.raw)
    if part.url:
        return {"type": "image", "source": {"type": "url", "url": part.url}}
    if part.data:
        return {"type": "image", "source": {"type": "base64", "media_type": part.mime, "data": part.data}}
    return {"type": "text", "text": part.text}


def _tool(tool: Tool | Json) -> dict[str, Any]:
    if not isinstance(tool, Tool):
        return dict(tool)
    said: dict[str, Any] = {"name": tool.name, "input_schema": tool.schema}
    if tool.description:
        said["description"] = tool.description
    if tool.strict:
        said["strict"] = True
    return said


def _tool_choice(payload: Json) -> dict[str, Any] | None:
    choice = tool_choice_of(payload)
    alone = inside(payload.get("parameters"), "parallel_tool_calls") is False
    if choice is None:
        return {"type": "auto", "disable_parallel_tool_use": True} if alone and payload.get("tools") else None
    said = {"type": "tool", **choice} if isinstance(choice, dict) else {"type": _CHOICES.get(str(choice), "auto")}
    return {**said, "disable_parallel_tool_use": True} if alone and said["type"] != "none" else said


def _usage(usage: Any) -> Usage:
    """Tokens read from and written to the cache are counted beside the input here; for us they are part of it."""
    cached = count(inside(usage, "cache_read_input_tokens"))
    written = count(inside(usage, "cache_creation_input_tokens"))
    return Usage(
        input_tokens=count(inside(usage, "input_tokens")) + cached + written,
        cached_tokens=cached,
        output_tokens=count(inside(usage, "output_tokens")),
        reasoning_tokens=count(inside(usage, "output_tokens_details", "thinking_tokens")),
    )
