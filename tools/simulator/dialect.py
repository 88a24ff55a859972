"""How does a provider word a refusal, which headers does it send, which key does it ask for?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from .shapes import Json, Problem

_KEY_REFUSED = "invalid"


class Dialect(ABC):
    """What all endpoints of one provider share."""

    provider: ClassVar[str]

    @abstractmethod
    def key(self, headers: Mapping[str, str], query: Mapping[str, str]) -> str | None:
        """Return the credential of a request, if it has one."""

    @abstractmethod
    def refusal(self, problem: Problem) -> tuple[int, Json]:
        """Word a problem: status and body."""

    @abstractmethod
    def headers(self) -> dict[str, str]:
        """Headers every answer carries: request id and rate limits."""

    @abstractmethod
    def stream_error(self, error: Json | None) -> bytes:
        """Frame an error that comes after the 200."""


def check_key(dialect: Dialect, headers: Mapping[str, str], query: Mapping[str, str]) -> None:
    """Refuse a request without a key, or with one that has `invalid` in it."""
    key = dialect.key(headers, query)
    if not key:
        raise Problem("no_credential", "You didn't provide an API key.")
    if _KEY_REFUSED in key:
        raise Problem("bad_credential", "Incorrect API key provided.")
