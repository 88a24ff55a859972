"""Every alarm on a trend fires: the situation is built, its own log lines are fed to the template's alarm.

Lines are the functions' real ones in the embedded metric format; the alarm is the template's, in a local CloudWatch of
an account of its own. The healthy case must leave each alarm silent.
"""

from __future__ import annotations

import io
import itertools
import time
from dataclasses import replace

import pytest

from breakwater.domain.callbacks import Retry
from breakwater.domain.errors import StoreUnavailable
from breakwater.domain.signals import ErrorClass
from breakwater.entry.api import api
from breakwater.telemetry import JsonLog
from tests.fakes.clock import FakeClock
from tests.fakes.outside import refusal
from tests.support.template import resources
from tests.support.webhooks import OTHER, completed, event, post, signed
from tests.support.world import World
from tools.localcloud.pump import metric_points

STAGE = "local"
MINUTE = 60_000
_accounts = itertools.count(111_000_000_000)


class Crash(BaseException):
    """The process is gone."""


class Watched(World):
    """A world whose log lines are kept as they are written."""

    def __init__(self):
        super().__init__(clock=FakeClock(now=int(time.time() * 1000)))
        self.text = io.StringIO()
        log = JsonLog(self.clock.now, self.text, namespace=f"Breakwater/{STAGE}")
        self.log = log
        self.deps = replace(self.deps, log=log)


def slow_workers(world):
    """Ready work waits ten minutes for a worker."""
    job_id = world.submit().job.job_id
    world.clock.advance(10 * MINUTE)
    world.worker(job_id)


def no_workers(world):
    """Nobody answers, so the sweep nudges again and again."""
    for number in range(6):
        world.submit(key=f"k{number}")
    world.queues.sent = {queue: [] for queue in world.queues.sent}
    for _ in range(2):
        world.clock.advance(5 * MINUTE)
        world.sweep()


def provider_fails(world):
    """Half of the work dies."""
    for number in range(4):
        world.submit(key=f"k{number}")
        world.provider.script = [refusal(ErrorClass.CALLER_FAULT, 400)] * (number % 2)
        world.settle(5)


def too_fast(world):
    """A 429 every few seconds, each waited out as told."""
    world.provider.script = [refusal(ErrorClass.PACING, 429, retry_after_ms=1_000)] * 40
    for number in range(15):
        world.submit(key=f"k{number}")
        for _ in range(3):
            world.pump()
            world.clock.advance(2_000)


def workers_die(world):
    """Three workers are gone in the middle of a call."""

    def dies(_call):
        raise Crash

    for number in range(3):
        job_id = world.submit(key=f"k{number}").job.job_id
        world.provider.script = [dies]
        with pytest.raises(Crash):
            world.worker(job_id)
    world.clock.advance(5 * MINUTE)
    world.sweep()
    world.pump()


def webhooks_late(world):
    """A delivery waits ten minutes."""
    world.submit("summary")
    world.pump()
    world.provider.finish("resp_1")
    world.webhook("resp_1")
    delivery = next(sk for sk in (pk for pk, _ in world.store.items) if sk.startswith("DELIVERY#"))
    world.queues.sent = {queue: [] for queue in world.queues.sent}
    world.clock.advance(10 * MINUTE)
    world.deliver(delivery.removeprefix("DELIVERY#"))


def one_dies(world):
    """A request that the provider refuses."""
    world.submit()
    world.provider.script = [refusal(ErrorClass.CALLER_FAULT, 400)]
    world.pump()


def bus_is_gone(world):
    """An effect that fails for more than a day."""

    def fails(name, when):
        if (name, when) == ("put_event", "before"):
            raise StoreUnavailable

    world.bus.hook = fails
    job_id = world.submit().job.job_id
    world.worker(job_id)
    for _ in range(40):
        world.clock.advance(60 * MINUTE)
        world.effects(job_id)


def key_refused(world):
    """A provider takes our key no longer."""
    world.submit()
    world.provider.script = [refusal(ErrorClass.CREDENTIAL, 401)]
    world.pump()


def workflow_gone(world):
    """A deployment without the workflow whose jobs wait: each is held for a person."""
    for number in range(6):
        world.submit(key=f"k{number}")
    world.deps = replace(world.deps, catalogue=replace(world.deps.catalogue, policies={}))
    world.pump()


def secret_is_old(world):
    """The provider signs with a secret that we don't have."""
    body = completed()
    for number in range(6):
        post(world, event(body, signed(body, f"wh-{number}", world.clock.now(), OTHER)))


def table_is_gone(world):
    """Nothing can be read, so callers get a 503."""

    def fails(name, when):
        if (name, when) == ("get", "before"):
            raise StoreUnavailable

    who = {"owner_key": "acme", "key_id": "k", "scopes": "read"}
    path = f"/v1/jobs/{world.submit().job.job_id}"
    about = {"http": {"method": "GET", "path": path}, "requestId": "r-1", "authorizer": {"lambda": who}}
    world.store._hook = fails
    for _ in range(6):
        assert api(world.deps, {"requestContext": about, "headers": {}})["statusCode"] == 503


def receiver_is_gone(world):
    """A callback fails for three days."""
    world.control.owners["acme"] = {"callback_hosts": ["hooks.example.com"]}
    world.notifier.always = Retry("http_500")
    job_id = world.submit(callback_url="https://hooks.example.com/x").job.job_id
    world.worker(job_id)
    for _ in range(4 * 24):
        world.effects(job_id)
        world.clock.advance(60 * MINUTE)


SITUATIONS = {
    "queue-wait": slow_workers,
    "nudges-unanswered": no_workers,
    "success-rate": provider_fails,
    "provider-429": too_fast,
    "lease-expired": workers_die,
    "webhook-delay": webhooks_late,
    "new-dead-letters": one_dies,
    "effect-given-up": bus_is_gone,
    "account-refused": key_refused,
    "jobs-held": workflow_gone,
    "webhook-refused": secret_is_old,
    "api-failing": table_is_gone,
    "notification-given-up": receiver_is_gone,
}


def alarms():
    """The template's alarms on our own metrics, by name."""
    found = resources("AWS::CloudWatch::Alarm").values()
    ours = [one for one in found if one["Namespace"] == {"Fn::Sub": "Breakwater/${Stage}"}]
    return {one["AlarmName"]["Fn::Sub"].removeprefix("breakwater-${Stage}-"): one for one in ours}


def state_after(cloud, name, lines):
    """The alarm's state after these log lines."""
    client = cloud.client("cloudwatch", str(next(_accounts)))
    alarm = alarms()[name]
    numbers = ("Period", "EvaluationPeriods", "DatapointsToAlarm")
    client.put_metric_alarm(
        AlarmName=name,
        Namespace=f"Breakwater/{STAGE}",
        MetricName=alarm["MetricName"],
        Statistic=alarm["Statistic"],
        Threshold=float(alarm["Threshold"]),
        ComparisonOperator=alarm["ComparisonOperator"],
        TreatMissingData=alarm["TreatMissingData"],
        **{key: int(alarm[key]) for key in numbers if key in alarm},
    )
    # The template's alarms have no dimensions: only points without any count.
    points = [point for line in lines for _, point in metric_points(line) if not point["Dimensions"]]
    for start in range(0, len(points), 500):
        client.put_metric_data(Namespace=f"Breakwater/{STAGE}", MetricData=points[start : start + 500])
    return client.describe_alarms(AlarmNames=[name])["MetricAlarms"][0]["StateValue"]


@pytest.mark.parametrize("name", sorted(SITUATIONS))
def test_an_alarm_fires_in_its_situation_and_is_silent_on_a_good_day(dynamo_cloud, name):
    """The lines of the situation flip the alarm; those of healthy work don't."""
    bad, good = Watched(), Watched()
    SITUATIONS[name](bad)
    for number in range(5):
        good.submit(key=f"k{number}")
        good.submit("summary", key=f"s{number}")
        good.pump()
        good.provider.finish(f"resp_{number + 1}")
        good.webhook(f"resp_{number + 1}")
        good.settle(5)

    assert state_after(dynamo_cloud, name, bad.text.getvalue().splitlines()) == "ALARM"
    assert state_after(dynamo_cloud, name, good.text.getvalue().splitlines()) != "ALARM"


def test_every_alarm_on_our_own_metrics_is_drilled():
    """A new alarm needs its situation here; a silent sweep has no lines, so its metric is checked by itself."""
    assert set(alarms()) == {*SITUATIONS, "sweep-silent"}


def test_a_sweep_says_that_it_ran():
    """No line within five minutes is the alarm: missing data counts as breaching."""
    world = Watched()
    world.sweep()

    points = [point for line in world.text.getvalue().splitlines() for _, point in metric_points(line)]

    assert any(point["MetricName"] == "SweepRan" for point in points)
    assert alarms()["sweep-silent"]["TreatMissingData"] == "breaching"
