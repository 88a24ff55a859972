"""Queues, payloads, control, bus, log and providers in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from breakwater.domain.errors import QueueUnavailable, SecretUnavailable
from breakwater.domain.job import Job
from breakwater.domain.obligations import Nudge, Queue
from breakwater.domain.results import Accepted, Call, Completed, Found, Outcome, Refused, Result, Running, Usage
from breakwater.domain.signals import ErrorClass, Signal
from breakwater.domain.stream_events import Resume
from tests.fakes.clock import FakeClock
from tests.fakes.stream import FakeStream, StreamScript, told

Hook = Callable[[str, str], None]


def _quiet(_name: str, _when: str) -> None:
    return None


@dataclass(frozen=True)
class Message:
    """A nudge on its way: visible from `at` on."""

    kind: str
    id: str
    at: int


@dataclass
class FakeQueues:
    """`ports.Queues`; `broken` makes every send fail, `lossy` swallows it."""

    hook: Hook = _quiet
    sent: dict[Queue, list[Message]] = field(default_factory=lambda: {queue: [] for queue in Queue})
    dlq: dict[Queue, dict[str, str]] = field(default_factory=lambda: {queue: {} for queue in Queue})
    dead: list[dict[str, Any]] = field(default_factory=list)
    broken: bool = False
    lossy: bool = False

    def nudge(self, kind: str, item_id: str, nudges: Sequence[Nudge], group: str, now: int) -> None:
        for one in nudges:
            self.hook("send", "before")
            if self.broken:
                raise QueueUnavailable
            assert one.at - now <= 900_000
            assert group
            if not self.lossy:
                self.sent[one.queue].append(Message(kind, item_id, max(one.at, now)))
            self.hook("send", "after")

    def nudge_all(self, queue: Queue, items: Sequence[tuple[str, str, str]]) -> list[int]:
        self.hook("send_batch", "before")
        if self.broken:
            return list(range(len(items)))
        self.sent[queue] += [Message(kind, item_id, 0) for kind, item_id, _ in items]
        return []

    def dead_letter(self, reference: Mapping[str, Any]) -> None:
        self.hook("dead_letter", "before")
        self.dead.append(json.loads(json.dumps(reference)))
        self.hook("dead_letter", "after")

    def drain(self, queue: Queue, limit: int) -> list[tuple[str, str]]:
        return list(self.dlq[queue].items())[:limit]

    def drained(self, queue: Queue, receipt: str) -> None:
        self.dlq[queue].pop(receipt, None)


@dataclass
class FakePayloads:
    """`ports.Payloads` in a dictionary."""

    hook: Hook = _quiet
    kept: dict[str, bytes] = field(default_factory=dict)

    def put(self, key: str, body: bytes) -> str:
        self.hook("put_object", "before")
        self.kept[key] = body
        self.hook("put_object", "after")
        return key

    def get(self, ref: str) -> bytes | None:
        return self.kept.get(ref)

    def presign(self, ref: str, seconds: int) -> str:
        return f"https://payloads.test/{ref}?expires={seconds}"


@dataclass
class FakeControl:
    """`ports.Control` with plain values."""

    owners: dict[str, dict[str, Any]] = field(default_factory=dict)
    thrown: dict[str, Any] = field(default_factory=dict)

    def api_key(self, key_hash: str) -> None:
        del key_hash

    def owner(self, owner_key: str) -> Mapping[str, Any]:
        return self.owners.get(owner_key, {})

    def switches(self) -> Mapping[str, Any]:
        return self.thrown

    def switches_now(self) -> Mapping[str, Any]:
        return self.thrown

    def put_switches(self, rev: int, switches: Mapping[str, Any]) -> bool:
        if int(self.thrown.get("rev", 0)) != rev:
            return False
        self.thrown = {**switches, "rev": rev + 1}
        return True


@dataclass
class FakeBus:
    """`ports.Bus`; remembers every event."""

    hook: Hook = _quiet
    events: list[tuple[str, str, Mapping[str, Any]]] = field(default_factory=list)

    def put(self, event_id: str, kind: str, detail: Mapping[str, Any], at: int) -> None:
        self.hook("put_event", "before")
        assert at > 0
        self.events.append((event_id, kind, detail))
        self.hook("put_event", "after")


@dataclass
class FakeLog:
    """`ports.Log`; lines as data."""

    steps: list[tuple[str, Job | None, Job]] = field(default_factory=list)
    notes: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def step(self, event: str, before: Job | None, job: Job, **more: Any) -> None:
        del more
        self.steps.append((event, before, job))

    def note(self, name: str, **more: Any) -> None:
        self.notes.append((name, more))

    def events(self) -> list[str]:
        return [event for event, _, _ in self.steps]


def answer(text: str = "hello", model: str = "gpt-5.2", **more: Any) -> Result:
    """A finished answer."""
    return Result(text=text, served_model=model, usage=Usage(input_tokens=100, output_tokens=20), **more)


def refusal(error_class: ErrorClass, status: int | None = None, **more: Any) -> Refused:
    """A provider that says no."""
    return Refused(signal=Signal(error_class=error_class, http_status=status, rule="scripted", **more))


@dataclass
class FakeProvider:
    """`ports.Provider` and `ports.Providers` at once, with a ledger of every call and scripted answers.

    Background calls are accepted; `finish` ends a provider job. `script` holds outcomes for the next submits.
    """

    hook: Hook = _quiet
    script: list[Outcome | Callable[[Call], Outcome]] = field(default_factory=list)
    fetch_script: list[Found] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    fetched: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    cancel_signal: Signal | None = None
    keyless: bool = False
    clock: FakeClock = field(default_factory=FakeClock)
    streams: list[StreamScript] = field(default_factory=list)
    streamed: list[tuple[Call, Resume | None]] = field(default_factory=list)

    def stream(self, call: Call, resume: Resume | None = None) -> FakeStream:
        """The next scripted stream; without a script a short answer."""
        self.streamed.append((call, resume))
        planned = self.streams.pop(0) if self.streams else told(answer(f"answer {len(self.streamed)}"))
        return FakeStream(planned(call, resume) if callable(planned) else planned, self.clock, self.hook)

    def for_route(self, route_key: str) -> FakeProvider:
        del route_key
        if self.keyless:
            raise SecretUnavailable
        return self

    def submit(self, call: Call) -> Outcome:
        self.hook("submit", "before")
        self.calls.append(call)
        outcome = self._next(call)
        self.hook("submit", "after")
        return outcome

    def _next(self, call: Call) -> Outcome:
        if self.script:
            planned = self.script.pop(0)
            return planned(call) if callable(planned) else planned
        if call.background:
            return self.accept(call)
        return Completed(result=answer(f"answer {len(self.calls)}"))

    def accept(self, call: Call) -> Accepted:
        """Take the work as a background job."""
        name = f"resp_{len(self.jobs) + 1}"
        self.jobs[name] = {"job_id": call.job_id, "execution_id": call.execution_id, "outcome": None}
        return Accepted(provider_job_id=name, provider_request_id=f"req_{name}")

    def finish(self, name: str, outcome: Outcome | None = None) -> None:
        """End a background job."""
        self.jobs[name]["outcome"] = outcome or Completed(result=answer(f"answer of {name}", provider_job_id=name))

    def fetch(self, provider_job_id: str) -> Found:
        self.hook("fetch", "before")
        self.fetched.append(provider_job_id)
        if self.fetch_script:
            return self.fetch_script.pop(0)
        known = self.jobs.get(provider_job_id)
        if known is None:
            return Found(outcome=refusal(ErrorClass.NOT_FOUND, 404))
        outcome = known["outcome"] or Running(provider_job_id=provider_job_id)
        self.hook("fetch", "after")
        ended = known["outcome"] is not None
        return Found(outcome=outcome, job_id=known["job_id"], execution_id=known["execution_id"], ended=ended)

    def cancel(self, provider_job_id: str) -> Signal | None:
        self.hook("cancel", "before")
        self.cancelled.append(provider_job_id)
        if self.cancel_signal is None and provider_job_id in self.jobs:
            cancelled = refusal(ErrorClass.CANCELLED, 200)
            self.jobs[provider_job_id]["outcome"] = self.jobs[provider_job_id]["outcome"] or cancelled
        self.hook("cancel", "after")
        return self.cancel_signal
