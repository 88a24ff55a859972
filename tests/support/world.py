"""The whole system in one process: ports that are fakes (or real stores), a clock that moves when told.

Messages are handed out when they are visible; the sweep runs when asked. `settle` lets time pass until nothing is due.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from breakwater.domain.errors import BreakwaterError
from breakwater.domain.job import Job
from breakwater.domain.obligations import Queue
from breakwater.domain.request import parse
from breakwater.domain.routes import Catalogue
from breakwater.store.budgets import Spent
from breakwater.usecases.admit import Admitted, Principal, admit
from breakwater.usecases.batch import tick
from breakwater.usecases.cancel import cancel
from breakwater.usecases.circuit import reopen
from breakwater.usecases.complete import complete
from breakwater.usecases.deliver import deliver
from breakwater.usecases.deps import Deps
from breakwater.usecases.drain import drain
from breakwater.usecases.effects import effects
from breakwater.usecases.intake import Facts, IntakeDeps, take
from breakwater.usecases.step import Told, Verdict, step
from breakwater.usecases.sweep import sweep
from tests.fakes.clock import FakeClock
from tests.fakes.notifier import FakeNotifier
from tests.fakes.outside import FakeBus, FakeControl, FakeLog, FakePayloads, FakeProvider, FakeQueues, Message
from tests.fakes.store import FakeJobStore
from tests.support.catalogue import catalogue

OWNER = Principal(owner_key="acme", key_id="k1", scopes=frozenset({"submit", "read"}))
FUNCTION_MS = 60_000
Hook = Callable[[str, str], None]


class World:
    """One installation. `hook(name, when)` is called before and after every outside call."""

    def __init__(
        self,
        *,
        hook: Hook | None = None,
        clock: FakeClock | None = None,
        store: Any = None,
        draw: float = 0.5,
        routes: Catalogue | None = None,
    ) -> None:
        quiet: Hook = hook or (lambda _name, _when: None)
        self.clock = clock or FakeClock()
        self.store: Any = store or FakeJobStore(quiet)
        self.queues, self.payloads, self.control = FakeQueues(quiet), FakePayloads(quiet), FakeControl()
        self.bus, self.log, self.provider = FakeBus(quiet), FakeLog(), FakeProvider(quiet, clock=self.clock)
        self.notifier = FakeNotifier(quiet)
        self.secrets: dict[str, Any] = {"default": "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"}
        self.deps = Deps(
            store=self.store,
            queues=self.queues,
            payloads=self.payloads,
            control=self.control,
            catalogue=routes or catalogue(),
            clock=self.clock,
            log=self.log,
            draw=lambda: draw,
            providers=self.provider,
            bus=self.bus,
            notifier=self.notifier,
            notify_secrets=lambda: self.secrets,
            spending=Spent(self.store.usage, self.clock.monotonic),
            code_version="test",
        )
        self._names = itertools.count(1)

    # --- what callers do

    def submit(self, workflow: str = "sync", key: str | None = "k-1", **more: Any) -> Admitted:
        """Admit one intent as the API does."""
        owner = more.pop("owner", OWNER)
        content = (
            {"prompt": "a boat"}
            if workflow == "pictures"
            else {
                "messages": [{"role": "user", "content": more.pop("text", "hello")}],
            }
        )
        body = {"workflow": workflow, "input": content, **more}
        return admit(self.deps, owner, parse(body), key, "request-1")

    def cancel(self, job_id: str, by: str = "acme") -> Job:
        return cancel(self.deps, self.job(job_id), by)

    def webhook(self, provider_job_id: str, webhook_id: str | None = None, body: bytes = b"{}", **facts: Any) -> str:
        """Take one verified delivery as the intake does."""
        deps = IntakeDeps(
            store=self.store,
            queues=self.queues,
            payloads=lambda: self.payloads,
            clock=self.clock,
            log=self.log,
        )
        name = webhook_id or f"wh_{next(self._names)}"
        told = Facts(event_type="response.completed", provider_job_id=provider_job_id, **facts)
        return take(deps, "openai", name, body, told)

    # --- what functions do

    def worker(self, job_id: str, remaining: int = FUNCTION_MS, told: Told | None = None) -> Verdict:
        return step(self.deps, job_id, lambda: remaining, told or Told(message_id="m-1", receive_count=1))

    def complete(self, job_id: str) -> str:
        return complete(self.deps, job_id)

    def deliver(self, delivery_id: str) -> str:
        return deliver(self.deps, delivery_id)

    def effects(self, job_id: str) -> str:
        return effects(self.deps, job_id)

    def sweep(self) -> dict[str, int]:
        return dict(sweep(self.deps, lambda: FUNCTION_MS))

    def drain(self) -> dict[str, int]:
        return dict(drain(self.deps))

    # --- the machinery between them

    def job(self, job_id: str) -> Job:
        found = self.store.get(job_id)
        assert found is not None
        return found

    def visible(self) -> Iterator[tuple[Queue, Message]]:
        """Messages that may be received now, taken off their queue one by one."""
        progressed = True
        while progressed:
            progressed = False
            for queue, messages in self.queues.sent.items():
                ready = next((one for one in messages if one.at <= self.clock.now()), None)
                if ready is not None:
                    messages.remove(ready)
                    progressed = True
                    yield queue, ready

    def handle(self, queue: Queue, message: Message) -> None:
        """What the function behind a queue does with a message."""
        if message.kind == "delivery":
            self.deliver(message.id)
        elif message.kind == "route":
            reopen(self.deps, message.id)
        elif message.kind == "batch":
            tick(self.deps, message.id)
        elif queue is Queue.COMPLETION:
            self.complete(message.id)
        elif queue is Queue.EFFECTS:
            self.effects(message.id)
        else:
            self.worker(message.id)

    def pump(self, most: int = 200) -> int:
        """Handle visible messages until there are none."""
        count = 0
        for queue, message in self.visible():
            with suppress(BreakwaterError):
                self.handle(queue, message)
            count += 1
            assert count < most, "the system feeds itself"
        return count

    def settle(self, minutes: int = 240) -> None:
        """Let minutes pass, with a sweep each, until nothing is on its way and nothing is due."""
        self.pump()
        for _ in range(minutes):
            if not self.pending():
                return
            self.clock.advance(60_000)
            self.sweep()
            self.pump()

    def pending(self) -> bool:
        """Whether anything is on its way or due, now or later."""
        waiting = any(self.queues.sent.values())
        return waiting or any("due_at" in item for item in self.store.items.values())
