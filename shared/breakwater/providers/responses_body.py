"""How is our input written for the Responses API, and its output read?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from breakwater.domain.reading import count, inside, lines, objects, tool_call, word
from breakwater.domain.results import Call, Result, Usage
from breakwater.domain.rules.endings import finish_reason
from breakwater.providers.conversation import Part, ToolCall, Turn, instructions_of, parameters_of, schema_of, turns_of
from breakwater.providers.tools import Tool, tool_choice_of, tools_of

Json = Mapping[str, Any]


def write(call: Call) -> dict[str, Any]:
    """The body of a create, but for how it runs. Raises `BadPayload`."""
    payload = call.payload
    body: dict[str, Any] = {
        **parameters_of(payload, {}),
        "model": call.model,
        "input": [item for turn in turns_of(payload) for item in _items(turn)],
    }
    if instructions := instructions_of(payload):
        body["instructions"] = instructions
    if tools := tools_of(payload):
        body["tools"] = [_tool(tool) for tool in tools]
    if (choice := tool_choice_of(payload)) is not None:
        body["tool_choice"] = {"type": "function", **choice} if isinstance(choice, dict) else choice
    if schema := schema_of(payload):
        beside = body.get("text")
        body["text"] = {**(beside if isinstance(beside, dict) else {}), "format": _format(schema)}
    return body


def read(body: Json) -> Result:
    """A response, as far as it goes."""
    output = objects(body.get("output"))
    parts = [part for item in output for part in objects(item.get("content"))]
    calls = tuple(
        tool_call(item.get("call_id") or item.get("id"), item.get("name"), item.get("arguments"))
        for item in output
        if item.get("type") == "function_call"
    )
    made = (item.get("result") for item in output if item.get("type") == "image_generation_call")
    images = tuple({"b64": data, "mime": "image/png"} for data in made if word(data))
    said = lines(part.get("text") for part in parts)
    refusal = lines(part.get("refusal") for part in parts)
    return Result(
        text=said or refusal,
        tool_calls=calls,
        media=images,
        finish_reason=_finish(body, calls, refused=bool(refusal and not said)),
        usage=_usage(body.get("usage"), len(images)),
        served_model=word(body.get("model")),
    )


def _items(turn: Turn) -> list[dict[str, Any]]:
    """One message as input items: calls of tools and their results are items of their own."""
    if turn.role == "tool":
        return [{"type": "function_call_output", "call_id": turn.result_of or "", "output": turn.text}]
    calls = [_call(call) for call in turn.calls]
    if not turn.parts:
        return calls or [{"role": turn.role, "content": ""}]
    return [{"role": turn.role, "content": _content(turn)}, *calls]


def _content(turn: Turn) -> str | list[dict[str, Any]]:
    if len(turn.parts) == 1 and turn.parts[0].text:
        return turn.parts[0].text
    kind = "output_text" if turn.role == "assistant" else "input_text"
    return [_part(part, kind) for part in turn.parts]


def _part(part: Part, kind: str) -> dict[str, Any]:
    if part.raw is not None:
        return dict(part.raw)
    return {"type": "input_image", "image_url": part.source} if part.is_image else {"type": kind, "text": part.text}


def _call(call: ToolCall) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}


def _tool(tool: Tool | Json) -> dict[str, Any]:
    if not isinstance(tool, Tool):
        return dict(tool)
    said = {"description": tool.description} if tool.description else {}
    # Written out: this API takes an absent `strict` for true, the others for false.
    return {"type": "function", "name": tool.name, **said, "parameters": tool.schema, "strict": tool.strict}


def _format(schema: Json) -> dict[str, Any]:
    name = word(schema.get("name")) or "answer"
    return {"type": "json_schema", "name": name, "schema": schema["schema"], "strict": bool(schema.get("strict", True))}


def _finish(body: Json, calls: Sequence[Any], *, refused: bool) -> str:
    reason = inside(body, "incomplete_details", "reason")
    if reason is not None or refused:
        return "content_filter" if refused else finish_reason(reason)
    return "tool_calls" if calls else "stop"


def _usage(usage: Any, images: int) -> Usage:
    return Usage(
        input_tokens=count(inside(usage, "input_tokens")),
        cached_tokens=count(inside(usage, "input_tokens_details", "cached_tokens")),
        output_tokens=count(inside(usage, "output_tokens")),
        reasoning_tokens=count(inside(usage, "output_tokens_details", "reasoning_tokens")),
        images=images,
    )
