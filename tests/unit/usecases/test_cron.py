"""An outside scheduler gets the job of the planned window, however late it calls, and nothing without its secret."""

from __future__ import annotations

import json

import pytest

from breakwater.domain.errors import SecretUnavailable
from breakwater.entry.cron import cron
from tests.support.world import World
from tests.unit.usecases.test_tick import START, jobs, run, schedule

MINUTE = 60_000
SECRET = "a-secret-of-twenty-four-chars"


def world_at(offset_ms=0):
    """A world whose clock stands at the full hour, or a little later."""
    world = World()
    world.clock._now = START + offset_ms
    return world


def call(world, one=None, token=SECRET, secrets=None, name="nightly", method="GET", headers=None):
    """One call; its status and what it says."""
    event = {
        "headers": {"Authorization": f"Bearer {token}"} if headers is None else headers,
        "pathParameters": {"schedule": name},
        "requestContext": {"requestId": "r-1", "http": {"method": method, "path": f"/v1/cron/{name}"}},
    }
    known = {"CRON_SECRET": SECRET} if secrets is None else secrets
    answer = cron(world.deps, {"nightly": one or schedule()}, lambda: known, event)
    return answer["statusCode"], json.loads(answer["body"])


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_call_makes_the_windows_job_and_answers_its_id(method):
    """Vercel's scheduler sends GET, others POST."""
    world = world_at(2_000)

    status, told = call(world, method=method)

    (job,) = jobs(world)
    assert status == 202
    assert told == {
        "schedule": "nightly",
        "window": "2027-01-15T08:00:00Z",
        "job_id": job.job_id,
        "result": "created",
    }


def test_the_window_is_the_planned_one_not_the_arrival():
    """Early by a clock's skew, on time, repeated and nine minutes late: one job."""
    world = world_at(-3_000)
    told = [call(world)]

    for wait in (3_000, 55_000, 8 * MINUTE):
        world.clock.advance(wait)
        told.append(call(world))

    assert [status for status, _ in told] == [202, 200, 200, 200]
    assert len({body["job_id"] for _, body in told}) == 1
    assert len(jobs(world)) == 1


def test_our_own_tick_and_an_outside_call_make_one_job():
    """Whoever comes first creates it."""
    world = world_at()
    run(world, schedule())

    status, told = call(world)

    assert (status, told["result"]) == (200, "exists")
    assert told["job_id"] == jobs(world)[0].job_id


def test_a_first_call_long_after_the_window_still_runs_it():
    """Somebody asked for it, so the rule for windows that nobody ticked does not apply."""
    world = world_at(9 * MINUTE)

    assert call(world, schedule(missed="skip"))[1]["result"] == "created"


def test_a_call_while_the_earlier_run_is_at_it_follows_the_overlap_rule():
    """Answered as done, since there is nothing the caller could do better."""
    world = world_at()
    call(world)
    world.clock.advance(10 * MINUTE)

    status, told = call(world)

    assert (status, told["result"], told["job_id"]) == (200, "running", None)
    assert len(jobs(world)) == 1


def test_a_window_that_was_passed_over_stays_passed_over():
    """A repeated call does not bring it back."""
    world = world_at()
    call(world)
    world.clock.advance(10 * MINUTE)
    call(world)
    world.settle()
    world.clock._now = START + 11 * MINUTE

    assert call(world)[1]["result"] == "passed_over"


def test_a_pause_that_skips_schedules_holds_for_outside_calls():
    """The operator's switch is stronger than the caller."""
    world = world_at()
    world.control.thrown = {"pause": {"workflows": ["sync"], "schedules": "skip"}}

    assert call(world)[1]["result"] == "paused"
    assert jobs(world) == []


def test_a_backfill_is_not_cut_short_by_a_call():
    """What was missed is made up for, the asked window with it."""
    world, one = world_at(), schedule(overlap="allow", missed="backfill", max_backfill=3)
    call(world, one)
    world.clock.advance(30 * MINUTE)

    status, told = call(world, one)

    assert (status, told["result"]) == (202, "created")
    assert len(jobs(world)) == 4


def test_a_schedule_that_is_off_is_refused():
    """Its caller learns that it is off, as a conflict."""
    status, told = call(world_at(), schedule(enabled=False))

    assert (status, told["rule"]) == (409, "enabled")


def test_a_calendar_without_a_run_so_far_has_no_window(monkeypatch):
    """Nothing was planned yet, and nothing is made."""
    world = world_at()
    monkeypatch.setattr("breakwater.usecases.cron.planned_window", lambda *_: None)

    assert call(world)[1]["result"] == "nothing_planned"
    assert jobs(world) == []


def test_an_unknown_schedule_is_404_for_who_knows_the_secret_only():
    """Without it nobody learns which names there are."""
    assert call(world_at(), name="other")[0] == 404
    assert call(world_at(), name="other", token="wrong-" + SECRET)[0] == 401


@pytest.mark.parametrize(
    "headers",
    [
        {},
        None,
        {"authorization": SECRET},
        {"authorization": f"Basic {SECRET}"},
        {"authorization": "Bearer "},
        {"authorization": f"Bearer {SECRET}x"},
        {"authorization": f"Bearer {SECRET[:-1]}"},
        {"authorization": "Bearer \ud800\ud800"},
        {"authorization": "Bearer é"},
    ],
)
def test_anything_but_the_bearer_secret_is_401(headers):
    """No crash, no hint, no job."""
    world = world_at()

    status, told = call(world, headers=headers or {})

    assert (status, told) == (401, {"result": "unauthorized"})
    assert world.log.notes == [("cron_refused", {"why": "wrong_secret"})]
    assert jobs(world) == []


@pytest.mark.parametrize(
    "secrets",
    [
        {},
        {"CRON_SECRET": ""},
        {"CRON_SECRET": "   "},
        {"CRON_SECRET": None},
        {"CRON_SECRET": []},
        {"CRON_SECRET": "short"},
        {"CRON_SECRET": 7},
    ],
)
def test_a_missing_or_empty_secret_refuses_everything_and_says_so(secrets):
    """An empty configuration never means an open door."""
    world = world_at()

    assert call(world, secrets=secrets, token="")[0] == 401
    assert call(world, secrets=secrets, token="short")[0] == 401
    assert {more["why"] for _, more in world.log.notes} == {"no_usable_secret"}


def test_a_secret_store_that_does_not_answer_refuses():
    """As without a secret."""
    world = world_at()

    def fail():
        raise SecretUnavailable

    event = {"headers": {"authorization": f"Bearer {SECRET}"}, "pathParameters": {"schedule": "nightly"}}

    assert cron(world.deps, {"nightly": schedule()}, fail, event)["statusCode"] == 401


def test_both_secrets_of_a_rotation_are_taken():
    """The new one and the previous one, until it is removed."""
    both = {"CRON_SECRET": ["another-secret-that-is-new", SECRET]}

    assert call(world_at(), secrets=both)[0] == 202
    assert call(world_at(), secrets=both, token="another-secret-that-is-new")[0] == 202
