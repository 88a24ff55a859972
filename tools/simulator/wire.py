"""How do bytes, and broken connections, reach the caller?"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Mapping
from typing import cast

from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

_TRANSPORT = "transport"
_NO_LINGER = struct.pack("ii", 1, 0)


class OpenProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 protocol, which hands each request the connection it came on."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """Give this connection a state of its own."""
        super().__init__(config, server_state, dict(app_state), _loop)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Remember the connection where requests find it."""
        super().connection_made(transport)
        self.app_state[_TRANSPORT] = transport


class Wire:
    """One request's connection: answers in full, in part, or not at all."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wrap what ASGI gives."""
        self._receive, self._send = receive, send
        self._transport = cast("asyncio.Transport", scope["state"][_TRANSPORT])

    async def read(self) -> bytes:
        """Read the whole request body."""
        parts: list[bytes] = []
        more = True
        while more:
            message = await self._receive()
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        return b"".join(parts)

    @property
    def lost(self) -> bool:
        """Whether the connection is gone."""
        return self._transport.is_closing()

    async def rest(self, milliseconds: int) -> bool:
        """Wait that long; true if the caller is still there at the end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(milliseconds / 1000):
                await self.until_gone()
        return not self.lost

    async def answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Send a complete answer."""
        await self._start(status, {**headers, "content-length": str(len(body))})
        await self._send({"type": "http.response.body", "body": body})

    async def answer_half(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Promise a complete answer, send half of it."""
        await self._start(status, {**headers, "content-length": str(len(body))})
        await self.chunk(body[: len(body) // 2])

    async def start(self, headers: Mapping[str, str]) -> None:
        """Begin a 200 of unknown length."""
        await self._start(200, headers)

    async def chunk(self, body: bytes) -> None:
        """Send a part of the body."""
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def finish(self) -> None:
        """End the body properly."""
        await self._send({"type": "http.response.body", "body": b""})

    async def cut(self, *, reset: bool = False) -> None:
        """Close the connection after what was sent; with `reset`, as a TCP reset."""
        if reset:
            line: socket.socket = self._transport.get_extra_info("socket")
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self._transport.close()
        await self.until_gone()

    async def _start(self, status: int, headers: Mapping[str, str]) -> None:
        pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})

    async def until_gone(self) -> None:
        """Wait for the connection to close; also returns once an answer is complete."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
