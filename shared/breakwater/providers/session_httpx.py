"""How does a request go out through httpx?

Without keep-alive: a function can be frozen between two calls, and a connection that died meanwhile would look
like a lost answer. Without redirects: one would be a second request, perhaps to somebody else.
"""

from __future__ import annotations

from collections.abc import Mapping

import httpx

from breakwater.domain.signals import Reply
from breakwater.providers import address, transport
from breakwater.providers.request import Request
from breakwater.providers.stream_wire import Line, line_of


class HttpxSession:
    """One provider's API over httpx."""

    def __init__(self, base_url: str, headers: Mapping[str, str], via: httpx.BaseTransport | None) -> None:
        self._client = httpx.Client(
            base_url=base_url,
            headers={**headers, "content-type": "application/json"},
            limits=httpx.Limits(max_keepalive_connections=0),
            transport=via,
            trust_env=not address.is_local(base_url),
        )

    def send(self, request: Request, timeout_ms: int) -> Reply:
        """The answer, or how the connection failed."""
        status, headers = None, httpx.Headers()
        seconds = timeout_ms / 1000
        deadline = transport.deadline_in(timeout_ms)
        try:
            with self._client.stream(
                request.method,
                request.path,
                content=request.content,
                headers=dict(request.headers),
                timeout=httpx.Timeout(seconds, connect=min(seconds, transport.CONNECT_SECONDS)),
            ) as response:
                status, headers = response.status_code, response.headers
                content = transport.collect(response.iter_bytes(), deadline)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, *transport.OURS) as error:
            return transport.failed(error, status, headers)
        return transport.reply_of(status, headers, content)

    def open(self, request: Request, timeout_ms: int) -> Line | Reply:
        """The open answer, or how the connection failed."""
        seconds = timeout_ms / 1000
        try:
            asked = self._client.build_request(
                request.method,
                request.path,
                content=request.content,
                headers=dict(request.headers),
                timeout=httpx.Timeout(seconds, connect=min(seconds, transport.CONNECT_SECONDS)),
            )
            response = self._client.send(asked, stream=True)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as error:
            return transport.failed(error)
        return line_of(response)
