"""A tap at which, beside faults, another process may run in the middle of one; and a store whose indexes lag."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from breakwater.domain.states import Lane
from breakwater.ports import Backlog, DueItem, Waiter
from tests.crash.tap import Fault, KillProcess, Tap
from tests.fakes.store import FakeJobStore


@dataclass
class Chaos(Tap):
    """What goes wrong at the calls to come: `{n: fault}` and `{n: process}`, n calls from now."""

    faults: dict[int, Fault] = field(default_factory=dict)
    meanwhile: dict[int, Callable[[], None]] = field(default_factory=dict)
    number: int = 0

    def arm(self, fault: Fault, after: int) -> None:
        self.faults[self.number + after] = fault

    def interrupt(self, process: Callable[[], None], after: int) -> None:
        self.meanwhile[self.number + after] = process

    def calm(self) -> None:
        """Nothing goes wrong any more."""
        self.faults.clear()
        self.meanwhile.clear()

    def call(
        self, name: str, method: Callable[..., Any], broken: Callable[[bool], Any], *args: Any, **more: Any
    ) -> Any:
        number, self.number = self.number, self.number + 1
        other = self.meanwhile.pop(number, None)
        if other is not None:
            other()
        fault = self.faults.pop(number, None)
        if fault is Fault.KILL_BEFORE:
            raise KillProcess(name)
        if fault is Fault.REFUSED:
            return broken(False)
        answer = method(*args, **more)
        if fault is Fault.KILL_AFTER:
            raise KillProcess(name)
        return broken(True) if fault is Fault.LOST else answer


class LaggingStore(FakeJobStore):
    """Its items are read consistently; its indexes may show how things were when `freeze` was called."""

    def __init__(self) -> None:
        super().__init__()
        self._frozen: dict[tuple[str, str], dict[str, Any]] | None = None

    def freeze(self) -> None:
        self._frozen = dict(self.items)

    def thaw(self) -> None:
        self._frozen = None

    def _as_indexed(self, read: Callable[[], Any]) -> Any:
        if self._frozen is None:
            return read()
        current, self.items = self.items, self._frozen
        try:
            return read()
        finally:
            self.items = current

    def due(
        self, shard: int, until: int, limit: int, cursor: Mapping[str, Any] | None = None, **more: Any
    ) -> tuple[list[DueItem], Mapping[str, Any] | None]:
        return self._as_indexed(lambda: super(LaggingStore, self).due(shard, until, limit, cursor, **more))

    def waiters(self, scope: str, limit: int) -> list[Waiter]:
        return self._as_indexed(lambda: super(LaggingStore, self).waiters(scope, limit))

    def waiters_by_owner(self, scope: str, after: str, limit: int) -> tuple[list[Waiter], bool]:
        return self._as_indexed(lambda: super(LaggingStore, self).waiters_by_owner(scope, after, limit))

    def backlog(self, lane: Lane, owner_key: str | None, most: int) -> Backlog:
        return self._as_indexed(lambda: super(LaggingStore, self).backlog(lane, owner_key, most))
