"""A world in which processes die: queues deliver again, clients and webhook senders repeat, time goes on.

Every handler, API call and sweep is a process of its own. One that dies, or whose batch item fails, gets its message
again after the visibility time-out, and after five times the message is in the queue's DLQ. Clients repeat what they
got no answer to, with the same key; providers repeat a webhook until somebody takes it.
"""

from __future__ import annotations

import heapq
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from breakwater.domain.errors import Rejected, Unavailable
from breakwater.domain.obligations import Queue
from breakwater.domain.results import Accepted, Call
from breakwater.entry.queue import consume
from breakwater.usecases.intake import Facts, IntakeDeps, take
from breakwater.usecases.step import Told, Verdict
from tests.crash.tap import KillProcess, Tap, tapped, tapped_intake
from tests.fakes.outside import Message
from tests.support.told import told_body
from tests.support.world import World

VISIBILITY = 360_000
MAX_RECEIVES = 5
MINUTE = 60_000
REPEAT = 5_000  # how soon a client or a webhook sender tries again


@dataclass(frozen=True)
class Redelivered(Message):
    """A message that comes again."""

    receives: int = 1


class Stage(World):
    """A `World` whose processes can be killed at any outside call."""

    def __init__(self, tap: Tap | None = None, **more: Any) -> None:
        super().__init__(**more)
        self.tap = tap or Tap()
        self.deps = tapped(self.deps, self.tap)
        self._later: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._receipts = itertools.count(1)
        self.refused: list[str] = []
        self.provider_takes = 20_000  # how long a provider job runs
        self.provider_tells = True  # by a webhook
        self.provider_knows_us = True  # its webhooks can be traced to our execution
        self.carried_to: str | None = None  # the endpoint whose webhooks carry the outcome; nobody is asked
        accept = self.provider.accept

        def accept_and_finish(call: Call) -> Accepted:
            taken = accept(call)
            self.later(self.clock.now() + self.provider_takes, lambda: self._finish(taken.provider_job_id))
            return taken

        self.provider.accept = accept_and_finish  # type: ignore[method-assign]

    def worker(self, job_id: str, remaining: int = 50_000, told: Told | None = None) -> Verdict:
        """As in a function with 50 s left: its lease needs no renewals."""
        return super().worker(job_id, remaining, told)

    # --- time

    def later(self, at: int, what: Callable[[], None]) -> None:
        """Let something outside happen at its time."""
        heapq.heappush(self._later, (at, next(self._order), what))

    def run(self, minutes: int = 3_000) -> None:
        """Let time pass until nothing is on its way, nothing is due and nobody outside has anything left to do."""
        for _ in range(minutes):
            self._happen()
            self.pump()
            if not self._later and not self.pending() and not any(self.queues.dlq.values()):
                return
            self._advance()
        raise AssertionError(f"never comes to rest: {self._standing()}")

    def _advance(self) -> None:
        """To the next thing that happens; every full minute is a sweep."""
        now = self.clock.now()
        tick = now - now % MINUTE + MINUTE
        shown = [one.at for messages in self.queues.sent.values() for one in messages]
        soonest = min([*shown, *(at for at, _, _ in self._later[:1])], default=None)
        if soonest is not None and soonest < tick:
            self.clock.advance(max(1, soonest - now))
            return
        due = [int(item["due_at"]["N"]) for item in self.store.items.values() if "due_at" in item]
        earliest = min([*due, *([soonest] if soonest is not None else [])], default=tick)
        skipped = max(0, (earliest - tick) // MINUTE) * MINUTE if not any(self.queues.dlq.values()) else 0
        self.clock.advance(tick + skipped - now)
        self.process(self.sweep)
        if any(self.queues.dlq.values()):
            self.process(self.drain)

    def _happen(self) -> None:
        while self._later and self._later[0][0] <= self.clock.now():
            heapq.heappop(self._later)[2]()

    def _standing(self) -> list[Any]:
        return [(key, item.get("due_at")) for key, item in self.store.items.items() if "due_at" in item]

    # --- processes

    def process(self, work: Callable[[], Any]) -> tuple[bool, Any]:
        """Run something as a process of its own: whether it answered, and what."""
        try:
            return True, work()
        except KillProcess:
            return False, None
        except Unavailable as error:  # an answer of 503, or a failed invocation
            return False, error

    def pump(self, most: int = 2_000) -> int:
        count = 0
        for queue, message in self.visible():
            self._receive(queue, message)
            count += 1
            assert count < most, "the system feeds itself"
        return count

    def _receive(self, queue: Queue, message: Message) -> None:
        body = json.dumps({"kind": message.kind, "id": message.id})
        record = {"messageId": f"m-{next(self._receipts)}", "body": body}
        event = {"Records": [record]}
        answered, answer = self.process(
            lambda: consume(event, None, self.log, lambda kind, item, _: self.handle(queue, Message(kind, item, 0)))
        )
        if answered and not answer["batchItemFailures"]:
            return
        receives = getattr(message, "receives", 1)
        if receives >= MAX_RECEIVES:
            self.queues.dlq[queue][f"r-{next(self._receipts)}"] = body
            return
        again = Redelivered(message.kind, message.id, self.clock.now() + VISIBILITY, receives + 1)
        self.queues.sent[queue].append(again)

    # --- callers and providers, who repeat what they got no answer to

    def client(self, ask: Callable[[], Any], tries: int = 3) -> Any:
        """A client's request; the answer, or the refusal as a value."""
        for _ in range(tries):
            answered, answer = self.process(lambda: self._refusal(ask))
            if answered:
                return answer
            self.clock.advance(REPEAT)
        raise AssertionError("no answer at all")

    @staticmethod
    def _refusal(ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except Rejected as error:
            return error

    def ask_for(self, workflow: str, key: str = "k-1", **more: Any) -> str:
        """Submit until there is an answer; the job's id."""
        return str(self.client(lambda: self.submit(workflow, key, **more)).job.job_id)

    def ask_to_cancel(self, job_id: str) -> Any:
        return self.client(lambda: self.cancel(job_id))

    def _finish(self, name: str) -> None:
        if self.provider.jobs[name]["outcome"] is None:
            self.provider.finish(name)
        if self.provider_tells:
            self.tell(name)

    def tell(self, provider_job_id: str, webhook_id: str | None = None) -> None:
        """A webhook, repeated until it is taken."""
        name = webhook_id or f"wh_{next(self._names)}"
        answered, _ = self.process(lambda: self.webhook(provider_job_id, name))
        if not answered:
            self.later(self.clock.now() + REPEAT, lambda: self.tell(provider_job_id, name))

    def webhook(self, provider_job_id: str, webhook_id: str | None = None, body: bytes = b"{}", **facts: Any) -> str:
        plain = IntakeDeps(
            store=self.store,
            queues=self.queues,
            payloads=lambda: self.payloads,
            clock=self.clock,
            log=self.log,
        )
        told = Facts(event_type="response.completed", provider_job_id=provider_job_id, **facts)
        if self.carried_to is not None:
            told, body = replace(told, carries_result=True), told_body(self, provider_job_id)
        name = webhook_id or f"wh_{next(self._names)}"
        return take(tapped_intake(plain, self.tap), self.carried_to or "openai", name, body, told)

    def skewed(self, ms: int) -> None:
        """From now on our functions' clocks are off by this much."""
        self.deps = replace(self.deps, clock=self.clock.seen_by(ms))
