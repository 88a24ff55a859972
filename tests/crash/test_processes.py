"""The main scenarios over real DynamoDB and SQS: at every call the process dies, or lives on without the answer.

A first run counts the calls of botocore and of the provider. Then for each of them: SIGKILL before the request is sent,
SIGKILL after it was answered, and the request sent with its answer lost, so that botocore repeats it and the write must
be recognised as our own. Whoever is left goes on: the client asks again, queues deliver again, the sweep runs.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from breakwater.domain.results import Completed, Refused
from breakwater.domain.routes import Catalogue
from breakwater.domain.states import Status
from breakwater.store.wire import from_wire
from tests.crash import checks
from tests.crash.processes import Journal, MortalTap, Place, RealStage, SharedClock, in_child, without_sleep
from tests.crash.tap import Fault
from tests.support.catalogue import policy, route
from tests.support.cloud import create_table

_numbers = itertools.count(1)
START = 1_900_000_020_000
HOUR = 3_600_000


def catalogue() -> Catalogue:
    """Three workflows without limits; what capacity costs is counted elsewhere."""
    hook: dict[str, Any] = {"capabilities": {"background": True, "webhook": "openai", "context_window": 400_000}}
    routes = [route("plain"), route("hook", **hook)]
    policies = [policy("sync"), policy("paid", side_effects="paid")]
    policies.append(policy("summary", route="hook", mode="background", webhook_grace_ms=120_000))
    return Catalogue(
        routes={one.route_key: one for one in routes},
        policies={one.workflow: one for one in policies},
        default_route="plain",
    )


@dataclass(frozen=True)
class Scenario:
    """A script that may be begun again by a client that got no answer, and what it may lead to."""

    script: Callable[[RealStage], None]
    usual: Status
    ends: frozenset[Status]
    most_calls: int
    plan: tuple[tuple[str, int], ...] = ()


def _work(workflow: str) -> Callable[[RealStage], None]:
    def script(stage: RealStage) -> None:
        stage.submit(workflow)
        stage.run()

    return script


def _cancel_at_provider(stage: RealStage) -> None:
    job_id = stage.submit("summary")
    stage.run(until=lambda: bool(stage.journal.read("call")) and stage.at_rest())
    if stage.item(f"JOB#{job_id}", "META")["status"]["S"] not in ("succeeded", "cancelled"):  # type: ignore[index]
        stage.cancel(job_id)
    stage.run()


def _repeated_webhook(stage: RealStage) -> None:
    stage.submit("summary")
    stage.run()
    stage.tell("resp_1")
    stage.run()


_S, _C, _P = Status.SUCCEEDED, Status.CANCELLED, Status.PENDING
SCENARIOS = {
    "synchronous": Scenario(_work("sync"), _S, frozenset({_S}), 3),
    "paid": Scenario(_work("paid"), _S, frozenset({_S, _P, Status.DEAD_LETTER}), 1),
    "webhook, repeated": Scenario(_repeated_webhook, _S, frozenset({_S}), 3),
    "retry": Scenario(_work("sync"), _S, frozenset({_S}), 3, (("overload", 503),)),
    "cancel at the provider": Scenario(_cancel_at_provider, _C, frozenset({_C, _S}), 2),
}


@pytest.fixture(scope="module")
def place(dynamo_cloud: Any) -> Place:
    """One table and one set of queues for all runs; each run has an owner of its own."""
    without_sleep()
    sqs = dynamo_cloud.client("sqs")
    queue, dead = (sqs.create_queue(QueueName=f"crash-{name}")["QueueUrl"] for name in ("nudges", "dead-letters"))
    return Place(dynamo_cloud, create_table(dynamo_cloud.client("dynamodb"), "JobsTable"), queue, dead)


@pytest.fixture(scope="module")
def stage(place: Place) -> RealStage:
    """Clients are built once; children inherit them, without their connections."""
    return RealStage(place, SharedClock(START), catalogue(), MortalTap())


@dataclass
class Seen:
    """What is left of a run, in the shape the checks look at."""

    store: Any
    queues: Any
    bus: Any
    provider: Any
    clock: Any
    log: Any = None


@dataclass
class _Store:
    items: dict[tuple[str, str], dict[str, Any]]
    lines: dict[str, dict[str, Any]]
    taken: dict[Any, Any] = field(default_factory=dict)


@dataclass
class _Bag:
    sent: dict[Any, Any] = field(default_factory=dict)
    dlq: dict[Any, Any] = field(default_factory=dict)
    dead: list[Any] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)
    jobs: dict[str, Any] = field(default_factory=dict)


def look(stage: RealStage) -> Seen:
    """Everything about this run's job, read back from the table, the queues and the outside."""
    items = {}
    for job_id in stage.job_ids():
        items |= {(one["pk"]["S"], one["sk"]["S"]): one for one in stage.partition(f"JOB#{job_id}")}
    calls = stage.journal.read("call")
    for name in [one["name"] for one in calls if one["name"]]:
        key = f"DELIVERY#openai#{stage.delivery(name)}"
        items |= {(one["pk"]["S"], one["sk"]["S"]): one for one in stage.partition(key)}
    usage = [from_wire(one) for one in stage.partition(f"OWNER#{stage.owner.owner_key}")]
    lines = {one["execution_id"]: one for one in usage if one["sk"].startswith("USAGE#")}
    totals = [one for one in usage if one["sk"].startswith("TOTAL#")]
    assert all(one["executions"] == len(lines) for one in totals), "a total counted twice"
    events = [(one["event_id"], one["name"], one["detail"]) for one in stage.journal.read("event")]
    jobs = {one["name"]: {"outcome": _over(stage, one["name"])} for one in calls if one["name"]}
    made = [type("Made", (), {"job_id": one["job_id"], "execution_id": one["execution_id"]}) for one in calls]
    return Seen(
        _Store(items, lines),
        _Bag(sent={"all": stage.peek()}, dead=stage.dead_letters()),
        _Bag(events=events),
        _Bag(calls=made, jobs=jobs),
        stage.clock,
    )


def _over(stage: RealStage, name: str) -> Any:
    outcome = stage.provider.outcome(name)
    return outcome if isinstance(outcome, Completed | Refused) else None


def begin_at(stage: RealStage, run: str, journal: Journal, plan: tuple[tuple[str, int], ...] = ()) -> None:
    """A clean start an hour later, with nothing armed."""
    stage.clock.advance(HOUR - stage.clock.now() % HOUR)
    stage.tap.at, stage.tap.fault, stage.tap.struck = None, None, None
    stage.tap.calls.clear()
    stage.begin(run, journal, plan)


def begin(stage: RealStage, name: str, folder: Path, at: int | None = None, fault: Fault | None = None) -> None:
    """A clean start, with one call that will go wrong."""
    run = f"{next(_numbers)}"
    begin_at(stage, run, Journal(folder / run), SCENARIOS[name].plan)
    stage.tap.at, stage.tap.fault = at, fault


def verify(stage: RealStage, name: str, *, usual: bool = False) -> None:
    """The same promises as in one process."""
    scenario, seen = SCENARIOS[name], look(stage)
    found: Any = seen
    jobs = checks.jobs_of(found)
    assert len(jobs) == 1
    checks.everything(found)
    assert checks.calls_for(found, jobs[0]) <= scenario.most_calls
    assert jobs[0].status in ({scenario.usual} if usual else scenario.ends), (jobs[0].status, jobs[0].reason)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_without_faults_ends_as_it_should(stage, name, tmp_path):
    """The scenario itself, over real tables and queues."""
    begin(stage, name, tmp_path)

    SCENARIOS[name].script(stage)

    verify(stage, name, usual=True)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("fault", [Fault.KILL_BEFORE, Fault.KILL_AFTER, Fault.LOST])
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_job_survives_a_fault_at_every_call(stage, name, fault, tmp_path):
    """Counted by a first run, so that a call nobody thought of is broken as well.

    Within one process, dying before a call and dying after the one before it are the same death: so the first is
    died only where a process begins.
    """
    begin(stage, name, tmp_path)
    SCENARIOS[name].script(stage)
    calls, failures = list(stage.tap.calls), []
    first = set(stage.begins)

    for at, call in enumerate(calls):
        if fault is Fault.KILL_BEFORE and at not in first:
            continue
        begin(stage, name, tmp_path, at, fault)
        try:
            strike(stage, name, fault)
            verify(stage, name)
        except AssertionError as error:
            failures.append(f"{fault} {call} (call {at}): {error}")

    assert not failures, f"{len(failures)} of {len(calls)}:\n" + "\n".join(failures[:20])


def strike(stage: RealStage, name: str, fault: Fault) -> None:
    """Play the scenario with its fault, then let whoever is left finish it."""
    script = SCENARIOS[name].script
    if fault is Fault.LOST:
        script(stage)
        assert stage.tap.struck is not None
        return
    stage.close()
    assert in_child(lambda: script(stage)) == -signal.SIGKILL, "the process was to die"
    stage.tap.at = None
    script(stage)
