"""Every scenario, with the process dying at every outside call it makes, in every way a call can go wrong.

Nobody lists the calls: a first run counts them. Then for each call the scenario is played again, with the process
killed before it, killed after it, the answer lost, and the call refused. Redelivery, the sweep and time do the rest.
"""

from __future__ import annotations

import pytest

from breakwater.domain.states import Status
from tests.crash import checks
from tests.crash.scenarios import SCENARIOS, catalogue
from tests.crash.stage import Stage
from tests.crash.tap import Fault, Tap


def play(name: str, tap: Tap) -> Stage:
    """One run of a scenario to the end."""
    stage = Stage(tap, routes=catalogue())
    SCENARIOS[name].play(stage)
    return stage


def verify(name: str, stage: Stage, *, usual: bool) -> None:
    """What must hold afterwards."""
    scenario = SCENARIOS[name]
    checks.everything(stage)
    found = checks.jobs_of(stage)
    assert found
    for job in found:
        assert checks.calls_for(stage, job) <= scenario.most_calls
        assert job.status in ({scenario.usual} if usual else scenario.ends), (job.status, job.reason)
        scenario.check(stage, job)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_without_faults_ends_as_it_should(name):
    """The scenario itself, and the number of calls it makes."""
    tap = Tap()

    stage = play(name, tap)

    verify(name, stage, usual=True)
    assert len(tap.calls) > 5


@pytest.mark.timeout(300)  # seconds where nothing else runs; the machine may be busy
@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_job_survives_a_fault_at_every_call(name, fault):
    """Whatever fails, once, anywhere: the same promises hold in the end."""
    counted = Tap()
    play(name, counted)
    failures = []

    for at, call in enumerate(counted.calls):
        tap = Tap(at=at, fault=fault)
        try:
            stage = play(name, tap)
            assert tap.struck == call, "the same run makes the same calls"
            verify(name, stage, usual=False)
        except AssertionError as error:
            failures.append(f"{fault} {call} (call {at}): {error}")

    assert not failures, f"{len(failures)} of {len(counted.calls)}:\n" + "\n".join(failures[:20])


def test_a_duplicate_call_is_always_flagged():
    """Safe work may be repeated after an unknown outcome, and then says so."""
    for at, call in enumerate(_calls("synchronous")):
        for fault in (Fault.KILL_AFTER, Fault.LOST):
            stage = play("synchronous", Tap(at=at, fault=fault))
            job = checks.jobs_of(stage)[0]
            if checks.calls_for(stage, job) > 1:
                assert job.possible_duplicate, (call, fault)
            assert job.status is Status.SUCCEEDED


def _calls(name: str) -> list[str]:
    tap = Tap()
    play(name, tap)
    return tap.calls
