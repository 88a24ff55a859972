"""Which responses does the provider remember, and how do they come to their end?

queued → in_progress → completed | failed | incomplete | cancelled. A response that was not asked
to run in the background is at its end when it is made. One that streams in the background reveals
its events one by one, and readers follow them from wherever they left off.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from .answers import Answer
from .shapes import Asked, Json, new_id, now_ms

RUNNING = frozenset({"queued", "in_progress"})
_REASONS = {"length": "max_output_tokens", "filter": "content_filter"}
_BROKE = {"code": "server_error", "message": "The model broke (simulated)."}


@dataclass(slots=True)
class Record:
    """One response: what was asked, what the answer will be, and how far it is."""

    asked: Asked
    answer: Answer
    status: str
    id: str = field(default_factory=lambda: new_id("resp_"))
    created_ms: int = field(default_factory=now_ms)
    completed_ms: int | None = None
    error: Json | None = None
    incomplete_details: Json | None = None
    events: list[Json] = field(default_factory=list)
    revealed: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Whether it has not come to its end."""
        return self.status in RUNNING

    @property
    def stored(self) -> bool:
        """Whether it can be fetched later: not if it was streamed in the foreground."""
        streamed_only = self.asked.stream and not self.asked.background
        return self.asked.body.get("store") is not False and not streamed_only

    def move(self, status: str) -> None:
        """Change the status and tell the readers."""
        self.status = status
        if status == "completed":
            self.completed_ms = now_ms()
        self.tell()

    def end(self, outcome: str, error: Json | None = None, reason: str | None = None) -> None:
        """Come to the end; a reason is kept for `incomplete`, an error for `failed`."""
        self.error = error if outcome == "failed" else None
        self.incomplete_details = {"reason": reason} if outcome == "incomplete" else None
        self.move(outcome)

    def reveal(self, count: int) -> None:
        """Let readers see that many events."""
        self.revealed = max(self.revealed, min(count, len(self.events)))
        self.tell()

    def tell(self) -> None:
        """Wake everybody who follows this response."""
        self.changed.set()
        self.changed = asyncio.Event()

    async def follow(self, after: int) -> AsyncIterator[Json]:
        """Yield the events above a sequence number as they appear, until the response ends."""
        position = after + 1
        while True:
            while position < self.revealed:
                yield self.events[position]
                position += 1
            if not self.running:
                return
            await self.changed.wait()


def natural_end(answer: Answer) -> tuple[str, Json | None, str | None]:
    """Return outcome, error and reason of an answer nobody scripted otherwise."""
    if answer.finish == "error":
        return "failed", _BROKE, None
    if answer.finish in _REASONS:
        return "incomplete", None, _REASONS[answer.finish]
    return "completed", None, None


class ResponseStore:
    """All responses made since the last reset, by id."""

    def __init__(self) -> None:
        """Start with none."""
        self._records: dict[str, Record] = {}

    def add(self, record: Record) -> None:
        """Remember a response."""
        self._records[record.id] = record

    def find(self, response_id: str) -> Record | None:
        """Return a response, if it was ever made."""
        return self._records.get(response_id)

    def all(self) -> list[Record]:
        """List responses in order of their making."""
        return list(self._records.values())

    def reset(self) -> None:
        """Forget them all."""
        self._records.clear()
