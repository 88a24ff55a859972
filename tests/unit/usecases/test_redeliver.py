"""An owner asks for a notification again, and gets it under the id it always had."""

from __future__ import annotations

import json

import pytest

from breakwater.domain.callbacks import Disabled, Retry
from breakwater.entry.api import api
from tests.unit.usecases.test_notify import DAY, URL, ended, let_pass, world_with_callbacks


def ask(world, job_id, owner="acme", scopes="submit read"):
    """`POST /v1/jobs/{id}/notify`; the status and the answer."""
    path = f"/v1/jobs/{job_id}/notify"
    event = {
        "requestContext": {
            "requestId": "r-1",
            "http": {"method": "POST", "path": path},
            "authorizer": {"lambda": {"owner_key": owner, "key_id": "k", "scopes": scopes}},
        }
    }
    answer = api(world.deps, event)
    return answer["statusCode"], json.loads(answer["body"])


def test_a_delivered_notification_is_sent_again_under_its_id():
    """The receiver drops it if it had it; who asked stands in the job's audit."""
    world = world_with_callbacks()
    job_id = ended(world)
    world.settle()

    status, told = ask(world, job_id)
    world.settle()

    assert (status, told["notification"]["state"]) == (202, "owed")
    assert len(world.notifier.sent) == 2
    assert len({(one.webhook_id, one.payload) for one in world.notifier.sent}) == 1
    (audit,) = world.store.children(job_id, "AUDIT#")
    assert (audit.data["what"], audit.data["by"]) == ("redeliver", "acme")


def test_asking_ends_the_rest_of_a_disabled_callback():
    """The receiver is repaired: this message goes out, and later ones too."""
    world = world_with_callbacks()
    world.notifier.script = [Disabled("gone")]
    first = ended(world)
    world.settle()
    world.clock.advance(1_000)

    ask(world, first)
    world.settle()
    second = ended(world, key="k-2")
    world.settle()

    assert world.job(first).notify_reason is None
    assert world.job(second).notify_reason is None
    assert len(world.notifier.sent) == 3


def test_a_read_that_lags_behind_the_request_does_not_give_up():
    """What disabled the callback is older than the owner's wish."""
    world = world_with_callbacks()
    world.notifier.script = [Disabled("gone")]
    job_id = ended(world)
    world.settle()
    stale = {"disabled": "gone", "at": world.clock.now()}
    world.clock.advance(1_000)
    ask(world, job_id)
    world.store.latest = lambda _key: stale

    world.settle()

    assert world.job(job_id).notify_reason is None
    assert len(world.notifier.sent) == 2


def test_three_days_begin_anew():
    """A message that was given up long ago is tried for as long as a new one."""
    world = world_with_callbacks()
    world.notifier.always = Retry("http_500")
    job_id = ended(world)
    world.effects(job_id)
    let_pass(world, job_id, 4 * DAY)
    tried = len(world.notifier.sent)

    ask(world, job_id)
    world.effects(job_id)
    let_pass(world, job_id, 4 * DAY)

    assert len(world.notifier.sent) == 2 * tried


def test_asking_while_it_is_owed_tries_now():
    """Nobody has to wait for the time-table."""
    world = world_with_callbacks()
    world.notifier.script = [Retry("timeout", 3_600_000)]
    job_id = ended(world)
    world.pump()

    ask(world, job_id)
    world.pump()

    assert len(world.notifier.sent) == 2
    assert world.job(job_id).owed == {}


@pytest.mark.parametrize(("owner", "scopes", "status"), [("other", "submit", 404), ("acme", "read", 403)])
def test_only_the_owner_with_the_right_to_submit_may_ask(owner, scopes, status):
    """Another owner's job is not there; a key that only reads may not send."""
    world = world_with_callbacks()
    job_id = ended(world)

    assert ask(world, job_id, owner, scopes)[0] == status


def test_before_the_end_there_is_nothing_to_send():
    """It comes by itself."""
    world = world_with_callbacks()
    job_id = world.submit(callback_url=URL).job.job_id

    status, told = ask(world, job_id)

    assert (status, told["rule"]) == (409, "final")


def test_a_job_without_a_callback_has_nothing_to_send():
    """There is no URL to send to."""
    world = world_with_callbacks()
    job_id = world.submit().job.job_id
    world.settle()

    status, told = ask(world, job_id)

    assert (status, told["rule"]) == (400, "callback_url")
