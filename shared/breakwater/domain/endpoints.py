"""What does a provider's webhook say, and where does it say it?

A provider that follows Standard Webhooks is an entry in `policies/endpoints.yaml`, not code: what its headers are
called, which secret signs, where in its JSON the event, its job and ours stand, and what each event means. Bodies stay
with the reader: only these few words leave it. The file is checked when it is compiled (`endpoint_entries.py`); here it
is read as it is, without the checker, since a sender waits for this function's start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from breakwater.domain.paths import Paths, first_word
from breakwater.domain.signature import TOLERANCE_S, HeaderNames
from breakwater.domain.signing_keys import keys_of
from breakwater.domain.values import dataclass

UNKNOWN_EVENT = "unknown"


class Outcome(StrEnum):
    """What an event means for the job."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INCOMPLETE = "incomplete"
    PROGRESS = "progress"  # it goes on
    IGNORE = "ignore"  # not about a job of ours


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPaths:
    """Where the outcome stands in the body of a sender that is never asked for it; `told.py` reads it.

    `media` leads to a URL, an object or a list of either; `media_url`, `media_b64` and `media_mime` go on from one
    object. `mime` is what media are that don't say so. `cost` is in dollars. Tokens and images are whole numbers.
    """

    text: Paths = ()
    media: Paths = ()
    media_url: Paths = ("url",)
    media_b64: Paths = ("b64_json", "b64")
    media_mime: Paths = ("mime", "mime_type", "content_type")
    mime: str = "image/png"
    finish_reason: Paths = ()
    model: Paths = ()
    input_tokens: Paths = ()
    cached_tokens: Paths = ()
    output_tokens: Paths = ()
    reasoning_tokens: Paths = ()
    images: Paths = ()
    cost: Paths = ()
    error_type: Paths = ()
    error_code: Paths = ()
    error_message: Paths = ()
    error_status: Paths = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One sender. Paths are dotted, a list of them is tried in order, a number is a place in a list."""

    name: str
    provider: str
    secret: str  # the entry of the webhook secret: one text, or a list while a rotation overlaps
    names: HeaderNames = field(default_factory=HeaderNames)  # of the headers, in lower case
    tolerance_s: int = TOLERANCE_S
    event_type: Paths
    state: Paths = ()  # where the word of `outcomes` stands, when it is not the event's type
    provider_job_id: Paths = ()
    job_id: Paths = ()
    execution_id: Paths = ()
    outcomes: Mapping[str, Outcome]  # `*` stands for anything; exact names win
    fetch: bool = True  # whether the provider is asked for the result; else the delivery itself carries it
    result: ResultPaths | None = None  # where; set exactly where nothing is fetched
    description: str = ""

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


def endpoints_of(compiled: list[Mapping[str, Any]]) -> dict[str, Endpoint]:
    """The endpoints by name, from entries that were checked before."""
    return {one.name: one for one in map(_endpoint, compiled)}


def _endpoint(entry: Mapping[str, Any]) -> Endpoint:
    known = {
        name: entry[name]
        for name in ("name", "provider", "secret", "tolerance_s", "fetch", "description")
        if name in entry
    }
    paths = {name: listed(entry[name]) for name in _PATHS if name in entry}
    headers = {name: header.lower() for name, header in entry.get("headers", {}).items()}
    outcomes = {pattern: Outcome(outcome) for pattern, outcome in entry["outcomes"].items()}
    result = _result_paths(entry["result"]) if entry.get("result") is not None else None
    return Endpoint(**known, **paths, names=HeaderNames(**headers), outcomes=outcomes, result=result)


def _result_paths(entry: Mapping[str, Any]) -> ResultPaths:
    paths = {name: value if name == "mime" else listed(value) for name, value in entry.items()}
    return ResultPaths(**paths)


_PATHS = ("event_type", "state", "provider_job_id", "job_id", "execution_id")


def listed(value: Any) -> Any:
    """A text alone as a list of one."""
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


def secrets_of(endpoint: Endpoint, secret: Mapping[str, Any]) -> tuple[str, ...]:
    """This endpoint's secrets, newest first as they are written; empty when there are none."""
    entry = listed(secret.get(endpoint.secret))
    return tuple(one for one in entry if isinstance(one, str)) if isinstance(entry, list | tuple) else ()


def unusable_of(endpoint: Endpoint, secret: Mapping[str, Any]) -> list[str]:
    """Which entries of the webhook secret are no keys, by name and place, never by value: `openai`, `openai[1]`."""
    entry: Any = secret.get(endpoint.secret)
    if isinstance(entry, list) and entry:
        return [f"{endpoint.secret}[{place}]" for place, one in enumerate(entry) if not keys_of(one)]
    return [] if keys_of(entry) else [endpoint.secret]


def read(endpoint: Endpoint, body: Any) -> DeliveryFacts:
    """What the JSON of a verified body says; any JSON will do, and what can't be read is None."""
    event_type = first_word(body, endpoint.event_type) or UNKNOWN_EVENT
    return DeliveryFacts(
        event_type,
        first_word(body, endpoint.provider_job_id),
        first_word(body, endpoint.job_id),
        first_word(body, endpoint.execution_id),
        endpoint.outcome(first_word(body, endpoint.state) or UNKNOWN_EVENT if endpoint.state else event_type),
    )
