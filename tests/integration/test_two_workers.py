"""Two worker processes, one job, real tables: the lease of the first ends while it waits for its provider.

The first worker is a process of its own that hangs in its call. The second finds the lease over, takes the job and
finishes it. Then the first one's answer comes: nothing it writes may count, and it must be counted.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from breakwater.domain.results import Accepted, Completed
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Status
from breakwater.domain.timing import CLOCK_SKEW, LEASE
from breakwater.ports import Committed, Conflicted, Guard
from breakwater.store.items import from_wire, job_of
from breakwater.usecases.complete import complete
from breakwater.usecases.step import Told, Verdict, step
from tests.crash import checks
from tests.crash.beyond import Journal, SharedClock
from tests.crash.processes import Place, RealStage, begin_at, catalogue
from tests.crash.seen import look
from tests.crash.wire import MortalTap, without_sleep
from tests.fakes.outside import answer, refusal
from tests.support.cloud import create_table

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
START = 1_950_000_000_000


@pytest.fixture
def stage(dynamo_cloud: Any, tmp_path: Any) -> RealStage:
    """One installation with a table and queues of its own."""
    without_sleep()
    sqs = dynamo_cloud.client("sqs")
    run = os.urandom(4).hex()
    queue, dead = (sqs.create_queue(QueueName=f"two-{name}-{run}")["QueueUrl"] for name in ("nudges", "dead"))
    place = Place(dynamo_cloud, create_table(dynamo_cloud.client("dynamodb"), "JobsTable"), queue, dead)
    found = RealStage(place, SharedClock(START), catalogue(), MortalTap())
    begin_at(found, run, Journal(tmp_path / "journal"))
    return found


@contextmanager
def worker(stage: RealStage, job_id: str, outcome: Callable[[Any], Any]) -> Iterator[Callable[[], None]]:
    """A worker process that hangs in its provider call until it is let go; leaving the block waits for its end."""
    asked, told = os.pipe(), os.pipe()
    stage.close()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            real = stage.provider.submit

            def slow(call: Any) -> Any:
                real(call)
                os.write(asked[1], b".")
                os.read(told[0], 1)
                return outcome(call)

            stage.provider.submit = slow  # type: ignore[method-assign]
            verdict = step(stage.deps, job_id, lambda: 50_000, Told(message_id="m-slow"))
            for name, facts in stage.log.notes:
                stage.journal.write("note", name=name, epoch=facts.get("epoch"))
            stage.journal.write("verdict", verdict=verdict.value)
            status = 0
        finally:
            os._exit(status)
    os.read(asked[0], 1)
    try:
        yield lambda: os.write(told[1], b".") and None
        _, raw = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(raw) == 0
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        for end in (*asked, *told):
            os.close(end)


def notes(stage: RealStage, name: str) -> list[Any]:
    """What the slow worker's process told of one kind."""
    return [one for one in stage.journal.read("note") if one["name"] == name]


def stored(stage: RealStage, job_id: str) -> Any:
    """The job as it stands."""
    return stage.store.get(job_id)


def take_over(stage: RealStage, job_id: str) -> None:
    """The lease ends; the completion function finds it, and a second worker does the work."""
    stage.clock.advance(LEASE + CLOCK_SKEW)
    assert complete(stage.deps, job_id) == "outcome_unknown"
    stage.clock.advance(130_000)
    assert step(stage.deps, job_id, lambda: 50_000, Told(message_id="m-second")) is Verdict.WORKED


def test_the_losers_result_changes_nothing_and_is_counted(stage):
    """One result, one event; the loser's call is on the bill, its write is refused and told."""
    job_id = stage.submit("sync")
    with worker(stage, job_id, lambda _call: Completed(result=answer("from the loser"))) as let_go:
        take_over(stage, job_id)
        winner = stored(stage, job_id)
        assert (winner.status, winner.lease_epoch) == (Status.SUCCEEDED, 2)
        let_go()
    stage.run()

    job = stored(stage, job_id)
    assert (job.status, job.result_ref, job.completed_at) == (Status.SUCCEEDED, winner.result_ref, winner.completed_at)
    assert [one["epoch"] for one in notes(stage, "late_write")] == [1]
    seen: Any = look(stage)
    assert len({event for event, _, _ in seen.bus.events}) == 1
    assert len(seen.store.lines) == 2
    assert job.possible_duplicate
    checks.everything(seen)


def test_the_losers_refusal_changes_nothing_and_is_kept(stage):
    """What it learned is appended beside the record that says `lost`."""
    job_id = stage.submit("sync")
    with worker(stage, job_id, lambda _call: refusal(ErrorClass.SERVER_FAULT, 500)) as let_go:
        take_over(stage, job_id)
        winner = stored(stage, job_id)
        let_go()
    stage.run()

    assert stored(stage, job_id).completed_at == winner.completed_at
    late = [from_wire(one) for one in stage.partition(f"JOB#{job_id}") if one["sk"]["S"].startswith("LATE#")]
    assert [one["data"]["execution"]["error_class"] for one in late] == ["server_fault"]
    assert len(notes(stage, "late_write")) == 1
    checks.everything(look(stage))


def test_a_provider_job_the_loser_started_is_stopped(stage):
    """The winner's work settled the job; nobody waits for the loser's."""
    job_id = stage.submit("summary")
    stage.provider.takes = 10_000_000
    with worker(stage, job_id, lambda _call: Accepted(provider_job_id="resp_1")) as let_go:
        stage.clock.advance(LEASE + CLOCK_SKEW)
        assert complete(stage.deps, job_id) == "outcome_unknown"
        stage.cancel(job_id)
        let_go()
    stage.run()

    job = stored(stage, job_id)
    assert job.status is Status.CANCELLED
    assert [one["name"] for one in stage.journal.read("stopped")] == ["resp_1"]
    assert len(notes(stage, "late_write")) == 1
    checks.everything(look(stage))


def test_every_kind_of_write_by_the_loser_is_refused(stage):
    """A renewal, a success and a failure under the old epoch: all three, whatever stands there."""
    job_id = stage.submit("sync")
    with worker(stage, job_id, lambda _call: Completed(result=answer("late"))) as let_go:
        loser = stored(stage, job_id)
        take_over(stage, job_id)
        winner = stored(stage, job_id)

        now = stage.clock.now()
        assert stage.store.renew(job_id, loser.lease_epoch, now, now + LEASE) is False
        for after in (loser.with_(status=Status.SUCCEEDED), loser.with_(status=Status.FAILED)):
            assert stage.store.commit(loser, after, Guard(epoch=1)) == Conflicted(winner)
        fresh = winner.with_(waits=99)
        assert stage.store.commit(winner, fresh, Guard(epoch=1)) == Conflicted(winner)
        assert not isinstance(stage.store.commit(loser, loser), Committed)
        let_go()
    stage.run()

    assert job_of(stage.item(f"JOB#{job_id}", "META")).waits == winner.waits


def test_two_processes_that_claim_at_once_have_one_call(stage):
    """Both read the same item before either writes."""
    job_id = stage.submit("sync")
    gate, pids = os.pipe(), []
    stage.close()
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                real = stage.deps.store.get

                def read_then_wait(name: str, real: Any = real) -> Any:
                    found = real(name)
                    os.read(gate[0], 1)
                    return found

                stage.store.get = read_then_wait  # type: ignore[method-assign]
                step(stage.deps, job_id, lambda: 50_000, Told(message_id="m"))
                status = 0
            finally:
                os._exit(status)
        pids.append(pid)
    os.write(gate[1], b"." * 400)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * 4
    for end in gate:
        os.close(end)
    stage.run()

    job = stored(stage, job_id)
    assert (job.status, job.attempt, job.lease_epoch) == (Status.SUCCEEDED, 1, 1)
    assert len(stage.journal.read("call")) == 1
    checks.everything(look(stage))
