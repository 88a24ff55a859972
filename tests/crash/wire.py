"""Hooks of botocore: a request is never sent, its answer kills the process, or its answer is lost.

A lost answer is a request that was executed and then a time-out, so that botocore's own retry repeats it and the write
must be recognised as our own.
"""

from __future__ import annotations

import os
import signal
from typing import Any

import botocore.endpoint
from botocore.exceptions import ReadTimeoutError

from tests.crash.tap import Fault, Tap


class Wire:
    """Hooks of botocore that let one numbered call go wrong."""

    def __init__(self, tap: Tap) -> None:
        self.tap = tap
        self._open: str | None = None
        self.clients: list[Any] = []

    def watch(self, client: Any, service: str) -> None:
        """Count this client's calls."""
        self.clients.append(client)
        client.meta.events.register(
            f"before-send.{service}", lambda request, **more: self._before(client, request, more)
        )
        client.meta.events.register(f"response-received.{service}", lambda **_more: self._after())

    def _before(self, client: Any, request: Any, more: dict[str, Any]) -> None:
        name = more["event_name"].split(".", 1)[1]
        number = len(self.tap.calls)
        self.tap.calls.append(name)
        self._open = None
        if number != self.tap.at:
            return
        self.tap.struck = name
        if self.tap.fault is Fault.KILL_BEFORE:
            die()
        if self.tap.fault is Fault.KILL_AFTER:
            self._open = name
        if self.tap.fault is Fault.LOST:
            client._endpoint.http_session.send(request)
            raise ReadTimeoutError(endpoint_url=request.url)

    def _after(self) -> None:
        if self._open is not None:
            die()

    def close(self) -> None:
        """Before a fork: no connection is shared between two processes."""
        for client in self.clients:
            client.close()


def die() -> None:
    """As the kernel does it."""
    os.kill(os.getpid(), signal.SIGKILL)


class MortalTap(Tap):
    """A tap whose victim really dies."""

    def call(self, name: str, method: Any, broken: Any, *args: Any, **more: Any) -> Any:
        number = len(self.calls)
        fault = self.fault if number == self.at else None
        if fault is Fault.KILL_BEFORE:
            die()
        self.calls.append(name)
        if fault is not None:
            self.struck = name
        answered = method(*args, **more)
        if fault is Fault.KILL_AFTER:
            die()
        return broken(True) if fault is Fault.LOST else answered


def without_sleep() -> None:
    """Let botocore repeat at once; it would wait up to a second each time, and nothing here gets better by waiting."""
    botocore.endpoint.time = type("NoSleep", (), {"sleep": staticmethod(lambda _seconds: None)})  # type: ignore[attr-defined]
