"""What may a caller ask for? The body of `POST /v1/jobs`, and what is refused before anything is stored.

The rules stand in `request_model.py`, which is what the API reference shows. Here a body that keeps them in the
plainest way is read without that model and its library, which would be a quarter of a start; every other body goes to
the model, which finds the words for what is wrong. What is read here, the model reads alike: a test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from breakwater.domain.errors import InvalidRequest
from breakwater.domain.sizes import MAX_BODY_BYTES
from breakwater.domain.states import Priority
from breakwater.domain.values import dataclass

MAX_KEY_CHARS: Final = 255
MAX_SHORT: Final = 128
MAX_URL: Final = 2_048
MAX_MESSAGES: Final = 2_000
MAX_TOOLS: Final = 128
MAX_RESULTS: Final = 10
SHORT: Final = r"[^\x00-\x1f\x7f]+"
URL: Final = r"^https?://"

_DEEPEST = 64  # what is nested deeper is left to the model
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
_short, _url = re.compile(SHORT).fullmatch, re.compile(URL).match
half_character = re.compile("[\ud800-\udfff]").search  # half a surrogate pair, which no UTF-8 can carry


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """What a caller asks for. `payload` is the input as it is stored and compared: without what was not given."""

    workflow: str
    payload: Mapping[str, Any]
    user_ref: str | None = None
    priority: Priority | None = None  # may only lower the policy's
    callback_url: str | None = None
    side_effect_target: str | None = None
    stream: bool = False

    @property
    def prompts(self) -> bool:
        """Whether it asks for media, by a prompt."""
        return "prompt" in self.payload


def parse(body: Any) -> JobRequest:
    """The request behind a JSON value; raises `InvalidRequest` naming the first wrong field, the rule and the fix."""
    if not isinstance(body, dict):
        raise InvalidRequest(
            "The body must be a JSON object.",
            field="body",
            rule="object",
            fix='send {"workflow": …, "input": …}',
        )
    if plain(body):
        given = {name: value for name, value in body.items() if name != "input" and value is not None}
        if "priority" in given:
            given["priority"] = Priority(given["priority"])
        return JobRequest(**given, payload=_payload(body["input"]))
    from breakwater.domain.request_model import read  # noqa: PLC0415 - only for what is wrong or unusual

    return read(body)


def plain(body: dict[Any, Any]) -> bool:
    """Whether a body keeps all rules with no value to convert. False says nothing: the model decides."""
    return {"workflow", "input"} <= body.keys() and _fits(body, _REQUEST)


def _payload(given: Mapping[str, Any]) -> dict[str, Any]:
    """The input in the model's order, without what is not given."""
    kept = _given(given, _INPUT)
    if "messages" in kept:
        kept["messages"] = [_given(one, _MESSAGE) for one in kept["messages"]]
    if not kept.get("parameters"):
        kept.pop("parameters", None)
    return kept


def _given(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: values[name] for name in names if values.get(name) is not None}


Check = Callable[[Any], bool]


def _fits(given: Any, checks: Mapping[str, Check]) -> bool:
    if not isinstance(given, dict):
        return False
    return all(name in checks and checks[name](value) for name, value in given.items())


def _maybe(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _text(value: Any, longest: int = MAX_BODY_BYTES) -> bool:
    """A text that can be sent: half a surrogate pair can't."""
    if not isinstance(value, str) or len(value) > longest:
        return False
    return value.isascii() or half_character(value) is None


def _is_short(value: Any) -> bool:
    return _text(value, MAX_SHORT) and _short(value) is not None


def _is_url(value: Any) -> bool:
    return _text(value, MAX_URL) and _url(value) is not None


def _json(value: Any, depth: int = 0) -> bool:
    """Any JSON value that is the same after a journey."""
    if isinstance(value, str):
        return _text(value)
    if depth > _DEEPEST:
        return False
    if isinstance(value, dict):
        return all(_text(name) and _json(one, depth + 1) for name, one in value.items())
    if isinstance(value, list):
        return all(_json(one, depth + 1) for one in value)
    return value is None or isinstance(value, int) or (isinstance(value, float) and value - value == 0)


def _object(value: Any) -> bool:
    return isinstance(value, dict) and _json(value)


def _objects(longest: int) -> Check:
    return lambda value: isinstance(value, list) and len(value) <= longest and all(_object(one) for one in value)


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and {"role", "content"} <= value.keys() and _fits(value, _MESSAGE)


def _is_input(value: Any) -> bool:
    """Either messages or a prompt, and what goes with them."""
    if not isinstance(value, dict) or (value.get("messages") is None) == (value.get("prompt") is None):
        return False
    return _fits(value, _INPUT)


_any_objects = _objects(MAX_BODY_BYTES)
_MESSAGE: Mapping[str, Check] = {
    "role": lambda value: isinstance(value, str) and value in _ROLES,
    "content": lambda value: _text(value) or _any_objects(value),
    "tool_call_id": _maybe(_text),
    "tool_calls": _maybe(_any_objects),
}
_INPUT: Mapping[str, Check] = {
    "messages": _maybe(
        lambda value: isinstance(value, list) and 0 < len(value) <= MAX_MESSAGES and all(map(_is_message, value))
    ),
    "prompt": _maybe(lambda value: _text(value) and value != ""),
    "instructions": _maybe(_text),
    "parameters": _object,
    "json_schema": _maybe(_object),
    "tools": _maybe(_objects(MAX_TOOLS)),
    "size": _maybe(_text),
    "n": _maybe(lambda value: type(value) is int and 1 <= value <= MAX_RESULTS),
}
_REQUEST: Mapping[str, Check] = {
    "workflow": _is_short,
    "input": _is_input,
    "user_ref": _maybe(_is_short),
    "priority": _maybe(lambda value: isinstance(value, str) and value in set(Priority)),
    "callback_url": _maybe(_is_url),
    "side_effect_target": _maybe(_is_short),
    "stream": lambda value: isinstance(value, bool),
}


def idempotency_key(raw: str | None) -> str | None:
    """The caller's key, None when absent or blank; raises `InvalidRequest` for one that can't be a key."""
    key = (raw or "").strip()
    if not key:
        return None
    if len(key) > MAX_KEY_CHARS or any(not one.isprintable() for one in key):
        raise InvalidRequest(
            "The idempotency key can't be used.",
            field="Idempotency-Key",
            rule="length_and_characters",
            fix=f"use 1 to {MAX_KEY_CHARS} printable characters, for example a UUID",
        )
    return key
