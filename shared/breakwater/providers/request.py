"""What goes over the wire, and who sends it?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Protocol
from urllib.parse import quote

from breakwater.domain.signals import Reply
from breakwater.domain.values import dataclass
from breakwater.providers.conversation import BadPayload
from breakwater.providers.stream_wire import Line

_HEADER_SAFE = "-_.~:#"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request below the base URL."""

    method: str
    path: str
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Session(Protocol):
    """Sends exactly one HTTP request per call, follows no redirect, repeats nothing."""

    def send(self, request: Request, timeout_ms: int) -> Reply:
        """The answer, or how the connection failed. Raises nothing."""
        ...

    def open(self, request: Request, timeout_ms: int) -> Line | Reply:
        """The open answer, to be read by the same thread; or how the connection failed. Raises nothing.

        `timeout_ms` limits each wait for bytes, not the whole: whoever reads keeps the time.
        """
        ...


def post(path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Request:
    """A POST of JSON. Raises `BadPayload` where the body can't be JSON."""
    try:
        content = json.dumps(body, allow_nan=False, separators=(",", ":")).encode("ascii")
    except (ValueError, TypeError, RecursionError) as error:
        raise BadPayload("The input can't be written as JSON.") from error
    return Request(method="POST", path=path, content=content, headers=headers or {})


def in_path(text: str) -> str:
    """A text as one segment of a path, whatever it holds."""
    return quote(text, safe="")


def in_header(text: str) -> str:
    """A text as a header can carry it; our own ids pass unchanged."""
    return quote(text, safe=_HEADER_SAFE)
