"""What outlives every process: a clock in shared memory, a provider and a bus whose ledger is an append-only file."""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from breakwater.domain.results import Accepted, Call, Completed, Found, Outcome, Refused, Running
from breakwater.domain.signals import ErrorClass
from tests.fakes.outside import answer, refusal


class SharedClock:
    """`ports.Clock` in memory that survives whoever dies."""

    def __init__(self, now: int) -> None:
        self._memory = mmap.mmap(-1, 8)
        self.set(now)

    def set(self, now: int) -> None:
        self._memory[:8] = struct.pack("q", now)

    def now(self) -> int:
        return int(struct.unpack("q", self._memory[:8])[0])

    monotonic = now

    def advance(self, ms: int) -> None:
        self.set(self.now() + ms)


class Journal:
    """An append-only file of what the outside saw."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch()

    def write(self, kind: str, **facts: Any) -> None:
        line = json.dumps({"kind": kind, **facts}).encode() + b"\n"
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        os.write(file, line)
        os.close(file)

    def read(self, *kinds: str) -> list[dict[str, Any]]:
        lines = (json.loads(line) for line in self._path.read_bytes().splitlines())
        return [line for line in lines if line["kind"] in kinds]


@dataclass
class OutsideProvider:
    """A provider whose ledger is the journal. `plan` says how the n-th call ends; by default it succeeds."""

    journal: Journal
    clock: SharedClock
    takes: int = 20_000
    plan: tuple[tuple[str, int], ...] = ()
    during: Callable[[Call], None] = field(default=lambda _call: None)

    def for_route(self, route_key: str) -> OutsideProvider:
        del route_key
        return self

    def submit(self, call: Call) -> Outcome:
        number = len(self.journal.read("call"))
        name = f"resp_{number + 1}"
        planned = self.plan[number] if number < len(self.plan) else None
        background = call.background and planned is None
        self.journal.write(
            "call", job_id=call.job_id, execution_id=call.execution_id, name=name if background else None,
            at=self.clock.now(),
        )  # fmt: skip
        self.during(call)
        if planned is not None:
            return refusal(ErrorClass(planned[0]), planned[1])
        return Accepted(provider_job_id=name) if background else Completed(result=answer(f"answer {number + 1}"))

    def job(self, name: str) -> dict[str, Any] | None:
        return next((one for one in self.journal.read("call") if one["name"] == name), None)

    def outcome(self, name: str) -> Outcome:
        known = self.job(name)
        if known is None:
            return refusal(ErrorClass.NOT_FOUND, 404)
        stopped = next((one["at"] for one in self.journal.read("stopped") if one["name"] == name), None)
        done = known["at"] + self.takes
        if stopped is not None and stopped < done:
            return refusal(ErrorClass.CANCELLED, 200)
        if self.clock.now() >= done:
            return Completed(result=answer(f"answer of {name}", provider_job_id=name))
        return Running(provider_job_id=name)

    def fetch(self, name: str) -> Found:
        known, outcome = self.job(name) or {}, self.outcome(name)
        ended = isinstance(outcome, Completed | Refused) and bool(known)
        return Found(outcome=outcome, job_id=known.get("job_id"), execution_id=known.get("execution_id"), ended=ended)

    def cancel(self, name: str) -> None:
        self.journal.write("stopped", name=name, at=self.clock.now())


@dataclass
class OutsideBus:
    """A bus whose listener is the journal."""

    journal: Journal

    def put(self, event_id: str, kind: str, detail: Any, at: int) -> None:
        del at
        self.journal.write("event", event_id=event_id, name=kind, detail=dict(detail))
