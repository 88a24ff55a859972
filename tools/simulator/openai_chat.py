"""How does chat completions look, at OpenAI and at gateways that speak its language?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Protocol

from . import sse
from .answers import Answer, answer_to, pieces
from .dialect import Dialect
from .faults import Fault
from .openai_read import read_chat
from .operation import Operation
from .shapes import Asked, Incoming, Json, Problem, Processed, Usage, new_id, now_ms
from .world import World

_FINISH = {
    "stop": "stop",
    "refusal": "stop",
    "length": "length",
    "tool": "tool_calls",
    "filter": "content_filter",
    "error": "error",
}


class Flavour(Protocol):
    """What a vendor adds to the common shape."""

    id_prefix: str
    usage_always: bool

    def head(self) -> Json:
        """Fields of every completion and every chunk."""

    def usage(self, answer: Answer) -> Json:
        """Fields of the usage."""

    def choice(self, finish: str | None) -> Json:
        """Fields of a choice."""

    def opening(self) -> tuple[bytes, ...]:
        """What a stream sends before its first chunk."""


class PlainFlavour:
    """OpenAI's own."""

    id_prefix = "chatcmpl-"
    usage_always = False

    def head(self) -> Json:
        """Name the tier."""
        return {"service_tier": "default", "system_fingerprint": "fp_simulated"}

    def usage(self, answer: Answer) -> Json:
        """Add nothing."""
        del answer
        return {}

    def choice(self, finish: str | None) -> Json:
        """There is room for log probabilities."""
        del finish
        return {"logprobs": None}

    def opening(self) -> tuple[bytes, ...]:
        """Start at once."""
        return ()


class ChatCompletion(Operation):
    """`POST /chat/completions`, whole or as a stream."""

    def __init__(self, route: str, dialect: Dialect, flavour: Flavour) -> None:
        """Serve a route in a vendor's flavour."""
        super().__init__(route, dialect)
        self._flavour = flavour

    def read(self, world: World, incoming: Incoming) -> Asked:
        """Understand the body."""
        del world
        return read_chat(incoming)

    async def process(self, world: World, asked: Asked, fault: Fault | None) -> Processed:
        """Answer; a model that breaks is an error, in a stream one after its start."""
        del world, fault
        answer = answer_to(asked)
        head: Json = {"id": new_id(self._flavour.id_prefix), "created": now_ms() // 1000}
        head |= {"model": answer.model, **self._flavour.head()}
        if asked.stream:
            frames = sse.paced(self._frames(asked, answer, head), asked.directives.number("pace"))
            return Processed(frames=frames, provider_id=head["id"], usage=answer.usage)
        if answer.finish == "error":
            status, body = self.dialect.refusal(Problem("server", "The model broke (simulated)."))
            return Processed(status, json.dumps(body).encode(), provider_id=head["id"])
        body = self._completion(answer, head)
        return Processed(body=json.dumps(body).encode(), provider_id=head["id"], usage=answer.usage)

    def _completion(self, answer: Answer, head: Json) -> Json:
        finish = _FINISH[answer.finish]
        choice = {
            "index": 0,
            "message": _message(answer),
            "finish_reason": finish,
            **self._flavour.choice(finish),
        }
        return {
            **head,
            "object": "chat.completion",
            "choices": [choice],
            "usage": self._usage(answer),
        }

    def _frames(self, asked: Asked, answer: Answer, head: Json) -> Iterator[bytes]:
        yield from self._flavour.opening()
        for delta in _deltas(answer):
            yield self._chunk(head, delta)
        if answer.finish == "error":
            yield self.dialect.stream_error(None)
            return
        yield self._chunk(head, {}, _FINISH[answer.finish])
        wanted = (asked.body.get("stream_options") or {}).get("include_usage")
        if wanted or self._flavour.usage_always:
            usage = {"choices": [], "usage": self._usage(answer)}
            yield sse.data({**head, "object": "chat.completion.chunk", **usage})
        yield sse.DONE

    def _chunk(self, head: Json, delta: Json, finish: str | None = None) -> bytes:
        choice = {
            "index": 0,
            "delta": delta,
            "finish_reason": finish,
            **self._flavour.choice(finish),
        }
        return sse.data({**head, "object": "chat.completion.chunk", "choices": [choice]})

    def _usage(self, answer: Answer) -> Json:
        return {**usage_of(answer.usage), **self._flavour.usage(answer)}


def usage_of(usage: Usage) -> Json:
    """Write token counts the way chat does."""
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0},
    }


def _message(answer: Answer) -> Json:
    refused = answer.finish == "refusal"
    message: Json = {
        "role": "assistant",
        "content": None if refused or answer.tool else answer.text,
        "refusal": answer.text if refused else None,
    }
    if answer.tool:
        message["tool_calls"] = [_tool_call(answer, answer.tool.arguments)]
    return message


def _tool_call(answer: Answer, arguments: str) -> Json:
    name = answer.tool.name if answer.tool else ""
    function = {"name": name, "arguments": arguments}
    return {"id": f"call_{name}", "type": "function", "function": function}


def _deltas(answer: Answer) -> Iterator[Json]:
    yield {"role": "assistant", "content": None if answer.tool else "", "refusal": None}
    if answer.tool:
        yield {"tool_calls": [{"index": 0, **_tool_call(answer, "")}]}
        for piece in pieces(answer.tool.arguments):
            yield {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}
        return
    key = "refusal" if answer.finish == "refusal" else "content"
    for piece in pieces(answer.text):
        yield {key: piece}
