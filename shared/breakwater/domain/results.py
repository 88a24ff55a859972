"""What does a provider's work look like, in one shape for all of them?

Input: `Call` (a job's input plus who is asking and where it goes). Output: one of four outcomes.
Money is integer micro-dollars, tokens are integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from breakwater.domain.hints import ExhaustedLimit
from breakwater.domain.signals import Signal
from breakwater.domain.values import dataclass

ESTIMATED = "estimated"  # what `evidence["usage"]` says where no provider counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call. `cached_tokens` are part of `input_tokens`, `reasoning_tokens` of `output_tokens`."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    images: int = 0
    requests: int = 1

    @property
    def units(self) -> int:
        """Usage in one number: all tokens, or the images of a media call."""
        return self.input_tokens + self.output_tokens or self.images


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A finished answer in our one output shape.

    `structured` is the parsed JSON where a schema was asked for. `media` lists `{"url"|"b64", "mime"}`.
    `evidence` keeps what a gateway says about itself (endpoint type, route result, upstream), never content.
    """

    text: str = ""
    structured: Any = None
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    media: tuple[Mapping[str, Any], ...] = ()
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)
    cost_micros: int | None = None  # as priced by the route table; set by `pricing.py`
    reported_cost_micros: int | None = None  # as the gateway reports it
    served_model: str | None = None
    provider_request_id: str | None = None
    provider_job_id: str | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    exhausted: tuple[ExhaustedLimit, ...] = ()  # limits of which this answer took the last


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One attempt, ready to be sent.

    `payload` is the job's input as admitted: `messages`, `instructions`, `parameters`, `json_schema`, `tools`,
    or `prompt` for media. `execution_id` is the provider's idempotency key where it has one, and travels with
    `job_id` as metadata where it can.
    """

    job_id: str
    execution_id: str
    model: str
    endpoint: str
    payload: Mapping[str, Any]
    background: bool = False
    timeout_ms: int = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """The provider finished and this is the answer."""

    result: Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The provider took the work and runs it in the background."""

    provider_job_id: str
    provider_request_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The provider still works on it."""

    provider_job_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """No success. `partial` keeps what was paid for (a truncated or filtered answer), if anything came."""

    signal: Signal
    partial: Result | None = None
    provider_job_id: str | None = None


Outcome = Completed | Accepted | Running | Refused
"""The closed set of answers of a provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A provider job read by its id: its outcome, and which of our executions it says it belongs to.

    `ended`: the job itself is over, well or badly. False while it runs, and when only our question failed.
    """

    outcome: Outcome
    ended: bool = False
    job_id: str | None = None
    execution_id: str | None = None
    rate_headers: Mapping[str, str] = field(default_factory=dict)
