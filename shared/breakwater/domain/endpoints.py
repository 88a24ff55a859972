"""What does a provider's webhook say, and where does it say it?

A provider that follows Standard Webhooks is an entry in `policies/endpoints.yaml`, not code: what its headers are
called, which secret signs, where in its JSON the event, its job and ours stand, and what each event means. Bodies stay
with the reader: only these few words leave it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, StrictBool, model_validator

from breakwater.domain.entries import Entry, EntryName, Strict, load_entries
from breakwater.domain.signature import TOLERANCE_S, HeaderNames

MAX_CHARS = 256  # of an id; it becomes part of keys
UNKNOWN_EVENT = "unknown"


class Outcome(StrEnum):
    """What an event means for the job."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INCOMPLETE = "incomplete"
    PROGRESS = "progress"  # it goes on
    IGNORE = "ignore"  # not about a job of ours


def _listed(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Path = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$")]
Paths = Annotated[tuple[Path, ...], BeforeValidator(_listed)]
Header = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")]
Pattern = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:/*-]+$")]


class Headers(Strict):
    """What the sender calls its headers; case does not matter."""

    id: Header = "webhook-id"
    timestamp: Header = "webhook-timestamp"
    signature: Header = "webhook-signature"


class Endpoint(Entry):
    """One sender. Paths are dotted, a list of them is tried in order, a number is a place in a list."""

    provider: Annotated[str, Field(min_length=1)]
    secret: EntryName  # the entry of the webhook secret: one text, or a list while a rotation overlaps
    headers: Headers = Headers()
    tolerance_s: Annotated[int, Field(strict=True, ge=1, le=3_600)] = TOLERANCE_S
    event_type: Annotated[Paths, Field(min_length=1)]
    provider_job_id: Paths = ()
    job_id: Paths = ()
    execution_id: Paths = ()
    outcomes: Annotated[dict[Pattern, Outcome], Field(min_length=1)]  # `*` stands for anything; exact names win
    fetch: StrictBool = True  # whether the provider is asked for the result; the event alone is not one
    description: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.fetch and not self.provider_job_id:
            raise ValueError("fetch: true needs provider_job_id, the path of what to ask for")
        return self

    @cached_property
    def names(self) -> HeaderNames:
        """The header names as `signature.verify` takes them."""
        return HeaderNames(self.headers.id.lower(), self.headers.timestamp.lower(), self.headers.signature.lower())

    def outcome(self, event_type: str) -> Outcome:
        """What this event means: its exact name, else the longest pattern, else nothing to us."""
        if event_type in self.outcomes:
            return self.outcomes[event_type]
        matching = [pattern for pattern in self.outcomes if fnmatchcase(event_type, pattern)]
        return self.outcomes[max(matching, key=len)] if matching else Outcome.IGNORE


@dataclass(frozen=True, slots=True)
class DeliveryFacts:
    """What a delivery says, in words short enough for keys and logs."""

    event_type: str
    provider_job_id: str | None
    job_id: str | None
    execution_id: str | None
    outcome: Outcome


def load_endpoints(raw: Mapping[str, Any] | list[Any]) -> dict[str, Endpoint]:
    """The endpoints by name, from `{"endpoints": [...]}`; raises `InvalidPolicy` with the path of what is wrong."""
    return load_entries(Endpoint, raw, "endpoints")


def secrets_of(endpoint: Endpoint, secret: Mapping[str, Any]) -> tuple[str, ...]:
    """This endpoint's secrets, newest first as they are written; empty when there are none."""
    entry = _listed(secret.get(endpoint.secret))
    return tuple(one for one in entry if isinstance(one, str)) if isinstance(entry, list | tuple) else ()


def read(endpoint: Endpoint, body: Any) -> DeliveryFacts:
    """What the JSON of a verified body says; any JSON will do, and what can't be read is None."""
    event_type = _first(body, endpoint.event_type) or UNKNOWN_EVENT
    return DeliveryFacts(
        event_type,
        _first(body, endpoint.provider_job_id),
        _first(body, endpoint.job_id),
        _first(body, endpoint.execution_id),
        endpoint.outcome(event_type),
    )


def _first(body: Any, paths: tuple[str, ...]) -> str | None:
    return next((text for path in paths if (text := _word(_at(body, path))) is not None), None)


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def _word(value: Any) -> str | None:
    """A short printable text, or a number as one."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value) if abs(value) < 2**63 else None
    if isinstance(value, str) and 0 < len(value) <= MAX_CHARS and value.isprintable():
        return value
    return None
