"""What does the middle need from the outside? One protocol per need; the edges implement them.

Every method that talks to a service raises a subclass of `errors.Unavailable` when the service does not answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from breakwater.domain.callbacks import Notified
from breakwater.domain.job import Job, SlotRef
from breakwater.domain.obligations import Nudge, Queue
from breakwater.domain.records import ApiKey, Child, Delivery, ProviderJob, RouteState
from breakwater.domain.results import Call, Found, Outcome
from breakwater.domain.signals import Signal
from breakwater.domain.slots import Slot
from breakwater.domain.states import Lane
from breakwater.domain.stream_events import Resume, StreamEvent
from breakwater.domain.values import dataclass
from breakwater.operator_ports import DeskStore


class Provider(Protocol):
    """One provider behind one route. Provider errors never leave as exceptions: they come back as `Refused`."""

    def submit(self, call: Call) -> Outcome:
        """Send one attempt, exactly one HTTP request, and say how it ended.

        `Accepted` only where `call.background` was asked for and the provider took it.
        """
        ...

    def stream(self, call: Call, resume: Resume | None = None) -> ProviderStream:
        """Send one attempt and read its answer as it comes; or go on with a job that runs at the provider.

        Opens nothing before the first `next`. Only a job made with `call.background` can be gone on with.
        """
        ...

    def fetch(self, provider_job_id: str) -> Found:
        """Read a provider job. A job the provider doesn't know is `Refused` with class `not_found`."""
        ...

    def cancel(self, provider_job_id: str) -> Signal | None:
        """Ask the provider to stop. None: it is stopped or already over; a signal: it could not be told."""
        ...


class ProviderStream(Protocol):
    """One answer as it comes. The last event is `Done` or `Failed`; nothing is asked of it afterwards."""

    def next(self, wait_ms: int) -> StreamEvent | None:
        """The next event; None where none came within `wait_ms`. Raises nothing."""
        ...

    def close(self) -> None:
        """Hang up, also in the middle. Doing it twice is harmless."""
        ...


class Providers(Protocol):
    """Builds the adapter for a route, with its credential."""

    def for_route(self, route_key: str) -> Provider:
        """Raises `SecretUnavailable` when the route's credential can't be read."""
        ...


@dataclass(frozen=True, slots=True)
class Committed:
    """The write landed; this is the item now."""

    job: Job


@dataclass(frozen=True, slots=True)
class Conflicted:
    """A belief was wrong; this is the item as it stands, None when it is gone."""

    current: Job | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What a META write believes beyond the `rev` it read.

    `epoch`: the writer holds this lease epoch. `locked_until`: the lease end is still as read (renewals change it
    without touching `rev`).
    """

    epoch: int | None = None
    locked_until: int | None = None


AS_READ = Guard()


@dataclass(frozen=True, slots=True)
class DueItem:
    """An item of the `due` index: what it is and when it was due. The index lags: re-read before acting."""

    kind: str  # job, delivery, route, batch
    id: str
    due_at: int


@dataclass(frozen=True, slots=True)
class Waiter:
    """A job that waits and its place in line. The indexes lag: re-read before acting.

    `owner`: the short name of its owner, where the line is read owner by owner.
    """

    job_id: str
    rank: int
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many jobs stand in a lane, counted up to what was asked for.

    `since`: only where that many do: since when one of the older of them stands.
    """

    depth: int
    since: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled:
    """Where a schedule stands: the last window dealt with, and the latest job it made."""

    name: str
    last_window_ms: int | None = None
    job_id: str | None = None
    rev: int = 0


class ScheduleStore(Protocol):
    """The part of the jobs table that remembers where schedules stand."""

    def scheduled(self, name: str) -> Scheduled | None:
        """One schedule, read consistently; None: never seen."""
        ...

    def put_scheduled(self, before: Scheduled | None, after: Scheduled) -> bool:
        """Condition: `rev` as read, or absent. False: another scheduler was faster."""
        ...


class CapacityStore(Protocol):
    """Slots, waiters, rates, last results: the part of the jobs table that keeps limits."""

    def slots(self, scope: str) -> list[Slot]:
        """The numbers in use, read consistently."""
        ...

    def take_slot(self, slot: Slot, instead_of: Slot | None = None) -> bool:
        """Condition: the number is free, or still held as in `instead_of`. Our own repeated write counts as taken."""
        ...

    def keep_slot(self, slot: Slot, verify_at: int) -> bool:
        """Ask again later. Condition: still held as in `slot`."""
        ...

    def free_slot(self, scope: str, n: int, job_id: str, epoch: int) -> bool:
        """Give a number back. Condition: this job holds it for this lease epoch."""
        ...

    def take_slots(self, slots: Sequence[Slot]) -> list[bool]:
        """Each in one request. Condition of each: the number is free. False: it is not, or a first try took it."""
        ...

    def free_slots(self, slots: Sequence[SlotRef], job_id: str, epoch: int) -> list[SlotRef]:
        """Each in one request. Condition of each: this job holds it for this epoch.

        Gives those that nobody else holds now; one that was free before may be among them.
        """
        ...

    def held_slots(self, slots: Sequence[SlotRef], job_id: str, epoch: int) -> list[SlotRef]:
        """Which of these numbers the job still holds for this epoch, read consistently; in doubt, it does."""
        ...

    def waiters(self, scope: str, limit: int) -> list[Waiter]:
        """Who waits under a scope, first in line first."""
        ...

    def waiters_by_owner(self, scope: str, after: str, limit: int) -> tuple[list[Waiter], bool]:
        """Who waits under a scope, owner by owner and each owner's by rank; and whether there are more.

        Begins behind everything of the owner named `after`, at the first owner where that is empty.
        """
        ...

    def backlog(self, lane: Lane, owner_key: str | None, most: int) -> Backlog:
        """How many counted jobs stand in a lane, or an owner's in it, waiting to be worked on; up to `most`."""
        ...

    def spend_rate(self, key: str, now: int, cost: int, burst: int) -> int | None:
        """Reserve `cost` of a rate; all in microseconds. None: it is ours; else when to ask again.

        Condition: what is reserved ahead of `now` stays within `burst`, or nothing is and this alone is more.
        """
        ...

    def rate(self, key: str) -> int | None:
        """Until when everything reserved so far will have been earned, in microseconds; None where nothing ever was."""
        ...

    def adjust_rate(self, key: str, by: int) -> None:
        """Correct a reservation afterwards; does nothing where nothing was reserved."""
        ...

    def put_latest(self, key: str, at: int, data: Mapping[str, Any]) -> bool:
        """Remember a last result (or another newest fact). Condition: what stands there is older."""
        ...

    def latest(self, key: str) -> Mapping[str, Any] | None:
        """The newest fact under a key: its data, and `at`."""
        ...


class JobStore(CapacityStore, DeskStore, ScheduleStore, Protocol):
    """The jobs table: META, children, deliveries, routes, schedules, usage, limits, and what people look at."""

    def create(self, job: Job, now: int) -> Committed | Conflicted:
        """Condition: nothing stands under this key, or what stands is past its retention."""
        ...

    def get(self, job_id: str) -> Job | None:
        """META, read consistently."""
        ...

    def get_with(self, job_id: str, prefix: str, most: int) -> tuple[Job | None, list[Child]]:
        """META and up to `most` children whose key starts with `prefix`, in one consistent read; for small ones.

        Of inputs the last ones, of results the first: those that stand next to META.
        """
        ...

    def get_many(self, job_ids: Sequence[str]) -> dict[str, Job]:
        """META of several jobs, for lists."""
        ...

    def commit(self, before: Job, after: Job, guard: Guard = AS_READ) -> Committed | Conflicted:
        """One fenced update of META. Condition: `rev` as in `before`, and what `guard` says.

        Never creates an item. A condition that fails against our own `write_id` counts as committed.
        """
        ...

    def renew(self, job_id: str, epoch: int, now: int, locked_until: int) -> bool:
        """Move the lease end. Condition: same epoch and not yet expired. False: the lease is lost."""
        ...

    def put_child(self, job_id: str, child: Child, ttl: int | None) -> Child:
        """Put if absent; gives back what stands there afterwards, ours or the one that was first."""
        ...

    def put_children(self, job_id: str, children: Sequence[Child], ttl: int | None) -> list[bool]:
        """Each put if absent, all in one request; false: something stands there (or a first try put it) and stays."""
        ...

    def keep_child(self, job_id: str, sk: str, ttl: int) -> bool:
        """Raise when a child may be cleaned away (s since the epoch). Condition: it stands there, and goes sooner."""
        ...

    def child(self, job_id: str, sk: str) -> Child | None:
        """One child, read consistently."""
        ...

    def children(self, job_id: str, prefix: str, limit: int = 200) -> list[Child]:
        """Children whose key starts with `prefix`, in key order."""
        ...

    def children_after(self, job_id: str, prefix: str, after: str | None, limit: int) -> list[Child]:
        """Like `children`, from the first key behind `after` on; read consistently."""
        ...

    def due(
        self,
        shard: int,
        until: int,
        limit: int,
        cursor: Mapping[str, Any] | None = None,
        *,
        newest: bool = False,
        again: bool = False,
    ) -> tuple[list[DueItem], Mapping[str, Any] | None]:
        """Due items of one shard, earliest (or latest) first, and where to go on.

        `again`: those that were nudged before and are due again; they stand apart from what has just become due.
        """
        ...

    def by_owner(self, owner_key: str, limit: int, cursor: str | None) -> tuple[list[str], str | None]:
        """Job ids of an owner, newest first, and an opaque cursor."""
        ...

    def record_delivery(self, delivery: Delivery) -> Delivery | None:
        """Put if absent. None: recorded; else what stands there."""
        ...

    def delivery(self, delivery_id: str) -> Delivery | None:
        """One delivery, read consistently."""
        ...

    def update_delivery(self, before: Delivery, after: Delivery) -> bool:
        """Condition: `due_at` and `processed_at` as read."""
        ...

    def reopen_delivery(self, before: Delivery, after: Delivery) -> bool:
        """An unprocessed record in place of a processed one. Condition: `processed_at` as read."""
        ...

    def put_provider_job(self, known: ProviderJob) -> ProviderJob:
        """Put if absent; gives back what stands there afterwards, ours or the one that was first."""
        ...

    def provider_job(self, endpoint: str, provider_job_id: str) -> ProviderJob | None:
        """Whose a provider job is, read consistently; None where nobody has put it there."""
        ...

    def route(self, route_key: str) -> RouteState | None:
        """The state of a route; None when nobody ever closed it."""
        ...

    def put_route(self, before: RouteState | None, after: RouteState) -> bool:
        """Condition: `rev` as read, or absent."""
        ...

    def count_usage(self, line: Mapping[str, Any]) -> bool:
        """A usage line and its workflow's total of the period in one transaction. False: it was counted before."""
        ...

    def usage(self, owner_key: str, prefix: str) -> list[Mapping[str, Any]]:
        """Usage totals of an owner."""
        ...


class Control(Protocol):
    """The control table: keys, owners' settings, switches. Read through a cache."""

    def api_key(self, key_hash: str) -> ApiKey | None:
        """The record behind a key's hash."""
        ...

    def owner(self, owner_key: str) -> Mapping[str, Any]:
        """An owner's limits, budgets and callback hosts; empty when none are set. Cached 60 s."""
        ...

    def switches(self) -> Mapping[str, Any]:
        """The degradation switches by name, in force or not. Cached 5 s."""
        ...

    def switches_now(self) -> Mapping[str, Any]:
        """The same, read now, with the `rev` that `put_switches` needs."""
        ...

    def put_switches(self, rev: int, switches: Mapping[str, Any]) -> bool:
        """Replace all switches. Condition: `rev` as read (0: none were ever set). Operators only."""
        ...


class Payloads(Protocol):
    """The object store for what does not fit beside META."""

    def put(self, key: str, body: bytes) -> str:
        """Store under a key that names its content; gives back the reference."""
        ...

    def get(self, ref: str) -> bytes | None:
        """The body behind a reference, None when it is gone."""
        ...

    def presign(self, ref: str, seconds: int) -> str:
        """A URL that reads the object for a short while."""
        ...


class Queues(Protocol):
    """The nudge queues. A message carries a kind and an id, nothing that matters."""

    def nudge(self, kind: str, item_id: str, nudges: Sequence[Nudge], group: str, now: int) -> None:
        """Send each nudge with its delay (0 to 900 s). `group` names the owner, for fair queues."""
        ...

    def nudge_all(self, queue: Queue, items: Sequence[tuple[str, str, str]]) -> list[int]:
        """Send (kind, id, group) in batches; gives back the positions that were not taken."""
        ...

    def dead_letter(self, reference: Mapping[str, Any]) -> None:
        """Put one reference into the `dead-letters` queue."""
        ...

    def drain(self, queue: Queue, limit: int) -> list[tuple[str, str]]:
        """Receive from a queue's DLQ: (receipt, body)."""
        ...

    def drained(self, queue: Queue, receipt: str) -> None:
        """Delete a drained message."""
        ...


class Bus(Protocol):
    """The event bus of the team's own account."""

    def put(self, event_id: str, kind: str, detail: Mapping[str, Any], at: int) -> None:
        """Publish one event; repeated with the same id after a crash."""
        ...


class Notifier(Protocol):
    """Sends one signed message to an owner's callback."""

    def send(
        self,
        url: str,
        secrets: Sequence[str | None],
        webhook_id: str,
        payload: bytes,
        now_ms: int,
        *,
        allowed_hosts: Collection[str],
    ) -> Notified:
        """One try; raises nothing, whatever the receiver does."""
        ...


class Spending(Protocol):
    """What was spent, cheaply: totals that may be a minute old."""

    def spent(self, owner_key: str, period: str) -> Mapping[str, int]:
        """Micro-dollars of an owner in a month by workflow, and in all under the empty name."""
        ...


class Clock(Protocol):
    """The time, movable in tests."""

    def now(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def monotonic(self) -> int:
        """Milliseconds that never jump; for lengths within one process."""
        ...

    def sleep(self, ms: int) -> None:
        """Let so many milliseconds pass."""
        ...


class Log(Protocol):
    """One structured line per thing worth telling; metrics are derived from it at the edge."""

    def step(self, event: str, before: Job | None, job: Job, **more: Any) -> None:
        """A transition or an amendment landed."""
        ...

    def note(self, name: str, **more: Any) -> None:
        """Something else happened. Only ids, classes, counts and times."""
        ...
