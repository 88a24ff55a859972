"""Where in a body does a provider say what went wrong?

Bodies come in many shapes: `error` as object, text, list or not at all; a list around everything; the error inside
the first choice, inside a response, or as JSON text inside a message that a gateway wrote around it. `error_objects`
finds every object that describes the error, from the outside in, and never fails. What is generated content
(`choices[].message`, `output`, `content`) is not looked into.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

_ANSWER_KEYS = ("choices", "output", "candidates", "content", "data", "promptFeedback")
"""Keys of an answer: what stands beside them is no description of an error."""

_NOTHING = (None, "")
_PLACES = ("error", "response", "choices")
_DETAILS = (
    *("errors", "detail", "details", "metadata", "availability", "provider_specific_fields", "violations"),
    *("message", "raw"),
)
_TEXT_AS_MESSAGE = frozenset({"error", "detail"})
_JSON_IN_TEXT = frozenset({"message", "raw"})
_MOST_OBJECTS = 32
_LONGEST_TEXT = 100_000
_DECODER = json.JSONDecoder()

Object = Mapping[str, Any]


def error_objects(body: Any) -> tuple[Object, ...]:
    """Every object in the body that describes the error, outermost first."""
    found: list[Object] = []
    waiting = deque(_mappings(body))
    while waiting and len(found) < _MOST_OBJECTS:
        found.append(waiting.popleft())
        waiting.extend(_inside(found[-1]))
    return tuple(item for item in found if not is_answer(item))


def is_answer(body: Any) -> bool:
    """Whether this is an answer's own object, whose fields are content and not an error."""
    return isinstance(body, Mapping) and any(body.get(key) not in _NOTHING for key in _ANSWER_KEYS)


def parse_json(text: str) -> Any:
    """The JSON value of a text; None where it is none, or nests too deep to be read."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _inside(item: Object) -> Iterator[Object]:
    for key in _PLACES if is_answer(item) else (*_PLACES, *_DETAILS):
        yield from _at(item, key)
    if is_answer(item) and isinstance(item.get("error_type"), str):
        yield {"error_type": item["error_type"]}


def _at(item: Object, key: str) -> Iterator[Object]:
    value = item.get(key)
    if key == "choices":
        for choice in _mappings(value):
            yield from _at(choice, "error")
    elif not isinstance(value, str):
        yield from _mappings(value)
    elif key in _TEXT_AS_MESSAGE and value:
        yield {"message": value}
    elif key in _JSON_IN_TEXT:
        yield from _mappings(_json_inside(value))


def _mappings(value: Any) -> list[Object]:
    if isinstance(value, Mapping):
        return [value]
    return [item for item in value if isinstance(item, Mapping)][:_MOST_OBJECTS] if isinstance(value, list) else []


def _json_inside(text: str) -> Any:
    """The first JSON object inside a text, whatever a gateway wrote around it."""
    start = text.find("{", 0, _LONGEST_TEXT)
    if start < 0:
        return None
    found = _decoded(text, start)
    if found is None and "\\n" in text:  # written as Python writes bytes
        found = _decoded(text[start : start + _LONGEST_TEXT].replace("\\n", "\n").replace("\\'", "'"), 0)
    return found


def _decoded(text: str, start: int) -> Any:
    try:
        return _DECODER.raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None
