"""How does the OpenAI Responses API write a response, and the events of its stream?"""

from __future__ import annotations

from .answers import Answer, pieces
from .responses_store import Record
from .shapes import Json, Usage


def response_object(record: Record) -> Json:
    """Write a response as it stands; it has output and usage only once it ended with some."""
    body = record.asked.body
    said = record.status in {"completed", "incomplete"}
    completed = record.completed_ms
    return {
        "id": record.id,
        "object": "response",
        "created_at": record.created_ms // 1000,
        "status": record.status,
        "background": record.asked.background,
        "completed_at": None if completed is None else completed // 1000,
        "error": record.error,
        "incomplete_details": record.incomplete_details,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "metadata": dict(record.asked.metadata),
        "model": record.answer.model,
        "output": output_of(record) if said else [],
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": body.get("previous_response_id"),
        "reasoning": body.get("reasoning", {"effort": None, "summary": None}),
        "service_tier": body.get("service_tier", "default"),
        "store": body.get("store", True),
        "temperature": body.get("temperature", 1.0),
        "text": body.get("text", {"format": {"type": "text"}}),
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools", []),
        "top_p": body.get("top_p", 1.0),
        "truncation": body.get("truncation", "disabled"),
        "usage": _usage(record.answer.usage) if said else None,
        "user": body.get("user"),
    }


def output_of(record: Record) -> list[Json]:
    """List the output items: reasoning first, where there was some."""
    if record.incomplete_details == {"reason": "content_filter"}:
        return []
    whole = record.status == "completed"
    thought = [_reasoning(record)] if record.answer.usage.reasoning else []
    return [*thought, _item(record, "completed" if whole else "incomplete", filled=True)]


def events_of(record: Record, end: Json) -> list[Json]:
    """Write every event of a stream that ends in `end`, a response object."""
    start = {**end, "output": [], "usage": None, "error": None, "incomplete_details": None}
    start["completed_at"] = None
    first = "queued" if record.asked.background else "in_progress"
    events = [{"type": "response.created", "response": {**start, "status": first}}]
    if record.asked.background:
        events.append({"type": "response.queued", "response": {**start, "status": "queued"}})
    running = {**start, "status": "in_progress"}
    events.append({"type": "response.in_progress", "response": running})
    events.extend(_item_events(record, end))
    events.append({"type": f"response.{end['status']}", "response": end})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _item_events(record: Record, end: Json) -> list[Json]:
    events: list[Json] = []
    for index, item in enumerate(end["output"]):
        place = {"output_index": index}
        begun = item if item["type"] == "reasoning" else _item(record, "in_progress", filled=False)
        begun = {**begun, "id": item["id"]}
        events.append({"type": "response.output_item.added", **place, "item": begun})
        if item["type"] != "reasoning":
            inside = {**place, "item_id": item["id"]}
            events.extend(_inside(record.answer, item, inside))
        events.append({"type": "response.output_item.done", **place, "item": item})
    return events


def _inside(answer: Answer, item: Json, inside: Json) -> list[Json]:
    if answer.tool:
        kind, done = "response.function_call_arguments", {"arguments": answer.tool.arguments}
        named = {**done, "name": answer.tool.name}
        return [*_deltas(kind, answer.tool.arguments, inside), {"type": f"{kind}.done", **inside} | named]
    part = item["content"][0]
    inside = {**inside, "content_index": 0}
    refused = part["type"] == "refusal"
    kind, key = ("response.refusal", "refusal") if refused else ("response.output_text", "text")
    more: Json = {} if refused else {"logprobs": []}
    return [
        {"type": "response.content_part.added", **inside, "part": {**part, key: ""}},
        *_deltas(kind, part[key], {**inside, **more}),
        {"type": f"{kind}.done", **inside, **more, key: part[key]},
        {"type": "response.content_part.done", **inside, "part": part},
    ]


def _deltas(kind: str, text: str, inside: Json) -> list[Json]:
    return [{"type": f"{kind}.delta", **inside, "delta": piece} for piece in pieces(text)]


def _reasoning(record: Record) -> Json:
    return {"type": "reasoning", "id": f"rs_{record.id[5:]}", "summary": []}


def _item(record: Record, status: str, *, filled: bool) -> Json:
    answer = record.answer
    if answer.tool:
        return {
            "type": "function_call",
            "id": f"fc_{record.id[5:]}",
            "call_id": f"call_{record.id[5:]}",
            "name": answer.tool.name,
            "arguments": answer.tool.arguments if filled else "",
            "status": status,
        }
    return {
        "type": "message",
        "id": f"msg_{record.id[5:]}",
        "role": "assistant",
        "status": status,
        "content": [_content(answer)] if filled else [],
    }


def _content(answer: Answer) -> Json:
    if answer.finish == "refusal":
        return {"type": "refusal", "refusal": answer.text}
    return {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total,
    }
