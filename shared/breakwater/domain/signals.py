"""What did the provider say, in one shape for all of them?

A `Reply` is the raw evidence (a transport failure or an HTTP answer); a `Signal` is what it means.
`classify.py` turns one into the other. No message text of a provider is kept: it can quote the prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any

from breakwater.domain.states import Visibility
from breakwater.domain.values import dataclass


class ErrorClass(StrEnum):
    """What kind of failure it is, whoever the provider."""

    PACING = "pacing"  # too fast: requests or tokens per minute; waits
    QUOTA = "quota"  # a daily or assigned amount is used up; no timed retry
    SPEND = "spend"  # money: credit, billing, spend limit; no timed retry
    OVERLOAD = "overload"  # the provider has no capacity
    SERVER_FAULT = "server_fault"  # the provider failed
    LOCKED = "locked"  # 409 as a lock: try again
    CALLER_FAULT = "caller_fault"  # the request is wrong; repeating it can't help
    CREDENTIAL = "credential"  # the key is refused
    PERMISSION = "permission"  # the key may not do this
    DATA_BOUNDARY = "data_boundary"  # region or residency forbids it
    CONTENT_REFUSED = "content_refused"  # a content filter or a refusal
    TRUNCATED = "truncated"  # stopped at a token limit
    STREAM_INCOMPLETE = "stream_incomplete"  # ended without the provider's terminal event
    CANCELLED = "cancelled"  # the provider says its job was cancelled
    NOT_SENT = "not_sent"  # DNS, connect or TLS failed: the provider never saw it
    OUTCOME_UNKNOWN = "outcome_unknown"  # may have been sent: time-out, cut, 408/504/524 after sending
    NOT_FOUND = "not_found"  # the provider does not know the job we ask for
    UNKNOWN = "unknown"  # no rule matched


class LimitDimension(StrEnum):
    """Which limit was hit."""

    REQUESTS = "requests"
    INPUT_TOKENS = "input_tokens"
    OUTPUT_TOKENS = "output_tokens"
    DAILY_REQUESTS = "daily_requests"
    DAILY_TOKENS = "daily_tokens"
    SPEND = "spend"
    CONCURRENCY = "concurrency"


class TransportFailure(StrEnum):
    """How a connection failed, told apart by whether the request can have arrived."""

    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    POOL = "pool"  # no connection was free: nothing was sent
    WRITE = "write"  # cut while sending: may have arrived
    READ = "read"  # cut while reading the answer
    TIMEOUT = "timeout"  # sent, no answer in time
    PROTOCOL = "protocol"  # the answer is no HTTP


NOT_SENT = frozenset({TransportFailure.DNS, TransportFailure.CONNECT, TransportFailure.TLS, TransportFailure.POOL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back: a transport failure, or an HTTP answer (which may carry an error inside a 200).

    `headers` have lower-case names. `body` is the parsed JSON, or the text where it is none, or None when empty.
    `in_stream` says that the body is an event found inside a stream (`events_seen` before it).
    At least one of `transport` and `status` is set.
    """

    transport: TransportFailure | None = None
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    in_stream: bool = False
    received_at: int = 0  # ms since the epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One provider answer in the terms of the policy layer. Times in ms, `retry_after_ms` a delay from now.

    `retry_after_ms` is None when the provider gave no usable hint (absent, zero, negative, unreadable).
    `rule` names the classification row that matched.
    """

    error_class: ErrorClass
    http_status: int | None = None
    provider_error_type: str | None = None
    provider_error_code: str | None = None
    retry_after_ms: int | None = None
    limit_dimension: LimitDimension | None = None
    route_key: str = ""
    visibility_state: Visibility = Visibility.BACKGROUND_ONLY
    provider_request_id: str | None = None
    rule: str = "unknown"
