"""A pretend wire: adapters built by the registry, over a function in place of the network."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import httpx2

from breakwater.domain.results import Call
from breakwater.providers.registry import ADAPTERS, build

KEY = "sk-test-not-a-key"
ALL = sorted(ADAPTERS)
GATEWAY_URL = "https://gateway.example.com/v1"


def library_of(provider: str) -> Any:
    """The HTTP library under a provider's adapter."""
    return httpx if provider in {"anthropic", "gemini"} else httpx2


@dataclass
class Sent:
    """One request as it went out."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.content)


@dataclass
class Wire:
    """An adapter, what it sent, and what comes back to it."""

    provider: str
    endpoint: str
    answer: Callable[[Sent], Any] | Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    base_url: str | None = None
    sent: list[Sent] = field(default_factory=list)

    def __post_init__(self) -> None:
        url = self.base_url or (GATEWAY_URL if self.provider == "gateway" else None)
        self.library = library_of(self.provider)
        transport = self.library.MockTransport(self._handle)
        self.adapter = build(self.provider, self.endpoint, url, KEY, "route-1", 30_000, transport)

    def _handle(self, request: Any) -> Any:
        sent = Sent(request.method, str(request.url), dict(request.headers), request.read())
        self.sent.append(sent)
        answer = self.answer(sent) if callable(self.answer) else self.answer
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, bytes | str):
            return self.library.Response(self.status, headers=dict(self.headers), content=answer)
        return self.library.Response(self.status, headers=dict(self.headers), content=json.dumps(answer).encode())

    def submit(self, payload: Mapping[str, Any] | None = None, **fields: Any) -> Any:
        """Submit a call with this input."""
        return self.adapter.submit(call(payload, **{"endpoint": self.endpoint, **fields}))


def call(payload: Mapping[str, Any] | None = None, **fields: Any) -> Call:
    """A call; the least input there is, unless one is given."""
    said = {"prompt": "Say hi"} if payload is None else payload
    defaults = {"job_id": "job_1", "execution_id": "exec_1", "model": "model-x", "endpoint": "chat", "payload": said}
    return Call(**{**defaults, **fields})
