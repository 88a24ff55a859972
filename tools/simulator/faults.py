"""Which scripted fault does a call meet?

Faults wait in a queue. A call takes the first one that fits its route, model and text; a stream
fault only ever meets a streaming call, one that spoils a body only a call that has one, and a
background fault only a background create. Each is spent
after `count` uses, after `for_ms`, or when it is cleared.
"""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatchcase
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from .presets import known, template
from .shapes import Asked, Json, Problem, new_id, now_ms

Kind = Literal[
    "status",
    "hang",
    "slow",
    "cut_before",
    "cut_after",
    "cut_body",
    "empty_body",
    "truncated_json",
    "stream_cut",
    "stream_stall",
    "stream_error",
    "stream_end",
    "stream_done",
    "background",
]
Outcome = Literal["completed", "failed", "incomplete", "cancelled", "queued", "in_progress"]
_AFTER_THE_WORK = {
    "slow",
    "cut_after",
    "cut_body",
    "empty_body",
    "truncated_json",
    "stream_cut",
    "stream_stall",
    "stream_error",
    "stream_end",
    "stream_done",
    "background",
}
_WHOLE_BODIES = {"cut_body", "empty_body", "truncated_json"}


class Fault(BaseModel):
    """One scripted fault: whom it meets, how often, and what happens then.

    `processed` says whether the provider does the work all the same. `retry_after` replaces the
    header (an empty text removes it), `retry_delay` the delay inside a Gemini body.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    preset: str | None = None
    kind: Kind = "status"
    route: str = "*"
    model: str | None = None
    contains: str | None = None
    count: int | None = Field(default=1, ge=1)
    for_ms: int | None = Field(default=None, ge=0)
    processed: bool | None = None

    status: int = 500
    headers: dict[str, str] = {}
    body: Any = None
    retry_after: str | None = None
    retry_delay: str | None = None

    ms: int = Field(default=600_000, ge=0)
    after_events: int = Field(default=3, ge=0)
    reset: bool = False

    outcome: Outcome = "completed"
    delay_ms: int | None = Field(default=None, ge=0)
    error: Json | None = None
    reason: Literal["max_output_tokens", "content_filter"] = "max_output_tokens"

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.preset is not None and not known(self.preset):
            message = f"unknown preset {self.preset!r}"
            raise ValueError(message)
        if self.processed is False and self.kind in _AFTER_THE_WORK:
            message = f"{self.kind} only shows once the work is done"
            raise ValueError(message)
        return self

    @property
    def does_the_work(self) -> bool:
        """Whether the provider processes the call before the fault shows."""
        return self.kind in _AFTER_THE_WORK if self.processed is None else self.processed

    @property
    def name(self) -> str:
        """What the ledger calls it."""
        return self.preset or self.kind

    def written_out(self, provider: str) -> Fault:
        """Return it with its preset filled in as this provider words it."""
        if self.preset is None:
            return self
        said = {key: getattr(self, key) for key in self.model_fields_set}
        return Fault.model_validate({**template(self.preset, provider), **said})

    def fits(self, route: str, asked: Asked) -> bool:
        """Whether a call of this route and content is one it is meant for."""
        if self.kind.startswith("stream_") and not asked.stream:
            return False
        if self.kind in _WHOLE_BODIES and asked.stream:
            return False
        if self.kind == "background" and not asked.background:
            return False
        return (
            fnmatchcase(route, self.route)
            and self.model in {None, asked.model}
            and (self.contains is None or self.contains in matchable(asked))
        )


def matchable(asked: Asked) -> str:
    """Everything `contains` looks into: prompt and metadata."""
    return "\n".join((asked.text, *asked.metadata.values()))


class Waiting:
    """A fault in the queue, and what is left of it."""

    def __init__(self, fault: Fault) -> None:
        """Start its time and its count."""
        self.id = new_id("fault_")
        self.fault = fault
        self.used = 0
        endless = fault.for_ms is not None and "count" not in fault.model_fields_set
        self._limit = None if endless else fault.count
        self._until = None if fault.for_ms is None else now_ms() + fault.for_ms

    @property
    def spent(self) -> bool:
        """Whether it will meet nobody any more."""
        counted_out = self._limit is not None and self.used >= self._limit
        return counted_out or (self._until is not None and now_ms() >= self._until)

    def as_json(self) -> Json:
        """Describe it for the control API."""
        script = self.fault.model_dump(exclude_unset=True)
        return {"id": self.id, "used": self.used, "spent": self.spent, "fault": script}


class Faults:
    """The queue of scripted faults."""

    def __init__(self) -> None:
        """Start with none."""
        self._queue: list[Waiting] = []
        self._asked_for: Counter[tuple[str, str]] = Counter()

    def add(self, fault: Fault) -> Waiting:
        """Put a fault at the end of the queue."""
        waiting = Waiting(fault)
        self._queue.append(waiting)
        return waiting

    def clear(self, fault_id: str | None = None) -> None:
        """Take out one fault, or all of them."""
        self._queue = [each for each in self._queue if fault_id not in {None, each.id}]
        if fault_id is None:
            self._asked_for.clear()

    def listed(self) -> list[Json]:
        """Describe every fault of the queue, spent ones too."""
        return [waiting.as_json() for waiting in self._queue]

    def take(self, route: str, provider: str, asked: Asked) -> Fault | None:
        """Return the fault this call meets, written out, and count it as used."""
        wished = self._wished(route, provider, asked)
        if wished is not None:
            return wished
        for waiting in self._queue:
            if waiting.spent:
                continue
            fault = waiting.fault.written_out(provider)
            if fault.fits(route, asked):
                waiting.used += 1
                return fault
        return None

    def _wished(self, route: str, provider: str, asked: Asked) -> Fault | None:
        name, _, times = (asked.directives.text("fault") or "").partition("*")
        if not name:
            return None
        if not known(name) or (times and not times.isdecimal()):
            raise Problem("bad_request", f"no such fault: [[sim:fault={name}]]")
        fault = Fault(preset=name).written_out(provider)
        key = (route, asked.text)
        if not fault.fits(route, asked) or (times and self._asked_for[key] >= int(times)):
            return None
        self._asked_for[key] += 1
        return fault
