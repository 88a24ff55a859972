"""What does a function read from its environment? One value per need, checked at start, no fallback for a resource.

Named tuples, which are made several times faster than frozen dataclasses: every function reads this at its start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from breakwater.domain.errors import Defect


class MissingSetting(Defect):
    """A function was deployed without a setting it needs."""


class StoreSettings(NamedTuple):
    """The jobs table and the queues every function that moves jobs needs."""

    jobs_table: str
    interactive_queue_url: str
    background_queue_url: str
    completion_queue_url: str
    effects_queue_url: str


class IntakeSettings(NamedTuple):
    """What the webhook intake needs."""

    jobs_table: str
    payload_bucket: str
    completion_queue_url: str
    webhook_secrets_secret: str


class ControlSettings(NamedTuple):
    """The control table."""

    control_table: str


class PayloadSettings(NamedTuple):
    """The bucket for large bodies."""

    payload_bucket: str


class StreamSettings(NamedTuple):
    """The secret that stream tokens are signed with."""

    stream_tokens_secret: str


class ReaderSettings(NamedTuple):
    """What a reader's function has: the table, and nothing that moves a job."""

    jobs_table: str
    payload_bucket: str


class ProviderSettings(NamedTuple):
    """The secret with the provider keys; `provider_base_urls` points routes elsewhere (a simulator)."""

    provider_keys_secret: str
    provider_base_urls: str = "{}"


class CallbackSettings(NamedTuple):
    """Hosts of this machine that callbacks may name, separated by commas; for local use only."""

    callback_loopback_hosts: str = ""


class EffectSettings(NamedTuple):
    """Ways out."""

    dead_letters_queue_url: str
    event_bus_name: str
    notify_secrets_secret: str


class CronSettings(NamedTuple):
    """The secret by which outside schedulers are known."""

    cron_secrets_secret: str


class DrainSettings(NamedTuple):
    """The queues' own dead-letter queues."""

    interactive_dlq_url: str
    background_dlq_url: str
    completion_dlq_url: str
    effects_dlq_url: str
    dead_letters_queue_url: str


class OperatorSettings(NamedTuple):
    """Where operators' actions are told a second time."""

    audit_log_group: str


Kind = TypeVar("Kind", bound=tuple[str, ...])


def load(kind: type[Kind], environ: Mapping[str, str]) -> Kind:
    """Read one settings value; raises `MissingSetting` naming every variable that is missing or blank."""
    found: dict[str, str] = {}
    missing = []
    named: Any = kind  # a named tuple, which mypy can't bound
    for name in named._fields:
        value = environ.get(name.upper(), "").strip()
        if value:
            found[name] = value
        elif name not in named._field_defaults:
            missing.append(name.upper())
    if missing:
        raise MissingSetting(f"set {', '.join(missing)}", missing=missing)
    made: Kind = named(**found)
    return made
