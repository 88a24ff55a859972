"""How does a Responses stream read? Every event has a number, and the last one carries the whole response."""

from __future__ import annotations

from typing import Any, ClassVar

from breakwater.domain.reading import inside, text, word
from breakwater.domain.stream_events import EffectBegun, Opened, Progress, StreamEvent, TextDelta, ToolCallDelta
from breakwater.providers.stream_assembler import Assembler, Json

_TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
_TEXT = frozenset({"response.output_text.delta", "response.refusal.delta"})
_SAID = frozenset({"message", "reasoning", "function_call"})


class ResponsesAssembler(Assembler):
    """`named`: the response can be read again under its id, so the id is told."""

    resumable: ClassVar[bool] = True

    def __init__(self, *, named: bool) -> None:
        super().__init__()
        self._named = named
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._response: dict[str, Any] = {}

    def take(self, data: Json) -> list[StreamEvent]:
        kind, number = text(data.get("type")), data.get("sequence_number")
        sequence = number if isinstance(number, int) and not isinstance(number, bool) else None
        if isinstance(data.get("response"), dict):
            return self._about(kind, data["response"], sequence)
        if kind in _TEXT:
            return self._said(kind, text(data.get("delta")), sequence)
        index = data.get("output_index")
        place = index if isinstance(index, int) else 0
        if kind == "response.output_item.added":
            return self._item(data.get("item"), place, sequence)
        if kind == "response.function_call_arguments.delta":
            call = self._calls.setdefault(place, {"type": "function_call", "arguments": ""})
            call["arguments"] += text(data.get("delta"))
            return [ToolCallDelta(index=place, arguments=text(data.get("delta")), sequence=sequence)]
        return [Progress(sequence=sequence)]

    def _about(self, kind: str, response: dict[str, Any], sequence: int | None) -> list[StreamEvent]:
        known = bool(self._response)
        self._response = response
        if kind in _TERMINAL:
            self.ended = self.closed = True
            return []
        name = word(response.get("id"))
        if self._named and name and not known:
            return [Opened(provider_job_id=name, sequence=sequence)]
        return [Progress(sequence=sequence)]

    def _said(self, kind: str, piece: str, sequence: int | None) -> list[StreamEvent]:
        (self._refusal if kind == "response.refusal.delta" else self._text).append(piece)
        return [TextDelta(text=piece, sequence=sequence)] if piece else [Progress(sequence=sequence)]

    def _item(self, item: Any, place: int, sequence: int | None) -> list[StreamEvent]:
        kind = text(inside(item, "type"))
        if kind == "function_call":
            name, call_id = text(inside(item, "name")), text(inside(item, "call_id")) or text(inside(item, "id"))
            self._calls[place] = {"type": "function_call", "name": name, "call_id": call_id, "arguments": ""}
            return [ToolCallDelta(index=place, id=call_id, name=name, sequence=sequence)]
        if kind.endswith("_call") and kind not in _SAID:
            return [EffectBegun(kind=kind, sequence=sequence)]
        return [Progress(sequence=sequence)]

    def body(self) -> dict[str, Any]:
        if self.closed:
            return self._response
        parts = [{"type": "output_text", "text": "".join(self._text)}] if self._text else []
        refused = [{"type": "refusal", "refusal": "".join(self._refusal)}] if self._refusal else []
        message = {"type": "message", "content": [*parts, *refused]}
        calls = [call for _, call in sorted(self._calls.items())]
        return {"model": self._response.get("model"), "output": [message, *calls]}
