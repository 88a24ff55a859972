"""How does the simulator run as a process?

It announces its address in its data folder once it listens, so port 0 may be asked for, and
withdraws it when it stops.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from pathlib import Path

import uvicorn

from .address import announce, withdraw
from .app import build_app
from .wire import OpenProtocol
from .world import World

_GRACE_SECONDS = 1


def serve(world: World, folder: Path, host: str, port: int, *, follow_stdin: bool) -> None:
    """Serve until told to stop, by signal or, with `follow_stdin`, when the starter goes away."""
    # uvicorn raises the signal that stopped it once more: by then there is still tidying to do.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    asyncio.run(_serve(world, folder, host, port, follow_stdin=follow_stdin))


async def _serve(world: World, folder: Path, host: str, port: int, *, follow_stdin: bool) -> None:
    line = _listening(host, port)
    config = uvicorn.Config(
        build_app(world),
        http=OpenProtocol,
        lifespan="off",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    server = _Server(config)
    if follow_stdin:
        threading.Thread(target=_stop_with_stdin, args=(server,), daemon=True).start()
    try:
        _announce(folder, line)
        await server.serve(sockets=[line])
    finally:
        withdraw(folder)
        await world.close()


class _Server(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Cut off whoever is still waiting, as a provider that goes down does."""
        for connection in tuple(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)
        await super().shutdown(sockets)


def _listening(host: str, port: int) -> socket.socket:
    # Named in full: asyncio sends small packets at once only on sockets that say they are TCP.
    line = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    line.bind((host, port))
    line.listen(1024)
    return line


def _announce(folder: Path, line: socket.socket) -> None:
    host, port = line.getsockname()
    base_url = f"http://{host}:{port}"
    announce(folder, base_url)
    sys.stdout.write(f"provider simulator on {base_url}\n")
    sys.stdout.flush()


def _stop_with_stdin(server: uvicorn.Server) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    server.should_exit = True
