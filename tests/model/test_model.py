"""Anything may happen to anything at any time; what the design promises holds after every step.

Hypothesis picks the interleaving: submits, nudges old and new to any function, sweeps, drains, cancels, retries,
approvals, webhooks early, late and twice; processes that die, lose answers, are throttled or are overtaken by another
process between any two calls; clocks 5 s off, indexes that lag. At the end everything is left to come to rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from breakwater.domain.errors import BreakwaterError, Rejected
from breakwater.domain.job import Job
from breakwater.domain.obligations import Queue, obligations
from breakwater.domain.results import Completed, Refused
from breakwater.domain.signals import ErrorClass, Signal
from breakwater.domain.states import Reason, Status
from breakwater.domain.timing import nudge_grace
from breakwater.store.items import job_of
from breakwater.usecases.again import again
from breakwater.usecases.review import approve, reject
from tests.crash import checks
from tests.crash.scenarios import catalogue
from tests.crash.stage import Stage
from tests.crash.tap import Fault, KillProcess
from tests.fakes.outside import Message, answer, refusal
from tests.model.chaos import Chaos, LaggingStore

WORKFLOWS = ["sync", "summary", "polled", "paid", "external", "fallback", "guarded", "narrow"]
UNSAFE = {"paid", "external"}
ANSWERS: dict[str, Callable[[], Any]] = {
    "success": lambda: None,
    "overload": lambda: refusal(ErrorClass.OVERLOAD, 503),
    "hint": lambda: refusal(ErrorClass.PACING, 429, retry_after_ms=45_000),
    "not sent": lambda: refusal(ErrorClass.NOT_SENT),
    "cut": lambda: Refused(signal=Signal(error_class=ErrorClass.OUTCOME_UNKNOWN, rule="cut")),
    "caller fault": lambda: refusal(ErrorClass.CALLER_FAULT, 400),
    "half": lambda: Refused(
        signal=Signal(error_class=ErrorClass.TRUNCATED, http_status=200, rule="length"), partial=answer("half")
    ),
}
TIMES = [1_000, 5_000, 20_000, 61_000, 67_000, 125_000, 400_000, 1_000_000, 4_000_000]
SKEWS = st.sampled_from([0, 0, -5_000, 5_000])
FUNCTIONS = ["worker", "worker", "complete", "effects"]
OTHERS = ["worker", "complete", "effects", "cancel", "lease ends", "everybody", "sweep", "webhook", "submit"]
TROUBLE = st.tuples(st.sampled_from([None, *Fault, *OTHERS]), st.integers(0, 14))


class Installation(RuleBasedStateMachine):
    """One installation, with everything that can befall it."""

    def __init__(self) -> None:
        super().__init__()
        self.chaos = Chaos()
        self.store = LaggingStore()
        self.stage = Stage(self.chaos, store=self.store, routes=catalogue())
        self.seen: dict[str, Job] = {}
        self.children: dict[tuple[str, str], Any] = {}
        self.messages: list[tuple[Queue, Message]] = []
        self.proven: set[str] = set()  # a person said that a repeat does no harm
        self.told_cancelled: set[str] = set()

    # --- helpers

    def jobs(self) -> list[Job]:
        return checks.jobs_of(self.stage)

    def pick(self, number: int) -> Job | None:
        found = sorted(self.jobs(), key=lambda job: job.job_id)
        return found[number % len(found)] if found else None

    def one(self, work: Callable[[], Any], skew: int = 0) -> Any:
        """One process, with a clock of its own; whatever kills it, kills only it."""
        normal = self.stage.deps
        self.stage.deps = replace(normal, clock=self.stage.clock.seen_by(skew))
        try:
            with suppress(KillProcess, BreakwaterError):
                return work()
        finally:
            self.stage.deps = normal
        return None

    def asked(self, work: Callable[[], Any]) -> Any:
        """One API call."""

        def ask() -> Any:
            try:
                return work()
            except Rejected as error:
                return error

        return self.one(ask)

    # --- what callers do

    @initialize(workflows=st.lists(st.sampled_from(WORKFLOWS), min_size=1, max_size=2, unique=True))
    def begin(self, workflows: list[str]) -> None:
        for workflow in workflows:
            self.stage.submit(workflow, "a")

    @rule(workflow=st.sampled_from(WORKFLOWS), key=st.sampled_from(["a", "b"]), times=st.integers(1, 2))
    def submit(self, workflow: str, key: str, times: int) -> None:
        for _ in range(times):
            self.asked(lambda: self.stage.submit(workflow, key))

    @rule(number=st.integers(0, 9))
    def ask_to_cancel(self, number: int) -> None:
        job = self.pick(number)
        if job is None:
            return
        told = self.asked(lambda: self.stage.cancel(job.job_id))
        if isinstance(told, Job) and told.status is Status.CANCELLED:
            self.told_cancelled.add(job.job_id)

    @rule(number=st.integers(0, 9))
    def retry(self, number: int) -> None:
        job = self.pick(number)
        if job is not None and job.status is Status.DEAD_LETTER:
            policy = self.stage.deps.catalogue.need_policy(job.workflow)
            self.asked(lambda: again(self.stage.deps, job, policy, "acme"))

    @rule(number=st.integers(0, 9), yes=st.booleans())
    def decide(self, number: int, yes: bool) -> None:
        job = self.pick(number)
        if job is not None and job.in_review:
            if yes:
                self.proven.add(job.job_id)
                self.asked(lambda: approve(self.stage.deps, job, "lead", proof=True))
            else:
                self.asked(lambda: reject(self.stage.deps, job, "lead"))

    # --- what queues and functions do

    @rule(number=st.integers(0, 5), skew=SKEWS, keep=st.booleans())
    def deliver_message(self, number: int, skew: int, keep: bool) -> None:
        """A visible message to its function; `keep`: and it will come once more."""
        now = self.stage.clock.now()
        visible = [(q, one) for q, sent in self.stage.queues.sent.items() for one in sent if one.at <= now]
        if visible:
            queue, message = visible[number % len(visible)]
            if not keep:
                self.stage.queues.sent[queue].remove(message)
            self.messages.append((queue, message))
            self.one(lambda: self.stage._receive(queue, message), skew)

    @rule(number=st.integers(0, 9), function=st.sampled_from(FUNCTIONS), skew=SKEWS, trouble=TROUBLE)
    def run_function(self, number: int, function: str, skew: int, trouble: tuple[Any, int]) -> None:
        """A late, early or misrouted nudge: any function is asked about any job at any time; maybe not in peace."""
        job = self.pick(number)
        if job is None:
            return
        what, after = trouble
        if isinstance(what, Fault):
            self.chaos.arm(what, after)
        elif what is not None:
            self.chaos.interrupt(lambda: self.overtake(what, number), after)
        self.one(lambda: getattr(self.stage, function)(job.job_id), skew)

    @rule(
        number=st.integers(0, 9),
        meanwhile=st.lists(st.sampled_from(OTHERS), min_size=1, max_size=3),
        told=st.sampled_from(sorted(ANSWERS)),
        skew=SKEWS,
    )
    def slow_call(self, number: int, meanwhile: list[str], told: str, skew: int) -> None:
        """While a worker waits for its provider, the world goes on."""
        job = self.pick(number)
        if job is None:
            return

        def slow(call: Any) -> Any:
            taken = self.stage.provider.accept(call) if call.background and told in ("success", "cut") else None
            for what in meanwhile:
                self.overtake(what, number)
            made = ANSWERS[told]()
            return made if made is not None else taken or self.stage.provider._next(call)

        self.stage.provider.script.insert(0, slow)
        self.one(lambda: self.stage.worker(job.job_id), skew)
        if slow in self.stage.provider.script:
            self.stage.provider.script.remove(slow)

    @rule(skew=SKEWS)
    def run_sweep(self, skew: int) -> None:
        self.one(self.stage.sweep, skew)

    @rule(number=st.integers(0, 9), queue=st.sampled_from(list(Queue)))
    def crash_counted(self, number: int, queue: Queue) -> None:
        """A nudge that crashed its handler often enough to be in the queue's DLQ."""
        job = self.pick(number)
        if job is not None:
            self.stage.queues.dlq[queue]["r"] = json.dumps({"kind": "job", "id": job.job_id})
            self.one(self.stage.drain)

    @rule(ms=st.sampled_from(TIMES))
    def time_passes(self, ms: int) -> None:
        self.stage.clock.advance(ms)
        self.stage._happen()

    # --- what providers do

    @rule(answers=st.lists(st.sampled_from(sorted(ANSWERS)), max_size=3))
    def provider_will_say(self, answers: list[str]) -> None:
        made = [ANSWERS[name]() for name in answers]
        self.stage.provider.script = [self.stage.provider._next if one is None else one for one in made]

    @precondition(lambda self: self.stage.provider.jobs)
    @rule(number=st.integers(0, 5), good=st.booleans(), twice=st.booleans())
    def webhook(self, number: int, good: bool, twice: bool) -> None:
        """Early, late, repeated or reordered: about any provider job there ever was."""
        names = sorted(self.stage.provider.jobs)
        name = names[number % len(names)]
        if self.stage.provider.jobs[name]["outcome"] is None:
            outcome = refusal(ErrorClass.SERVER_FAULT, 200)
            self.stage.provider.finish(name, Completed(result=answer(name, provider_job_id=name)) if good else outcome)
        for _ in range(2 if twice else 1):
            self.one(lambda: self.stage.tell(name, f"wh-{name}-{number}"))

    # --- what goes wrong

    @rule(fault=st.sampled_from(list(Fault)), after=st.integers(0, 25))
    def something_will_fail(self, fault: Fault, after: int) -> None:
        self.chaos.arm(fault, after)

    @rule(after=st.integers(0, 20), number=st.integers(0, 9), what=st.sampled_from(OTHERS))
    def somebody_will_be_faster(self, after: int, number: int, what: str) -> None:
        """Between two calls of a process, another one runs from its start to its end."""
        self.chaos.interrupt(lambda: self.overtake(what, number), after)

    def overtake(self, what: str, number: int) -> None:
        job = self.pick(number)
        if what == "lease ends":
            self.stage.clock.advance(67_000)
            if job is not None:
                self.one(lambda: self.stage.complete(job.job_id))
        elif what == "sweep":
            self.one(self.stage.sweep)
        elif what == "submit":
            self.asked(lambda: self.stage.submit("sync", "c"))
        elif what == "everybody":
            self.stage.clock.advance(130_000)
            self.one(self.stage.pump)
        elif what == "webhook":
            if self.stage.provider.jobs:
                self.webhook(number, True, False)
        elif what == "cancel":
            self.ask_to_cancel(number)
        elif job is not None:
            self.one(lambda: getattr(self.stage, what)(job.job_id))

    @rule()
    def the_index_lags(self) -> None:
        self.store.freeze()

    @rule()
    def the_index_catches_up(self) -> None:
        self.store.thaw()

    # --- what holds after every step

    @invariant()
    def promises(self) -> None:
        for job in self.jobs():
            self.of_one(job)
            before = self.seen.get(job.job_id)
            if before is not None:
                self.of_a_change(before, job)
            self.seen[job.job_id] = job

    def of_one(self, job: Job) -> None:
        assert job.attempt <= job.max_attempts
        assert (job.due_at is not None) is bool(obligations(job)), "every open job, and every debt, has a `due_at`"
        for one in obligations(job):
            covered = job.nudged_for is not None and one.at <= job.nudged_for
            assert job.due_at is not None
            assert job.due_at <= (job.nudged_for + nudge_grace(job.nudges) if covered and job.nudged_for else one.at)
            assert job.final or job.ttl is None or job.ttl * 1_000 > one.at, "cleaned away while it is open"
        processing = job.status is Status.PROCESSING
        assert (job.execution is not None) is processing
        assert processing or (job.locked_until, job.slots) == (None, ())
        assert job.status is not Status.SUCCEEDED or job.result_ref is not None
        if job.job_id in self.told_cancelled:
            assert job.status is Status.CANCELLED, "a cancel was acknowledged"
        if job.workflow in UNSAFE and job.job_id not in self.proven:
            assert self.unsure(job) <= 1, "work with side effects was repeated though nobody knows how it ended"

    def unsure(self, job: Job) -> int:
        """How many calls of a job may have had an effect: all but those that are known to have failed before it."""
        harmless = {ErrorClass.OVERLOAD.value, ErrorClass.PACING.value, ErrorClass.NOT_SENT.value}
        known = {
            one.data["execution"]["id"]: one.data["execution"].get("error_class")
            for prefix in ("EXEC#", "LATE#")
            for one in checks.children(self.stage, job, prefix)
            if "execution" in one.data
        }
        failed_itself = {ErrorClass.SERVER_FAULT.value} if job.side_effects == "paid" else set()
        made = [call.execution_id for call in self.stage.provider.calls if call.job_id == job.job_id]
        return sum(known.get(one) not in harmless | failed_itself for one in made)

    def of_a_change(self, before: Job, job: Job) -> None:
        assert job.created_at == before.created_at
        assert job.rev >= before.rev
        assert job.lease_epoch >= before.lease_epoch
        assert job.generation >= before.generation
        assert job.cost_micros >= before.cost_micros
        assert job.waits >= before.waits or job.generation > before.generation
        if job.generation == before.generation:
            assert job.attempt >= before.attempt
            if before.final:
                same = ("status", "reason", "result_ref", "completed_at", "attempt", "served_model")
                assert all(getattr(job, one) == getattr(before, one) for one in same), "what is settled stays settled"

    @invariant()
    def nothing_immutable_changes(self) -> None:
        for key, item in self.store.items.items():
            if key[1] != "META":
                assert self.children.setdefault(key, item) == item
        for (pk, sk), item in self.store.items.items():
            if sk == "META" and pk.startswith("JOB#"):
                assert "owner_shard" in item, "half an item"
                assert job_of(item).job_id == pk.removeprefix("JOB#")

    @invariant()
    def no_slot_is_named_twice(self) -> None:
        named = [(slot.scope, slot.n) for job in self.jobs() for slot in job.slots]
        assert len(named) == len(set(named)), "two jobs hold one number"

    @invariant()
    def one_execution_is_sent_once(self) -> None:
        ids = [call.execution_id for call in self.stage.provider.calls]
        assert len(ids) == len(set(ids))

    def teardown(self) -> None:
        """Calm returns; redelivery, the sweep and time finish everything."""
        self.chaos.calm()
        self.store.thaw()
        self.stage.provider.script.clear()
        self.stage.run()
        self.promises()
        checks.everything(self.stage)
        for job in self.jobs():
            assert job.final or job.reason in (Reason.APPROVAL_REQUIRED, Reason.OUTCOME_UNKNOWN)


TestInstallation = pytest.mark.timeout(300)(Installation.TestCase)
TestInstallation.settings = settings(max_examples=300, stateful_step_count=40)
