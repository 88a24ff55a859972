"""How did an answer end?

A 200 is not yet a success: the answer may be cut at a token limit, filtered, failed, cancelled, still running,
empty, or an error in disguise. Bodies are told apart by shape, not by provider, since gateways speak the shapes
of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any

from breakwater.domain.values import dataclass


class End(StrEnum):
    """How an answer ended."""

    COMPLETED = "completed"
    RUNNING = "running"  # a background response that is queued or in progress
    TRUNCATED = "truncated"  # stopped at a token limit
    REFUSED = "refused"  # by a content filter or by the model
    FAILED = "failed"  # the provider says so, without a usable reason
    BROKEN = "broken"  # the model produced something the provider couldn't use
    CANCELLED = "cancelled"
    EMPTY = "empty"  # the shape of an answer, with nothing in it
    ERROR = "error"  # an error object in place of an answer
    INCOMPLETE = "incomplete"  # a stream without its terminal event
    NONE = "none"  # no shape we know


@dataclass(frozen=True, slots=True)
class Ending:
    """An end and the provider's own word for it."""

    end: End
    word: str | None = None


_STOP = ("stop", "end_turn", "stop_sequence", "eos", "eos_token", "end", "complete", "completed", "done")
_TOOLS = ("tool_calls", "tool_use", "function_call")
_LIMIT = ("length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded", "pause_turn")
_FILTER = (
    *("content_filter", "content_filtered", "safety", "refusal", "recitation", "blocklist", "prohibited_content"),
    *("spii", "language", "image_safety", "image_prohibited_content", "image_recitation"),
)
_BROKEN = ("error", "malformed_function_call", "malformed_response", "unexpected_tool_call", "no_image")

_FINISH = {
    **dict.fromkeys(_STOP, (End.COMPLETED, "stop")),
    **dict.fromkeys(_TOOLS, (End.COMPLETED, "tool_calls")),
    **dict.fromkeys(_LIMIT, (End.TRUNCATED, "length")),
    **dict.fromkeys(_FILTER, (End.REFUSED, "content_filter")),
    **dict.fromkeys(_BROKEN, (End.BROKEN, "error")),
}
"""Every provider's words for why generation stopped: how it ended, and our own word."""

_RESPONSE_STATUS = {
    "queued": End.RUNNING,
    "in_progress": End.RUNNING,
    "failed": End.FAILED,
    "cancelled": End.CANCELLED,
    "canceled": End.CANCELLED,
    "incomplete": End.TRUNCATED,
    "completed": End.COMPLETED,
}

_SILENT_BLOCKS = ("text", "thinking", "redacted_thinking")  # say nothing unless they carry text


def finish_reason(word: Any) -> str:
    """A provider's finish word as `stop`, `tool_calls`, `length`, `content_filter` or `error`; no word is a stop."""
    said = word.strip().lower() if isinstance(word, str) else ""
    return _FINISH.get(said, (End.FAILED, "error"))[1] if said else "stop"


def ending_of(body: Any) -> Ending:
    """How the answer in this body ended."""
    if not isinstance(body, Mapping):
        return Ending(End.NONE)
    if isinstance(body.get("response"), Mapping):  # an event that carries the response
        return ending_of(body["response"])
    if body.get("error") and not _is_response(body):
        return Ending(End.ERROR)
    return next((read(body) for has_shape, read in _SHAPES if has_shape(body)), Ending(End.NONE))


def first(values: Any) -> Mapping[str, Any]:
    """The first object of a list; an empty one where there is none."""
    return next(iter(objects(values)), {})


def objects(values: Any) -> Iterable[Mapping[str, Any]]:
    """The objects of a list; none where it is no list."""
    return [value for value in values if isinstance(value, Mapping)] if isinstance(values, list) else []


def _is_response(body: Mapping[str, Any]) -> bool:
    status = body.get("status")
    return isinstance(status, str) and status in _RESPONSE_STATUS and ("output" in body or "id" in body)


def _response(body: Mapping[str, Any]) -> Ending:
    end = _RESPONSE_STATUS[body["status"]]
    if end is End.COMPLETED:
        return _response_output(body.get("output"))
    details = body.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    if end is End.TRUNCATED and reason == "content_filter":
        return Ending(End.REFUSED, reason)
    return Ending(end, reason if isinstance(reason, str) else body["status"])


def _response_output(output: Any) -> Ending:
    items = [item for item in objects(output) if item.get("type") != "reasoning"]
    parts = [part for item in items for part in objects(item.get("content"))]
    if any(part.get("text") for part in parts) or any(item.get("type") != "message" for item in items):
        return Ending(End.COMPLETED)
    return Ending(End.REFUSED, "refusal") if any(part.get("refusal") for part in parts) else Ending(End.EMPTY)


def _chat(body: Mapping[str, Any]) -> Ending:
    choice = first(body.get("choices"))
    if choice.get("error"):
        return Ending(End.ERROR)
    message = choice.get("message")
    message = message if isinstance(message, Mapping) else choice
    said = any(message.get(key) for key in ("content", "text", "tool_calls", "function_call", "audio", "images"))
    if message.get("refusal") and not said:
        return Ending(End.REFUSED, "refusal")
    return _by_word(choice.get("finish_reason"), said=said)


def _anthropic(body: Mapping[str, Any]) -> Ending:
    blocks = objects(body.get("content"))
    said = any(block.get("text") or block.get("type") not in _SILENT_BLOCKS for block in blocks)
    return _by_word(body.get("stop_reason"), said=said)


def _gemini(body: Mapping[str, Any]) -> Ending:
    feedback = body.get("promptFeedback")
    if isinstance(feedback, Mapping) and feedback.get("blockReason"):
        return Ending(End.REFUSED, str(feedback["blockReason"]))
    candidate = first(body.get("candidates"))
    content = candidate.get("content")
    parts = objects(content.get("parts")) if isinstance(content, Mapping) else []
    said = any(part.get("text") or not part.keys() & {"text", "thought"} for part in parts if not part.get("thought"))
    return _by_word(candidate.get("finishReason"), said=said)


def _images(body: Mapping[str, Any]) -> Ending:
    made = any(item.get("b64_json") or item.get("url") for item in objects(body["data"]))
    return Ending(End.COMPLETED if made else End.EMPTY)


def _by_word(word: Any, *, said: bool) -> Ending:
    if not isinstance(word, str) or not word.strip():
        return Ending(End.COMPLETED if said else End.EMPTY)
    end = _FINISH.get(word.lower(), (End.FAILED, ""))[0]
    return Ending(End.EMPTY if end is End.COMPLETED and not said else end, word)


_SHAPES: tuple[tuple[Callable[[Mapping[str, Any]], bool], Callable[[Mapping[str, Any]], Ending]], ...] = (
    (_is_response, _response),
    (lambda body: isinstance(body.get("choices"), list), _chat),
    (lambda body: "stop_reason" in body or (body.get("type") == "message" and "content" in body), _anthropic),
    (lambda body: "candidates" in body or "promptFeedback" in body, _gemini),
    (lambda body: isinstance(body.get("data"), list), _images),
)
