"""How does Anthropic's stream read? Blocks that start, grow and stop; `message_stop` alone is the end.

A stop reason that is no success (a token limit, a refusal) comes before it and is an end as well.
"""

from __future__ import annotations

import json
from typing import Any

from breakwater.domain.reading import inside, text
from breakwater.domain.rules.endings import End
from breakwater.domain.rules.streams import event_ending
from breakwater.domain.stream_events import EffectBegun, Progress, StreamEvent, TextDelta, ToolCallDelta
from breakwater.providers.stream_assembler import Assembler, Json

_AT_PROVIDER = ("server_tool_use", "mcp_tool_use")


class MessagesAssembler(Assembler):
    """Content blocks by index."""

    def __init__(self) -> None:
        super().__init__()
        self._head: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[int, list[str]] = {}
        self._stop: Any = None

    def take(self, data: Json) -> list[StreamEvent]:
        kind, index = data.get("type"), data.get("index")
        place = index if isinstance(index, int) else 0
        if kind == "message_start":
            message = data.get("message")
            self._head = {"id": inside(message, "id"), "model": inside(message, "model")}
            self._count(inside(message, "usage"))
        elif kind == "content_block_start":
            return self._begun(place, data.get("content_block"))
        elif kind == "content_block_delta":
            return self._grown(place, data.get("delta"))
        elif kind == "message_delta":
            self._count(data.get("usage"))
            self._stop = inside(data, "delta", "stop_reason") or self._stop
            ending = event_ending(data)
            self.ended = ending is not None and ending.end is not End.ERROR
        elif kind == "message_stop":
            self.ended = self.closed = True
        elif kind == "ping":
            return []
        return [Progress()]

    def _count(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self._usage |= {name: value for name, value in usage.items() if value is not None}

    def _begun(self, place: int, block: Any) -> list[StreamEvent]:
        self._blocks[place] = dict(block) if isinstance(block, dict) else {}
        self._pieces[place] = [text(inside(block, "text"))]
        kind = inside(block, "type")
        if kind == "tool_use":
            return [ToolCallDelta(index=place, id=text(inside(block, "id")), name=text(inside(block, "name")))]
        if kind in _AT_PROVIDER:
            return [EffectBegun(kind=kind)]
        said = self._pieces[place][0]
        return [TextDelta(text=said)] if said else [Progress()]

    def _grown(self, place: int, delta: Any) -> list[StreamEvent]:
        said, arguments = text(inside(delta, "text")), text(inside(delta, "partial_json"))
        block = self._blocks.setdefault(place, {"type": "text"})
        self._pieces.setdefault(place, []).append(said or arguments)
        if said and block.get("type") == "text":
            return [TextDelta(text=said)]
        if arguments and block.get("type") == "tool_use":
            return [ToolCallDelta(index=place, arguments=arguments)]
        return [Progress()]

    def usage(self) -> dict[str, Any] | None:
        return {"usage": self._usage} if self._usage else None

    def body(self) -> dict[str, Any]:
        blocks = [self._block(place, block) for place, block in sorted(self._blocks.items())]
        return {**self._head, "type": "message", "content": blocks, "stop_reason": self._stop, "usage": self._usage}

    def _block(self, place: int, block: dict[str, Any]) -> dict[str, Any]:
        pieces = "".join(self._pieces.get(place, ()))
        if block.get("type") == "tool_use":
            return {**block, "input": pieces or json.dumps(block.get("input") or {})}
        return {**block, "text": pieces} if block.get("type") == "text" else block
