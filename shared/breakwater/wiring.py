"""Which real things stand behind the ports? The only place that builds clients.

Nothing is built at import; each `for_…` function builds what one kind of function needs, once per process. What not
every function needs is imported there, too: everybody waits for what stands at the top.
"""

from __future__ import annotations

import json
import os
import random
import time
import uuid
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import botocore.session
from botocore.config import Config

from breakwater.clock import SystemClock
from breakwater.domain.errors import Defect, SecretUnavailable
from breakwater.domain.obligations import Queue
from breakwater.domain.timing import RENEW_TIMEOUT
from breakwater.settings import (
    CallbackSettings,
    ControlSettings,
    CronSettings,
    DrainSettings,
    EffectSettings,
    IntakeSettings,
    OperatorSettings,
    PayloadSettings,
    ProviderSettings,
    ReaderSettings,
    StoreSettings,
    StreamSettings,
    load,
)
from breakwater.store.budgets import Spent
from breakwater.store.control import ControlTable
from breakwater.store.payloads import S3Payloads
from breakwater.store.queues import SqsQueues
from breakwater.store.secrets import SecretStore
from breakwater.store.table import DynamoJobStore
from breakwater.telemetry import NAMESPACE, JsonLog

if TYPE_CHECKING:
    from breakwater.domain.endpoints import Endpoint
    from breakwater.domain.routes import Catalogue
    from breakwater.domain.schedules import Schedule
    from breakwater.ports import Payloads, Provider
    from breakwater.usecases.audit import Desk
    from breakwater.usecases.deps import Deps
    from breakwater.usecases.intake import IntakeDeps
    from breakwater.usecases.stream_read import StreamDeps

POLICIES = Path(__file__).with_name("policies.json")
# Parameters are checked by the clients of the tests, not once more in every call.
_LEAN: dict[str, Any] = {"parameter_validation": False}
CALLS = Config(connect_timeout=2, read_timeout=6, retries={"mode": "standard", "total_max_attempts": 4}, **_LEAN)
# A nudge that is not sent is the sweep's, a secret that is not read is the old one: neither may use up a function's
# time after the write that counts. The authorizer has five seconds in all, and one read.
QUICK = Config(connect_timeout=1, read_timeout=2.5, retries={"mode": "standard", "total_max_attempts": 2}, **_LEAN)
AT_THE_GATE = Config(
    connect_timeout=0.5, read_timeout=1.7, retries={"mode": "standard", "total_max_attempts": 2}, **_LEAN
)
_RENEWALS = Config(
    **_LEAN,
    connect_timeout=RENEW_TIMEOUT / 2000,
    read_timeout=RENEW_TIMEOUT / 2000,
    retries={"total_max_attempts": 1},
)
_BY_SERVICE = {"sqs": QUICK, "secretsmanager": QUICK}


def new_id() -> str:
    """A stamp that no other write bears."""
    return uuid.uuid4().hex[:20]


@cache
def clock() -> SystemClock:
    """The machine's clock."""
    return SystemClock()


@cache
def log() -> JsonLog:
    """One log a process."""
    namespace = os.environ.get("POWERTOOLS_METRICS_NAMESPACE") or NAMESPACE
    return JsonLog(clock().now, namespace=namespace, service=os.environ.get("POWERTOOLS_SERVICE_NAME"))


@cache
def _session() -> Any:
    """The SDK's core: boto3 would add a quarter to every start, and nothing that is used here."""
    return botocore.session.get_session()


@cache
def client(service: str, config: Config | None = None) -> Any:
    """One client a service, configuration and process; a sound time-out and few repeats everywhere."""
    return _session().create_client(service, config=config or _BY_SERVICE.get(service, CALLS))


class _Late:
    """A client that is built when it is first used. For what most processes never need: it takes them 15 to 30 ms."""

    def __init__(self, service: str, config: Config | None = None) -> None:
        self._which = (service,) if config is None else (service, config)

    def __getattr__(self, name: str) -> Any:
        return getattr(client(*self._which), name)


@cache
def catalogue() -> Catalogue:
    """The policies compiled into the code layer; without webhooks where no provider can reach this API."""
    from breakwater.domain.routes import Catalogue

    text = POLICIES.read_bytes()
    if os.environ.get("RECEIVE_WEBHOOKS") == "no":
        compiled = json.loads(text)
        for route in compiled["routes"].values():
            route.get("capabilities", {}).pop("webhook", None)
        text = json.dumps(compiled).encode()
    return Catalogue.load(text)


@cache
def store() -> DynamoJobStore:
    """The jobs table."""
    settings = load(StoreSettings, os.environ)
    return DynamoJobStore(client("dynamodb"), settings.jobs_table, new_id, _Late("dynamodb", _RENEWALS))


@cache
def control() -> ControlTable:
    """The control table."""
    return ControlTable(client("dynamodb"), load(ControlSettings, os.environ).control_table, clock().monotonic)


@cache
def keys() -> ControlTable:
    """The control table, for the authorizer's one read of it."""
    settings = load(ControlSettings, os.environ)
    return ControlTable(client("dynamodb", AT_THE_GATE), settings.control_table, clock().monotonic)


def queue_urls(settings: StoreSettings) -> dict[Queue, str]:
    """The nudge queues by name."""
    return {
        Queue.INTERACTIVE: settings.interactive_queue_url,
        Queue.BACKGROUND: settings.background_queue_url,
        Queue.COMPLETION: settings.completion_queue_url,
        Queue.EFFECTS: settings.effects_queue_url,
    }


def _queues() -> SqsQueues:
    return SqsQueues(client("sqs"), queue_urls(load(StoreSettings, os.environ)))


def _payloads() -> S3Payloads:
    return S3Payloads(_Late("s3"), load(PayloadSettings, os.environ).payload_bucket)


def loopback_hosts() -> frozenset[str]:
    """Callbacks on this machine; none but in a local cloud."""
    named = load(CallbackSettings, os.environ).callback_loopback_hosts.split(",")
    return frozenset(one.strip() for one in named if one.strip())


def _deps(queues: SqsQueues, payloads: Payloads, **more: Any) -> Deps:
    from breakwater.usecases.deps import Deps

    return Deps(
        store=store(),
        queues=queues,
        payloads=payloads,
        control=control(),
        catalogue=catalogue(),
        clock=clock(),
        log=log(),
        draw=random.random,
        code_version=os.environ.get("CODE_VERSION", ""),
        loopback_hosts=loopback_hosts(),
        **more,
    )


@cache
def for_admission() -> Deps:
    """The users' API."""
    return _deps(_queues(), _payloads(), stream_secrets=stream_secrets)


@cache
def for_worker() -> Deps:
    """Workers and the completion function: they call providers."""
    client("dynamodb", _RENEWALS)  # now: leases are renewed in a thread, and clients are built in one only
    spending = Spent(store().usage, clock().monotonic)
    return _deps(_queues(), _payloads(), providers=providers(), spending=spending)


@cache
def for_effects() -> Deps:
    """The effects function: the ways out."""
    from breakwater.channels.bus import EventBus
    from breakwater.channels.notify import Notifier

    settings = load(EffectSettings, os.environ)
    urls = queue_urls(load(StoreSettings, os.environ))
    queues = SqsQueues(client("sqs"), urls, settings.dead_letters_queue_url)
    return _deps(
        queues,
        NoPayloads(),
        bus=EventBus(client("events"), settings.event_bus_name),
        notifier=Notifier(loopback_hosts=loopback_hosts()),
        notify_secrets=lambda: secrets().read(settings.notify_secrets_secret),
    )


@cache
def for_sweep() -> Deps:
    """The minute sweep, which also drains the queues' DLQs."""
    drain = load(DrainSettings, os.environ)
    dlqs = {
        Queue.INTERACTIVE: drain.interactive_dlq_url,
        Queue.BACKGROUND: drain.background_dlq_url,
        Queue.COMPLETION: drain.completion_dlq_url,
        Queue.EFFECTS: drain.effects_dlq_url,
    }
    urls = queue_urls(load(StoreSettings, os.environ))
    queues = SqsQueues(client("sqs"), urls, drain.dead_letters_queue_url, dlqs)
    return _deps(queues, NoPayloads())


@cache
def for_operator() -> Desk:
    """The operators' API: it reads no body and calls no provider; each request puts its caller in."""
    from breakwater.store.audit import AuditLogGroup
    from breakwater.store.operator import OperatorTable
    from breakwater.usecases.audit import Desk
    from breakwater.usecases.principal import Principal

    group = load(OperatorSettings, os.environ).audit_log_group
    return Desk(
        deps=_deps(_queues(), NoPayloads()),
        table=OperatorTable(client("dynamodb"), load(ControlSettings, os.environ).control_table),
        lines=AuditLogGroup(client("logs"), group, new_id()),
        new_id=new_id,
        who=Principal(owner_key="", key_id="", scopes=frozenset()),
    )


@cache
def for_schedules() -> Deps:
    """The scheduler and outside schedulers: they create jobs, and work on none."""
    return _deps(_queues(), NoPayloads())


@cache
def schedules() -> dict[str, Schedule]:
    """The schedules compiled into the code layer."""
    from breakwater.domain.schedules import load_schedules

    return load_schedules(catalogue().schedules)


def cron_secrets() -> Mapping[str, Any]:
    """`CRON_SECRET`: one text, or a list while a rotation overlaps."""
    return secrets().read(load(CronSettings, os.environ).cron_secrets_secret)


@cache
def for_intake() -> IntakeDeps:
    """The webhook intake: one table, one queue, and a bucket whose client waits for the first large body."""
    from breakwater.usecases.intake import IntakeDeps

    settings = load(IntakeSettings, os.environ)
    queues = SqsQueues(client("sqs"), {Queue.COMPLETION: settings.completion_queue_url})
    jobs = DynamoJobStore(client("dynamodb"), settings.jobs_table, new_id)
    return IntakeDeps(
        store=jobs,
        queues=queues,
        payloads=lambda: S3Payloads(client("s3"), settings.payload_bucket),
        clock=clock(),
        log=log(),
    )


@cache
def endpoints() -> dict[str, Endpoint]:
    """The webhook endpoints compiled into the code layer."""
    from breakwater.domain.endpoints import endpoints_of

    return endpoints_of(json.loads(POLICIES.read_bytes())["endpoints"])


@cache
def secrets() -> SecretStore:
    """Secrets Manager, cached for a minute."""
    return SecretStore(client("secretsmanager"), clock().monotonic)


def stream_secrets() -> Mapping[str, Any]:
    """What stream tokens are signed with, `current` and `previous`."""
    return secrets().read(load(StreamSettings, os.environ).stream_tokens_secret)


@cache
def for_stream() -> StreamDeps:
    """Readers of streams: one table, one bucket, read only."""
    from breakwater.usecases.stream_read import StreamDeps

    settings = load(ReaderSettings, os.environ)
    return StreamDeps(
        store=DynamoJobStore(client("dynamodb"), settings.jobs_table, new_id),
        payloads=S3Payloads(_Late("s3"), settings.payload_bucket),
        clock=clock(),
        log=log(),
        pause=lambda ms: time.sleep(ms / 1000),
    )


def webhook_secrets() -> Mapping[str, Any]:
    """The webhook secrets by endpoint: each a list, current and previous."""
    return secrets().read(load(IntakeSettings, os.environ).webhook_secrets_secret)


class NoPayloads:
    """Functions that never touch a body have no bucket, and no right to one."""

    def put(self, key: str, body: bytes) -> str:
        raise Defect("this function stores no bodies", key=key, size=len(body))

    def get(self, ref: str) -> bytes | None:
        raise Defect("this function reads no bodies", ref=ref)

    def presign(self, ref: str, seconds: int) -> str:
        raise Defect("this function signs no URLs", ref=ref, seconds=seconds)


class RouteProviders:
    """`ports.Providers`: an adapter per route, rebuilt when its credential changes."""

    def __init__(self, routes: Catalogue, keys: SecretStore, settings: ProviderSettings) -> None:
        self._routes, self._keys, self._settings = routes, keys, settings
        self._urls: Mapping[str, str] = json.loads(settings.provider_base_urls)
        self._built: dict[str, tuple[str, Provider]] = {}

    def for_route(self, route_key: str) -> Provider:
        """The adapter; raises `SecretUnavailable` naming the credential that has no key."""
        from breakwater.providers.registry import build

        route = self._routes.route(route_key)
        key = self._keys.read(self._settings.provider_keys_secret).get(route.credential) if route else None
        if route is None or not isinstance(key, str) or not key.strip():
            raise SecretUnavailable("the route's credential has no key", route=route_key)
        known = self._built.get(route_key)
        if known is not None and known[0] == key:
            return known[1]
        url = self._urls.get(route.route_key) or self._urls.get(route.gateway or route.provider) or route.base_url
        built = build(route.provider, route.endpoint, url, key.strip(), route.route_key, route.timeout_ms)
        self._built[route_key] = (key, built)
        return built


@cache
def providers() -> RouteProviders:
    """The adapters behind the catalogue's routes."""
    return RouteProviders(catalogue(), secrets(), load(ProviderSettings, os.environ))
