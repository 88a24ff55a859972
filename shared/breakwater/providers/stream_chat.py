"""How does a stream of chat completions read?

A chunk with a `finish_reason` is the model's last word; usage and `[DONE]` may follow. Some compatible servers end
with `[DONE]` and no reason at all: that is a stop.
"""

from __future__ import annotations

import json
from typing import Any

from breakwater.domain.reading import inside, lines, objects, text, word
from breakwater.domain.stream_events import StreamEvent, TextDelta, ToolCallDelta
from breakwater.providers.stream_assembler import Assembler, Json


class ChatAssembler(Assembler):
    """Deltas of the first choice."""

    def __init__(self) -> None:
        super().__init__()
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._images: list[Any] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._places: dict[int, int] = {}  # by the index that a piece names
        self._finish: str | None = None
        self._head: dict[str, Any] = {}

    def take(self, data: Json) -> list[StreamEvent]:
        named = {name: data[name] for name in ("id", "model", "provider", "usage") if data.get(name)}
        self._head |= named
        choice = next((one for one in objects(data.get("choices")) if one.get("index") in (0, None)), None)
        if choice is None:
            return []
        delta = choice.get("delta")
        found = [*self._said(delta), *self._called(delta)]
        self._images += objects(inside(delta, "images"))
        if reason := word(choice.get("finish_reason")):
            self._finish, self.ended = reason, True
        return found

    def _said(self, delta: Any) -> list[StreamEvent]:
        content = inside(delta, "content")
        said = content if isinstance(content, str) else lines(part.get("text") for part in objects(content))
        refusal = text(inside(delta, "refusal"))
        self._text.append(said)
        self._refusal.append(refusal)
        return [TextDelta(text=piece) for piece in (said, refusal) if piece]

    def _called(self, delta: Any) -> list[StreamEvent]:
        found: list[StreamEvent] = []
        for number, one in enumerate(objects(inside(delta, "tool_calls"))):
            place = one.get("index")
            index = self._place(place if isinstance(place, int) else number, one)
            call = self._calls.setdefault(index, {"id": "", "name": "", "arguments": ""})
            call_id = "" if call["id"] else text(one.get("id"))
            name = "" if call["name"] else text(inside(one, "function", "name"))
            piece = text(inside(one, "function", "arguments"))
            call |= {"id": call["id"] or call_id, "name": call["name"] or name, "arguments": call["arguments"] + piece}
            if call_id or name or piece:
                found.append(ToolCallDelta(index=index, id=call_id, name=name, arguments=piece))
        return found

    def _place(self, told: int, one: Json) -> int:
        """Which call a piece belongs to. Some servers give all the same index, or none: a new name is a new call."""
        place = self._places.get(told)
        known = self._calls.get(place, {}) if place is not None else {}
        call_id, name = text(one.get("id")), text(inside(one, "function", "name"))
        another = bool(call_id and name and known.get("id") and known["id"] != call_id)
        if place is None or another:
            place = told if told not in self._calls else max(self._calls) + 1
            self._places[told] = place
        return place

    def done(self) -> bool:
        """Half a call of a tool is never taken for a whole one."""
        return self.ended or all(_whole(call["arguments"]) for call in self._calls.values())

    def usage(self) -> dict[str, Any] | None:
        return {"usage": self._head["usage"]} if "usage" in self._head else None

    def body(self) -> dict[str, Any]:
        message = {
            "content": "".join(self._text),
            "refusal": "".join(self._refusal),
            "images": self._images,
            "tool_calls": [_function(call) for _, call in sorted(self._calls.items())],
        }
        return {**self._head, "choices": [{"index": 0, "message": message, "finish_reason": self._finish}]}


def _function(call: Json) -> dict[str, Any]:
    return {"id": call["id"], "function": {"name": call["name"], "arguments": call["arguments"]}}


def _whole(arguments: str) -> bool:
    try:
        json.loads(arguments)
    except (ValueError, RecursionError):
        return False
    return True
