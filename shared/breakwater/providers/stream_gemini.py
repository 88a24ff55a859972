"""How does Gemini's stream read? Each event is an answer of its own; the one with a finish reason is the last."""

from __future__ import annotations

import json
from typing import Any

from breakwater.domain.reading import inside, objects, text, word
from breakwater.domain.stream_events import EffectBegun, Progress, StreamEvent, TextDelta, ToolCallDelta
from breakwater.providers.stream_assembler import Assembler, Json

_HEAD = ("modelVersion", "responseId", "promptFeedback", "usageMetadata")


class GeminiAssembler(Assembler):
    """Parts of the first candidate, in order."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[Json] = []
        self._finish: str | None = None
        self._head: dict[str, Any] = {}

    def take(self, data: Json) -> list[StreamEvent]:
        self._head |= {name: data[name] for name in _HEAD if data.get(name)}
        candidate = next(iter(objects(data.get("candidates"))), {})
        found: list[StreamEvent] = []
        for part in objects(inside(candidate, "content", "parts")):
            found += self._part(part)
            self._parts.append(part)
        self._finish = word(candidate.get("finishReason")) or self._finish
        blocked = not candidate and inside(data, "promptFeedback", "blockReason") is not None
        self.ended = self.ended or blocked or self._finish is not None
        return found or [Progress()]

    def _part(self, part: Json) -> list[StreamEvent]:
        """A call without an id is named by its place, as in an answer without stream."""
        function = part.get("functionCall")
        if isinstance(function, dict):
            index = len(self._parts)
            given = function.get("args")
            arguments = given if isinstance(given, str) else json.dumps(given if given is not None else {})
            call_id, name = word(function.get("id")) or f"call_{index}", text(function.get("name"))
            return [ToolCallDelta(index=index, id=call_id, name=name, arguments=arguments)]
        if "executableCode" in part:
            return [EffectBegun(kind="executable_code")]
        said = "" if part.get("thought") else text(part.get("text"))
        return [TextDelta(text=said)] if said else []

    def usage(self) -> dict[str, Any] | None:
        return {"usageMetadata": self._head["usageMetadata"]} if "usageMetadata" in self._head else None

    def body(self) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"parts": self._parts, "role": "model"}}
        if self._finish is not None:
            candidate["finishReason"] = self._finish
        blocked = "promptFeedback" in self._head and not self._parts and self._finish is None
        return {**self._head, "candidates": [] if blocked else [candidate]}
