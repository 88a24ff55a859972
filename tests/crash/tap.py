"""A tap on every call that leaves the process: it counts them, and at one of them something goes wrong.

The tap sits around the ports, so a call that somebody adds tomorrow is counted and broken tomorrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from breakwater.domain.callbacks import Retry
from breakwater.domain.errors import QueueUnavailable, SecretUnavailable, StoreUnavailable
from breakwater.domain.results import Found, Refused
from breakwater.domain.signals import ErrorClass, Signal
from breakwater.usecases.deps import Deps
from breakwater.usecases.intake import IntakeDeps


class KillProcess(BaseException):
    """The process is gone: nothing after this line of it runs, no handler of its errors either."""


class Fault(StrEnum):
    """What goes wrong at a call."""

    KILL_BEFORE = "killed before"
    KILL_AFTER = "killed after"
    LOST = "answer lost"  # executed, and the process lives on without knowing
    REFUSED = "not executed"  # throttled or unreachable, and the process lives on


@dataclass
class Tap:
    """Counts calls by name; `at` and `fault` say which one goes wrong, and how. It goes wrong once."""

    at: int | None = None
    fault: Fault | None = None
    calls: list[str] = field(default_factory=list)
    struck: str | None = None
    watch: Callable[[str, tuple[Any, ...]], None] | None = None

    def call(
        self, name: str, method: Callable[..., Any], broken: Callable[[bool], Any], *args: Any, **more: Any
    ) -> Any:
        """One outside call. `broken(executed)` gives or raises what a caller sees without an answer."""
        number = len(self.calls)
        self.calls.append(name)
        if self.watch is not None:
            self.watch(name, args)
        fault = self.fault if number == self.at else None
        if fault is not None:
            self.struck = name
        if fault is Fault.KILL_BEFORE:
            raise KillProcess(name)
        if fault is Fault.REFUSED:
            return broken(False)
        answer = method(*args, **more)
        if fault is Fault.KILL_AFTER:
            raise KillProcess(name)
        return broken(True) if fault is Fault.LOST else answer


class Tapped:
    """A port whose every method goes through the tap."""

    def __init__(self, port: Any, name: str, tap: Tap, error: type[Exception]) -> None:
        self._port, self._name, self._tap, self._error = port, name, tap, error

    def __getattr__(self, method: str) -> Any:
        found = getattr(self._port, method)
        if not callable(found) or method.startswith("_"):
            return found

        def broken(executed: bool) -> Any:
            del executed
            raise self._error

        return lambda *args, **more: self._tap.call(f"{self._name}.{method}", found, broken, *args, **more)


class TappedProvider:
    """A provider never raises: a lost answer is an unknown outcome, an unsent call is one that was not sent."""

    def __init__(self, provider: Any, tap: Tap) -> None:
        self._provider, self._tap = provider, tap

    def for_route(self, route_key: str) -> TappedProvider:
        """Reads the route's credential, which is a call as well."""
        self._tap.call("secrets.for_route", self._provider.for_route, _without_secret, route_key)
        return self

    def submit(self, call: Any) -> Any:
        def broken(executed: bool) -> Any:
            return Refused(signal=_signal(ErrorClass.OUTCOME_UNKNOWN if executed else ErrorClass.NOT_SENT))

        return self._tap.call("provider.submit", self._provider.submit, broken, call)

    def fetch(self, provider_job_id: str) -> Any:
        def broken(executed: bool) -> Any:
            del executed
            return Found(outcome=Refused(signal=_signal(ErrorClass.SERVER_FAULT, 503)))

        return self._tap.call("provider.fetch", self._provider.fetch, broken, provider_job_id)

    def cancel(self, provider_job_id: str) -> Any:
        def broken(executed: bool) -> Any:
            del executed
            return _signal(ErrorClass.SERVER_FAULT, 503)

        return self._tap.call("provider.cancel", self._provider.cancel, broken, provider_job_id)


class TappedNotifier:
    """A notifier never raises: without an answer nobody knows whether the receiver has it."""

    def __init__(self, notifier: Any, tap: Tap) -> None:
        self._notifier, self._tap = notifier, tap

    def send(self, *args: Any, **more: Any) -> Any:
        def broken(executed: bool) -> Any:
            return Retry("cut" if executed else "connect")

        return self._tap.call("notifier.send", self._notifier.send, broken, *args, **more)


def _signal(error_class: ErrorClass, status: int | None = None) -> Signal:
    return Signal(error_class=error_class, http_status=status, rule="tap")


INSIDE = frozenset({"catalogue", "clock", "log", "draw", "loopback_hosts", "code_version", "noticed"})
_ERRORS: Mapping[str, type[Exception]] = {"queues": QueueUnavailable, "bus": QueueUnavailable}


def tapped(deps: Deps, tap: Tap) -> Deps:
    """The same outside, through the tap: every field but those that never leave the process."""
    found = {one.name: getattr(deps, one.name) for one in fields(deps) if one.name not in INSIDE}
    return replace(deps, **{name: _tapped(name, port, tap) for name, port in found.items() if port is not None})


def _tapped(name: str, port: Any, tap: Tap) -> Any:
    if name == "providers":
        return TappedProvider(port, tap)
    if name == "notifier":
        return TappedNotifier(port, tap)
    if name.endswith("_secrets"):
        return lambda: tap.call(f"secrets.{name}", port, _without_secret)
    return Tapped(port, name, tap, _ERRORS.get(name, StoreUnavailable))


def _without_secret(executed: bool) -> Any:
    del executed
    raise SecretUnavailable


def tapped_intake(deps: IntakeDeps, tap: Tap) -> IntakeDeps:
    """The intake's smaller outside, through the tap."""
    return replace(
        deps,
        store=Tapped(deps.store, "store", tap, StoreUnavailable),
        queues=Tapped(deps.queues, "queues", tap, QueueUnavailable),
        payloads=lambda: Tapped(deps.payloads(), "payloads", tap, StoreUnavailable),
    )
