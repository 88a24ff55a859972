"""How does Anthropic's Messages API look?"""

from __future__ import annotations

import json
from collections.abc import Iterator

from . import sse
from .answers import Answer, answer_to, pieces
from .dialect import Dialect
from .directives import without_directives
from .faults import Fault
from .operation import Operation, directives_in, json_body, limit_in, model_in, text_in
from .shapes import Asked, Incoming, Json, Problem, Processed, Tool, Usage, new_id
from .world import World

_STOP = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool": "tool_use",
    "refusal": "refusal",
    "filter": "refusal",
    "error": None,
}


class CreateMessage(Operation):
    """`POST /v1/messages`, whole or as a stream."""

    def __init__(self, dialect: Dialect) -> None:
        """Serve the route `anthropic.messages`."""
        super().__init__("anthropic.messages", dialect)

    def read(self, world: World, incoming: Incoming) -> Asked:
        """Understand the body; version header and `max_tokens` are required."""
        del world
        if "anthropic-version" not in incoming.headers:
            raise Problem("bad_request", "anthropic-version: header is required")
        body = json_body(incoming)
        model, limit = model_in(body), limit_in(body, "max_tokens")
        if limit is None:
            raise Problem("bad_request", "max_tokens: Field required")
        texts = _texts(body)
        text = "\n".join((text_in(body.get("system")), *texts))
        return Asked(
            model=model,
            prompt=without_directives(texts[-1]),
            text=text,
            metadata={k: v for k, v in (body.get("metadata") or {}).items() if v is not None},
            directives=directives_in(text),
            stream=bool(body.get("stream")),
            tools=_tools(body),
            schema=((body.get("output_config") or {}).get("format") or {}).get("schema"),
            max_tokens=limit,
            body=body,
        )

    async def process(self, world: World, asked: Asked, fault: Fault | None) -> Processed:
        """Answer; a model that breaks is an error, in a stream one after its start."""
        del world, fault
        answer = answer_to(asked)
        message = _message(answer)
        if asked.stream:
            frames = sse.paced(self._frames(answer, message), asked.directives.number("pace"))
            return Processed(frames=frames, provider_id=message["id"], usage=answer.usage)
        if answer.finish == "error":
            status, body = self.dialect.refusal(Problem("server", "Internal server error"))
            return Processed(status, json.dumps(body).encode(), provider_id=message["id"])
        return Processed(body=json.dumps(message).encode(), provider_id=message["id"], usage=answer.usage)

    def _frames(self, answer: Answer, message: Json) -> Iterator[bytes]:
        started = {**message["usage"], "output_tokens": 1}
        start = {**message, "content": [], "stop_reason": None, "usage": started}
        yield sse.named({"type": "message_start", "message": start})
        yield sse.named({"type": "ping"})
        for index, block in enumerate(message["content"]):
            yield from _block_frames(index, block)
        if answer.finish == "error":
            yield self.dialect.stream_error(None)
            return
        stop = {name: message[name] for name in ("stop_reason", "stop_sequence", "stop_details")}
        yield sse.named({"type": "message_delta", "delta": stop, "usage": message["usage"]})
        yield sse.named({"type": "message_stop"})


def _texts(body: Json) -> list[str]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Problem("bad_request", "messages: at least one message is required")
    return [text_in(each.get("content")) for each in messages if isinstance(each, dict)]


def _tools(body: Json) -> tuple[Tool, ...]:
    last = body["messages"][-1].get("content")
    if isinstance(last, list) and any(block.get("type") == "tool_result" for block in last):
        return ()
    return tuple(
        Tool(str(each["name"]), each.get("input_schema") or {}) for each in body.get("tools") or () if "name" in each
    )


def _message(answer: Answer) -> Json:
    refused = _STOP[answer.finish] == "refusal"
    details = {"type": "refusal", "category": None, "explanation": None}
    return {
        "id": new_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": _content(answer),
        "stop_reason": _STOP[answer.finish],
        "stop_sequence": None,
        "stop_details": details if refused else None,
        "usage": _usage(answer.usage),
    }


def _content(answer: Answer) -> list[Json]:
    if answer.tool:
        given = json.loads(answer.tool.arguments)
        return [{"type": "tool_use", "id": new_id("toolu_"), "name": answer.tool.name, "input": given}]
    if answer.finish in {"filter", "error"}:
        return []
    return [{"type": "text", "text": answer.text}]


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input - usage.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
        "service_tier": "standard",
    }


def _block_frames(index: int, block: Json) -> Iterator[bytes]:
    if block["type"] == "text":
        empty, kind, key = {**block, "text": ""}, "text_delta", "text"
        whole = block["text"]
    else:
        empty, kind, key = {**block, "input": {}}, "input_json_delta", "partial_json"
        whole = json.dumps(block["input"])
    place = {"index": index}
    yield sse.named({"type": "content_block_start", **place, "content_block": empty})
    for piece in pieces(whole):
        delta = {"type": kind, key: piece}
        yield sse.named({"type": "content_block_delta", **place, "delta": delta})
    yield sse.named({"type": "content_block_stop", **place})
