"""What does a function read from its environment? One value per need, checked at start, no fallback for a resource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TypeVar

from breakwater.domain.errors import Defect


class MissingSetting(Defect):
    """A function was deployed without a setting it needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """The jobs table and the queues every function that moves jobs needs."""

    jobs_table: str
    interactive_queue_url: str
    background_queue_url: str
    completion_queue_url: str
    effects_queue_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeSettings:
    """What the webhook intake needs."""

    jobs_table: str
    completion_queue_url: str
    webhook_secrets_secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlSettings:
    """The control table."""

    control_table: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadSettings:
    """The bucket for large bodies."""

    payload_bucket: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """The secret that stream tokens are signed with."""

    stream_tokens_secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSettings:
    """What a reader's function has: the table, and nothing that moves a job."""

    jobs_table: str
    payload_bucket: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """The secret with the provider keys; `provider_base_urls` points routes elsewhere (a simulator)."""

    provider_keys_secret: str
    provider_base_urls: str = "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackSettings:
    """Hosts of this machine that callbacks may name, separated by commas; for local use only."""

    callback_loopback_hosts: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectSettings:
    """Ways out."""

    dead_letters_queue_url: str
    event_bus_name: str
    notify_secrets_secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CronSettings:
    """The secret by which outside schedulers are known."""

    cron_secrets_secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainSettings:
    """The queues' own dead-letter queues."""

    interactive_dlq_url: str
    background_dlq_url: str
    completion_dlq_url: str
    effects_dlq_url: str
    dead_letters_queue_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSettings:
    """Where operators' actions are told a second time."""

    audit_log_group: str


Kind = TypeVar("Kind")


def load(kind: type[Kind], environ: Mapping[str, str]) -> Kind:
    """Read one settings value; raises `MissingSetting` naming every variable that is missing or blank."""
    found: dict[str, str] = {}
    missing = []
    for one in fields(kind):  # type: ignore[arg-type]
        value = environ.get(one.name.upper(), "").strip()
        if value:
            found[one.name] = value
        elif one.default is MISSING:
            missing.append(one.name.upper())
    if missing:
        raise MissingSetting(f"set {', '.join(missing)}", missing=missing)
    return kind(**found)
