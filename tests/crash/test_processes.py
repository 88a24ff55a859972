"""The main scenarios over real DynamoDB and SQS: at every call the process dies, or lives on without the answer.

A first run counts the calls of botocore and of the provider. Then for each of them: SIGKILL before the request is sent,
SIGKILL after it was answered, and the request sent with its answer lost, so that botocore repeats it and the write must
be recognised as our own. Whoever is left goes on: the client asks again, queues deliver again, the sweep runs.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from breakwater.domain.states import Status
from tests.crash import checks
from tests.crash.beyond import Journal, SharedClock
from tests.crash.processes import Place, RealStage, begin_at, catalogue, in_child
from tests.crash.seen import look
from tests.crash.tap import Fault
from tests.crash.wire import MortalTap, without_sleep
from tests.support.cloud import create_table

# A child only ever runs the scenario and dies; it takes no lock that a thread of its parent could hold.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
_numbers = itertools.count(1)
START = 1_900_000_020_000
HOUR = 3_600_000
TWICE = 3  # calls that a queue's own repeat on a slow machine may have added to the run that was counted


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
    calls, failures, missed = list(stage.tap.calls), [], 0
    first = set(stage.begins)

    for at, call in enumerate(calls):
        if fault is Fault.KILL_BEFORE and at not in first:
            continue
        begin(stage, name, tmp_path, at, fault)
        try:
            missed += not strike(stage, name, fault)
            verify(stage, name)
        except AssertionError as error:
            failures.append(f"{fault} {call} (call {at}): {error}")

    assert not failures, f"{len(failures)} of {len(calls)}:\n" + "\n".join(failures[:20])
    assert missed <= TWICE, "the first run was not like the others"


def strike(stage: RealStage, name: str, fault: Fault) -> bool:
    """Play the scenario with its fault, then let whoever is left finish it. False: no call had that number."""
    script = SCENARIOS[name].script
    if fault is Fault.LOST:
        script(stage)
        return stage.tap.struck is not None
    stage.close()
    ended = in_child(lambda: script(stage))
    assert ended in (0, -signal.SIGKILL), "the process was to die"
    stage.tap.at = None
    script(stage)
    return ended != 0
