"""The same world over real DynamoDB and SQS, where a process is a forked child and its death is SIGKILL.

What must outlive a process stands outside it (`beyond.py`); what goes wrong is done by `wire.py`. This object only
drives: it hands messages to functions, lets webhooks come and time pass, and can go on where a dead one stopped.
"""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import boto3
from botocore.config import Config

from breakwater.domain.errors import Unavailable
from breakwater.domain.obligations import Queue
from breakwater.domain.request import parse
from breakwater.domain.results import Completed, Running
from breakwater.domain.routes import Catalogue
from breakwater.entry.queue import consume
from breakwater.store.queues import SqsQueues
from breakwater.store.table import DynamoJobStore
from breakwater.usecases.admit import admit
from breakwater.usecases.cancel import cancel
from breakwater.usecases.complete import complete
from breakwater.usecases.deliver import deliver
from breakwater.usecases.deps import Deps
from breakwater.usecases.effects import effects
from breakwater.usecases.intake import Facts, IntakeDeps, take
from breakwater.usecases.principal import Principal
from breakwater.usecases.step import Told, step
from breakwater.usecases.sweep import sweep
from tests.crash.beyond import Journal, OutsideBus, OutsideProvider, SharedClock
from tests.crash.tap import Tap, Tapped, TappedProvider
from tests.crash.wire import Wire
from tests.fakes.outside import FakeControl, FakeLog, FakePayloads
from tests.support.catalogue import policy, route

VISIBILITY = 360_000
FUNCTION_MS = 50_000
MINUTE = 60_000
HOUR = 3_600_000
SHOWN, LANE = "visible-at", "queue"


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


@dataclass
class Place:
    """Tables and queues of one local cloud, shared by all runs."""

    cloud: Any
    table: str
    queue: str  # one for all lanes: a message says which it was sent to
    dead_letters: str

    def client(self, service: str) -> Any:
        """A client as the functions build it: standard retries, of which none sleeps here."""
        session = boto3.session.Session("test", "any", region_name="us-east-1")
        config = Config(retries={"mode": "standard", "total_max_attempts": 4}, read_timeout=20, proxies={})
        return session.client(service, endpoint_url=self.cloud.endpoint, config=config)


class RealStage:
    """One installation over the local cloud. Everything that acts can be killed; this object only drives."""

    def __init__(self, place: Place, clock: SharedClock, routes: Catalogue, tap: Tap) -> None:
        self.place, self.clock, self.tap = place, clock, tap
        self.wire, self.log = Wire(tap), FakeLog()
        self._driver, self._reader = place.client("sqs"), place.client("dynamodb")
        dynamo, sqs = place.client("dynamodb"), place.client("sqs")
        for operation in ("SendMessage", "SendMessageBatch"):
            sqs.meta.events.register(f"provide-client-params.sqs.{operation}", self._label)
        self.wire.watch(dynamo, "dynamodb")
        self.wire.watch(sqs, "sqs")
        self.store = DynamoJobStore(dynamo, place.table, lambda: os.urandom(8).hex())
        queues = SqsQueues(sqs, {queue: queue.value for queue in Queue}, place.dead_letters)
        self.deps = Deps(
            store=self.store,
            queues=queues,
            payloads=FakePayloads(),
            control=FakeControl(),
            catalogue=routes,
            clock=clock,
            log=self.log,
            draw=lambda: 0.5,
            code_version="test",
        )

    def begin(self, name: str, journal: Journal, plan: tuple[tuple[str, int], ...] = ()) -> None:
        """A new owner with a new provider: nothing of an earlier run is seen any more."""
        self.journal, self.name = journal, name
        self.begins: list[int] = []  # the calls with which a process begins
        self.owner = Principal(owner_key=f"owner-{name}", key_id="k", scopes=frozenset({"submit", "read"}))
        self.provider = OutsideProvider(journal, self.clock, plan=plan)
        bus = Tapped(OutsideBus(journal), "bus", self.tap, Unavailable)
        self.deps = replace(self.deps, providers=TappedProvider(self.provider, self.tap), bus=bus)
        self.log.steps.clear()
        self.log.notes.clear()

    def _label(self, params: dict[str, Any], **_more: Any) -> dict[str, Any]:
        """Delays are in the movable time: a message is sent at once, and says when it may be seen and by whom."""
        lane = params["QueueUrl"]
        if lane == self.place.dead_letters:
            return params
        entries = [self._labelled(lane, entry) for entry in params.get("Entries", [])]
        more = {"Entries": entries} if entries else self._labelled(lane, params)
        return {**params, **more, "QueueUrl": self.place.queue}

    def _labelled(self, lane: str, message: dict[str, Any]) -> dict[str, Any]:
        at = self.clock.now() + message.pop("DelaySeconds", 0) * 1_000
        labels = {SHOWN: str(at), LANE: lane}
        named = {name: {"DataType": "String", "StringValue": value} for name, value in labels.items()}
        return {**message, "MessageAttributes": named}

    def close(self) -> None:
        """Let go of every connection."""
        for client in (*self.wire.clients, self._driver, self._reader):
            client.close()

    # --- what callers do

    def submit(self, workflow: str) -> str:
        body = {"workflow": workflow, "input": {"messages": [{"role": "user", "content": "hello"}]}}
        while True:
            self.process()
            try:
                return admit(self.deps, self.owner, parse(body), "k-1", "request-1").job.job_id
            except Unavailable:
                self.clock.advance(1_000)

    def cancel(self, job_id: str) -> None:
        self.process()
        job = self.store.get(job_id)
        assert job is not None
        cancel(self.deps, job, self.owner.owner_key)

    def tell(self, name: str) -> None:
        self.process()
        intake = IntakeDeps(
            store=self.store,
            queues=self.deps.queues,
            payloads=lambda: self.deps.payloads,
            clock=self.clock,
            log=self.log,
        )
        facts = Facts(event_type="response.completed", provider_job_id=name)
        take(intake, "openai", self.delivery(name), b"{}", facts)
        self.journal.write("told", name=name)

    def delivery(self, name: str) -> str:
        """The webhook id under which a provider job is reported."""
        return f"wh-{self.name}-{name}"

    # --- what time does

    def run(self, until: Callable[[], bool] | None = None, most: int = 200) -> None:
        """Let everything happen in its order until nothing is left to happen (or `until` says so)."""
        for _ in range(most):
            if until is not None and until():
                return
            if self._webhooks():
                continue
            waiting = self.peek()
            if self._messages(waiting):
                continue
            following = self._following(waiting)
            if following is None:
                return
            if following > self.clock.now():
                self.clock.set(following)
            if self._due(self.clock.now()):
                self.process()
                sweep(self.deps, lambda: FUNCTION_MS)
        raise AssertionError("never comes to rest")

    def _webhooks(self) -> bool:
        told = {one["name"] for one in self.journal.read("told")}
        for one in self.journal.read("call"):
            if one["name"] and one["name"] not in told and isinstance(self.provider.outcome(one["name"]), Completed):
                self.tell(one["name"])
                return True
        return False

    def _messages(self, waiting: list[dict[str, Any]]) -> bool:
        """Hand every visible message to its function; whether there was one."""
        visible = [message for message in waiting if self._shown(message) <= self.clock.now()]
        for message in visible:
            self._handle(message)
        return bool(visible)

    def peek(self) -> list[dict[str, Any]]:
        """Whatever is on its way, seen without taking it."""
        answered = self._driver.receive_message(
            QueueUrl=self.place.queue, MaxNumberOfMessages=10, VisibilityTimeout=0, MessageAttributeNames=["All"]
        )
        return list(answered.get("Messages", []))

    def _shown(self, message: dict[str, Any]) -> int:
        """When a message may be received: after its delay, and while nobody has it."""
        delayed = message["MessageAttributes"][SHOWN]["StringValue"]
        held = [one["until"] for one in self.journal.read("received") if one["id"] == message["MessageId"]]
        return max(int(delayed), *held, 0)

    def at_rest(self) -> bool:
        """Nothing is on its way that anybody could handle now."""
        return not [message for message in self.peek() if self._shown(message) <= self.clock.now()]

    def _handle(self, message: dict[str, Any]) -> None:
        self.process()
        self.journal.write("received", id=message["MessageId"], until=self.clock.now() + VISIBILITY)
        record = {"messageId": message["MessageId"], "body": message["Body"]}
        queue = Queue(message["MessageAttributes"][LANE]["StringValue"])
        work = {Queue.COMPLETION: self._complete, Queue.EFFECTS: self._effects}.get(queue, self._work)
        if not consume({"Records": [record]}, None, self.log, work)["batchItemFailures"]:
            self._driver.delete_message(QueueUrl=self.place.queue, ReceiptHandle=message["ReceiptHandle"])

    def process(self) -> None:
        """A process of its own begins with the next call."""
        self.begins.append(len(self.tap.calls))

    def _work(self, _kind: str, item_id: str, record: dict[str, Any]) -> None:
        step(self.deps, item_id, lambda: FUNCTION_MS, Told(message_id=record["messageId"], receive_count=1))

    def _complete(self, kind: str, item_id: str, _record: dict[str, Any]) -> None:
        (deliver if kind == "delivery" else complete)(self.deps, item_id)

    def _effects(self, _kind: str, item_id: str, _record: dict[str, Any]) -> None:
        effects(self.deps, item_id)

    def _following(self, waiting: list[dict[str, Any]]) -> int | None:
        """When something happens next: a message shows, a provider job ends, an item falls due at a full minute."""
        times = [self._minute(at) for at in self._due_times()]
        times += [self._shown(message) for message in waiting]
        told = {one["name"] for one in self.journal.read("told")}
        for one in self.journal.read("call"):
            if one["name"] and one["name"] not in told and isinstance(self.provider.outcome(one["name"]), Running):
                times.append(one["at"] + self.provider.takes)
        return min(times, default=None)

    def _minute(self, at: int) -> int:
        now = self.clock.now()
        return now if at <= now else at + (-at) % MINUTE

    def _due(self, now: int) -> bool:
        return any(at <= now for at in self._due_times())

    def _due_times(self) -> Iterator[int]:
        """Of this run's items, read past the functions' own client so that it is not counted."""
        names = [one["name"] for one in self.journal.read("call") if one["name"]]
        keys = [f"JOB#{job_id}" for job_id in self.job_ids()]
        for key in (*keys, *(f"DELIVERY#openai#{self.delivery(name)}" for name in names)):
            item = self.item(key, "META")
            if item and "due_at" in item:
                yield int(item["due_at"]["N"])

    def job_ids(self) -> list[str]:
        """Every job of this run's owner."""
        page = self._reader.query(
            TableName=self.place.table,
            IndexName="owner",
            KeyConditionExpression="owner_shard = :owner",
            ExpressionAttributeValues={":owner": {"S": self.owner.owner_key}},
        )
        return [item["pk"]["S"].removeprefix("JOB#") for item in page["Items"]]

    def item(self, pk: str, sk: str) -> dict[str, Any] | None:
        """One item as it stands."""
        key = {"pk": {"S": pk}, "sk": {"S": sk}}
        found = self._reader.get_item(TableName=self.place.table, Key=key, ConsistentRead=True).get("Item")
        return dict(found) if found else None

    def partition(self, pk: str) -> list[dict[str, Any]]:
        """Every item under a key."""
        pages = self._reader.get_paginator("query").paginate(
            TableName=self.place.table,
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": {"S": pk}},
        )
        return [item for page in pages for item in page["Items"]]

    def dead_letters(self) -> list[dict[str, Any]]:
        """References of this run's owner in the queue for people."""
        answered = self._driver.receive_message(
            QueueUrl=self.place.dead_letters, MaxNumberOfMessages=10, VisibilityTimeout=0
        )
        found = [json.loads(one["Body"]) for one in answered.get("Messages", [])]
        return [one for one in found if one.get("owner_key") == self.owner.owner_key]


def begin_at(stage: RealStage, run: str, journal: Journal, plan: tuple[tuple[str, int], ...] = ()) -> None:
    """A clean start an hour later, with nothing armed."""
    stage.clock.advance(HOUR - stage.clock.now() % HOUR)
    stage.tap.at, stage.tap.fault, stage.tap.struck = None, None, None
    stage.tap.calls.clear()
    stage.begin(run, journal, plan)


def in_child(work: Callable[[], None]) -> int:
    """Run something in a forked child; its exit status, negative for a signal. Errors are printed and are status 1."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:  # noqa: BLE001 - a child must never return into its parent's code
            traceback.print_exc()
        finally:
            os._exit(status)
    _, raw = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(raw)
