"""An owner's callback hears of every end, under one id, for three days, and says in the job why it did not."""

from __future__ import annotations

import json
import time

import pytest
from standardwebhooks import Webhook

from breakwater.domain.callbacks import Delivered, Disabled, Refused, Retry
from breakwater.domain.errors import InvalidRequest, SecretUnavailable
from breakwater.domain.job import Owed
from breakwater.domain.records import effect_child_key
from breakwater.domain.signals import ErrorClass
from breakwater.domain.signature import sign
from breakwater.usecases.again import again
from breakwater.usecases.effects import effect_id
from breakwater.usecases.notify import notify, shown
from breakwater.usecases.read import view
from tests.fakes.outside import refusal
from tests.support.world import World

URL = "https://hooks.example.com/breakwater?team=a"
HOUR, DAY = 3_600_000, 86_400_000
OWN, NEW = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4", "whsec_MTExMTExMTExMTExMTExMTExMTExMTEx"


def world_with_callbacks(**more):
    """A world in which acme may be called back at one host."""
    world = World(**more)
    world.control.owners["acme"] = {"callback_hosts": ["hooks.example.com"]}
    return world


def ended(world, **more):
    """A job with a callback that has succeeded; effects not yet delivered."""
    job_id = world.submit(callback_url=URL, **more).job.job_id
    world.worker(job_id)
    return job_id


def let_pass(world, job_id, ms, step=10 * 60_000):
    """Let time pass and deliver what becomes due."""
    for _ in range(-(-ms // step)):
        world.clock.advance(step)
        world.effects(job_id)


def test_a_success_is_told_under_the_effects_own_id():
    """Signed with the owner's secret, with the same detail as the bus event, and never with content."""
    world = world_with_callbacks()
    world.secrets["acme"] = [OWN]
    job_id = ended(world)

    assert world.effects(job_id) == "delivered"

    (sent,) = world.notifier.sent
    body = json.loads(sent.payload)
    assert (sent.url, sent.secrets) == (URL, (OWN,))
    assert sent.webhook_id == world.bus.events[0][0].replace("bus_event", "notify")
    assert (body["type"], body["data"]["job_id"], body["data"]["version"]) == ("job.succeeded", job_id, 1)
    assert body["data"] == world.bus.events[0][2]
    assert b"hello" not in sent.payload
    job = world.job(job_id)
    assert view(world.deps, job)["notification"] == {"state": "delivered"}
    assert job.owed == {}


def test_a_receiver_built_with_the_public_library_takes_what_is_signed():
    """The signature over the payload verifies, with either secret of a rotation."""
    world = world_with_callbacks()
    world.secrets["default"] = [NEW, OWN]
    world.effects(ended(world))
    (sent,) = world.notifier.sent
    stamp = int(time.time())
    headers = {
        "webhook-id": sent.webhook_id,
        "webhook-timestamp": str(stamp),
        "webhook-signature": sign(sent.secrets, sent.webhook_id, stamp, sent.payload),
    }

    for secret in (OWN, NEW):
        assert Webhook(secret).verify(sent.payload, headers)["type"] == "job.succeeded"


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (lambda world, _job: world.provider.script.append(refusal(ErrorClass.CALLER_FAULT, 400)), "job.dead_letter"),
        (lambda world, job: world.cancel(job), "job.cancelled"),
    ],
)
def test_every_end_is_told(spoil, kind):
    """A dead letter and a cancel are ends as well."""
    world = world_with_callbacks()
    job_id = world.submit(callback_url=URL).job.job_id
    spoil(world, job_id)

    world.settle()

    assert [json.loads(one.payload)["type"] for one in world.notifier.sent] == [kind]


def test_a_receiver_that_is_down_is_tried_for_three_days_and_not_longer():
    """Every try has the same id; then the job says why, and nothing is owed."""
    world = world_with_callbacks()
    world.notifier.always = Retry("http_500")
    job_id = ended(world)
    world.effects(job_id)

    let_pass(world, job_id, 4 * DAY)

    times = [one.at - world.notifier.sent[0].at for one in world.notifier.sent]
    assert 10 <= len(times) <= 12
    assert 2 * DAY < times[-1] <= 3 * DAY
    assert len({one.webhook_id for one in world.notifier.sent}) == 1
    job = world.job(job_id)
    assert (job.owed, job.notify_reason) == ({}, "http_500")
    assert view(world.deps, job)["notification"] == {"state": "not_delivered", "reason": "http_500"}
    record = world.store.child(job_id, effect_child_key("notify#1"))
    assert record.data["given_up"] == "http_500"
    assert job.due_at is None


def test_while_it_is_owed_the_job_says_when_it_is_tried_again():
    """An owner sees that it failed, how often, and what comes next."""
    world = world_with_callbacks()
    world.notifier.script = [Retry("timeout")]
    job_id = ended(world)

    assert world.effects(job_id) == "postponed"

    shown = view(world.deps, world.job(job_id))["notification"]
    assert shown == {"state": "owed", "tries": 1, "next_at": world.clock.now() + 9_000, "reason": "timeout"}
    world.clock.advance(10_000)
    world.effects(job_id)
    assert view(world.deps, world.job(job_id))["notification"] == {"state": "delivered"}


def test_a_receiver_may_ask_to_wait():
    """`Retry-After` is a floor below our own time-table's next step."""
    world = world_with_callbacks()
    world.notifier.script = [Retry("http_429", 2 * HOUR)]
    job_id = ended(world)

    world.effects(job_id)

    assert world.job(job_id).owed["notify#1"].next_at == world.clock.now() + 2 * HOUR


def test_gone_ends_it_at_once_and_for_later_jobs_too():
    """410 means: no more. The next job is given up without a request, and says so."""
    world = world_with_callbacks()
    world.notifier.script = [Disabled("gone")]
    first = ended(world)
    world.effects(first)
    second = ended(world, key="k-2")

    world.effects(second)

    assert len(world.notifier.sent) == 1
    assert world.job(first).notify_reason == "gone"
    assert world.job(second).notify_reason == "disabled: gone"
    assert [more["why"] for name, more in world.log.notes if name == "notification_given_up"] == [
        "gone",
        "disabled: gone",
    ]


def test_a_callback_that_took_nothing_for_three_days_is_disabled():
    """Later jobs don't wait for a dead receiver."""
    world = world_with_callbacks()
    world.notifier.always = Retry("connect")
    first = ended(world)
    world.effects(first)
    let_pass(world, first, 4 * DAY)
    before = len(world.notifier.sent)

    second = ended(world, key="k-2")
    world.effects(second)

    assert len(world.notifier.sent) == before
    assert world.job(second).notify_reason == "disabled: connect"


def test_one_message_that_is_never_taken_does_not_disable_a_receiver_that_takes_others():
    """It may be the message: the receiver is well."""
    world = world_with_callbacks()
    world.notifier.script = [Retry("http_500")]
    first = ended(world)
    world.effects(first)
    world.clock.advance(2 * HOUR)
    world.notifier.script = [Delivered(204)]
    second = ended(world, key="k-2")
    assert world.effects(second) == "delivered"
    world.notifier.always = Retry("http_500")
    let_pass(world, first, 4 * DAY)
    world.notifier.always = None

    third = ended(world, key="k-3")
    world.effects(third)

    assert world.job(first).notify_reason == "http_500"
    assert world.job(third).notify_reason is None


@pytest.mark.parametrize("why", ["host_not_allowed", "address_not_public", "not_https"])
def test_what_we_must_not_send_is_given_up_at_once(why):
    """The owner's hosts changed, or the name points inside: trying again can't help."""
    world = world_with_callbacks()
    world.notifier.script = [Refused(why)]
    job_id = ended(world)

    world.effects(job_id)

    assert world.job(job_id).notify_reason == why
    assert world.job(job_id).owed == {}


def test_a_secret_that_is_not_there_yet_is_waited_for():
    """An operator can still put it in place within three days."""
    world = world_with_callbacks()
    world.secrets.clear()
    job_id = ended(world)
    world.effects(job_id)
    assert world.job(job_id).notify_reason == "no_usable_secret"

    world.secrets["default"] = OWN
    world.clock.advance(10_000)
    world.effects(job_id)

    assert [one.secrets for one in world.notifier.sent] == [(OWN,)]


def test_a_secret_store_that_does_not_answer_is_waited_for_too():
    """As if the secret were not there."""
    world = world_with_callbacks()
    job_id = ended(world)

    def fail():
        raise SecretUnavailable

    object.__setattr__(world.deps, "notify_secrets", fail)

    assert world.effects(job_id) == "postponed"
    assert world.bus.events != []


def test_a_crash_after_sending_sends_again_under_the_same_id():
    """At least once, and the receiver can tell."""
    world = world_with_callbacks()
    job_id = ended(world)
    crash = iter([True])

    def hook(name, when):
        if (name, when) == ("notify", "after") and next(crash, False):
            raise RuntimeError

    world.notifier.hook = hook
    with pytest.raises(RuntimeError):
        world.effects(job_id)
    world.settle()

    assert len(world.notifier.sent) == 2
    assert len({one.webhook_id for one in world.notifier.sent}) == 1
    assert len({one.payload for one in world.notifier.sent}) == 1


def test_each_generation_is_told_once():
    """A replay is a new promise: it has an id of its own."""
    world = world_with_callbacks()
    world.provider.script = [refusal(ErrorClass.SERVER_FAULT, 500)] * 20
    job_id = world.submit(callback_url=URL).job.job_id
    world.settle()
    again(world.deps, world.job(job_id), world.deps.catalogue.need_policy("sync"), "acme")
    world.provider.script = []
    world.settle()

    ids = [one.webhook_id for one in world.notifier.sent]
    assert ids == [effect_id(world.job(job_id), "notify#1"), effect_id(world.job(job_id), "notify#2")]
    assert [json.loads(one.payload)["type"] for one in world.notifier.sent] == ["job.dead_letter", "job.succeeded"]


def test_a_slow_receiver_holds_up_no_other_effect():
    """Usage, bus event and dead letter come first; a second message of the same job waits for the next nudge."""
    world = world_with_callbacks()
    order = []
    hook = lambda name, when: order.append(name) if when == "before" else None  # noqa: E731
    world.notifier.hook = world.bus.hook = hook
    job_id = ended(world)

    world.effects(job_id)

    assert order == ["put_event", "notify"]


def test_a_job_without_a_callback_owes_no_notification():
    """And says nothing about one."""
    world = world_with_callbacks()
    job_id = world.submit().job.job_id
    world.settle()

    assert world.notifier.sent == []
    assert "notification" not in view(world.deps, world.job(job_id))


def test_before_its_end_a_job_says_that_its_callback_waits():
    """Nothing is owed yet."""
    world = world_with_callbacks()
    job = world.submit(callback_url=URL).job

    assert view(world.deps, job)["notification"] == {"state": "waiting"}


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("http://hooks.example.com/x", "not_https"),
        ("https://other.example.com/x", "host_not_allowed"),
        ("https://user:pw@hooks.example.com/x", "credentials_in_url"),
        ("https://hooks.example.com:8443/x", "host_not_allowed"),
        ("https://hooks.example.com/\u00e9", "unreadable_url"),
        ("https://127.0.0.1/x", "host_not_allowed"),
    ],
)
def test_a_callback_that_could_never_be_reached_is_refused_at_once(url, rule):
    """The caller learns the rule and the fix, and no key is bound."""
    world = world_with_callbacks()

    with pytest.raises(InvalidRequest) as caught:
        world.submit(callback_url=url)

    assert (caught.value.field, caught.value.rule) == ("callback_url", rule)
    assert caught.value.fix
    assert world.store.items == {}


def test_an_owner_without_hosts_gets_no_callbacks():
    """Nothing is allowed until an operator says so, and settings that make no sense allow nothing."""
    for settings in ({}, {"callback_hosts": "hooks.example.com"}, {"callback_hosts": [7]}):
        world = World()
        world.control.owners["acme"] = settings

        with pytest.raises(InvalidRequest):
            world.submit(callback_url=URL)


def test_nothing_is_said_about_a_job_without_a_callback():
    """And nothing is sent, should it ever be asked for."""
    world = world_with_callbacks()
    job = world.submit().job

    assert shown(job) is None
    assert notify(world.deps, job, "id", {}, Owed(next_at=0)) is None
    assert world.notifier.sent == []
