"""The scheduler and the cron function over real tables and queues: one window, one job, whoever asks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from breakwater import wiring
from breakwater.domain.obligations import Queue
from tests.support.lambdas import installed, sample

SECRET = "a-secret-of-twenty-four-chars"
WINDOW = 600_000


@pytest.fixture
def installation(tables, monkeypatch, tmp_path):
    """An installation with one schedule, at the beginning of a window."""
    for made in installed(tables, monkeypatch, tmp_path):
        made.clock._now = made.clock.now() // WINDOW * WINDOW + 2_000
        made.secret("CRON_SECRETS_SECRET", {"CRON_SECRET": SECRET})
        yield made


def jobs(_installation):
    """Ids of the owner's jobs."""
    return wiring.store().by_owner("acme", 50, None)[0]


def cron(installation, secret=SECRET):
    """One call of an outside scheduler."""
    return installation.http("cron", sample("cron", cron_secret=secret))


def test_a_tick_makes_one_job_and_nudges_its_worker(installation):
    """The handler creates and returns; the job is worked on elsewhere."""
    told = installation.call("scheduler", sample("scheduler"))

    (job_id,) = jobs(installation)
    job = installation.job(job_id)
    assert told["ticked"]["created"] == 1
    assert job.idempotency_key.startswith("schedule:nightly:20")
    assert installation.received(Queue.BACKGROUND) == [{"kind": "job", "id": job_id}]


def test_schedulers_that_run_at_once_make_one_job(installation):
    """Six ticks and six calls from outside at the same moment."""
    installation.call("authorizer", sample("authorizer", api_key="nobody"))
    wiring.schedules()

    with ThreadPoolExecutor(6) as pool:
        ticks = [pool.submit(installation.call, "scheduler", sample("scheduler")) for _ in range(6)]
        calls = [pool.submit(cron, installation) for _ in range(6)]

    assert [one.result()["ticked"]["failed"] for one in ticks] == [0] * 6
    assert len(jobs(installation)) == 1
    assert {one.result()[1]["job_id"] for one in calls} <= {jobs(installation)[0], None}


def test_later_windows_follow_the_overlap_rule(installation):
    """The first job is not final, so the second window is passed over; then the third runs."""
    installation.call("scheduler", sample("scheduler"))
    (first,) = jobs(installation)
    installation.clock.advance(WINDOW)
    held = installation.call("scheduler", sample("scheduler"))
    installation.http("admission", sample("admission-cancel", job_id=first))
    installation.clock.advance(WINDOW)

    told = installation.call("scheduler", sample("scheduler"))

    assert (held["ticked"]["passed_over"], held["ticked"]["created"]) == (1, 0)
    assert told["ticked"]["created"] == 1
    assert len(jobs(installation)) == 2


def test_an_outside_scheduler_gets_the_windows_job(installation):
    """Created by its first call, found by the next, and by our own tick."""
    status, told = cron(installation)
    again = cron(installation)
    tick = installation.call("scheduler", sample("scheduler"))

    assert (status, told["result"]) == (202, "created")
    assert again == (200, {**told, "result": "exists"})
    assert tick["ticked"]["created"] == 0
    assert jobs(installation) == [told["job_id"]]


def test_without_the_secret_nothing_is_made(installation):
    """401, whatever else is right."""
    assert cron(installation, "another-secret-of-some-length")[0] == 401
    assert jobs(installation) == []


def test_a_rotated_secret_counts_within_a_minute(installation):
    """Both count while they overlap; the old one ends with its entry."""
    cron(installation)
    installation.secret("CRON_SECRETS_SECRET", {"CRON_SECRET": ["a-new-secret-of-some-length"]})

    installation.clock.advance(61_000)

    assert cron(installation, "a-new-secret-of-some-length")[0] == 200
    assert cron(installation)[0] == 401
