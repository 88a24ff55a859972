"""What does the running simulator know? It is lost when it stops, except for the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from .concurrency import Concurrency
from .faults import Fault, Faults
from .ledger import Ledger
from .presets import STANDING
from .responses_store import ResponseStore
from .shapes import now_ms
from .webhooks import Webhooks

Part = Literal["faults", "ledger", "responses", "webhooks", "concurrency"]
PARTS: tuple[Part, ...] = get_args(Part)


class World:
    """The state shared by all providers and the control API."""

    def __init__(self, folder: Path, *, background_delay_ms: int = 300, standing_fault: str | None = None) -> None:
        """Open the ledger of the folder; meet every call with the standing fault, if one is set."""
        self.started_ms = now_ms()
        self.background_delay_ms = background_delay_ms
        self.ledger = Ledger(folder)
        self.faults = Faults()
        self.responses = ResponseStore()
        self.concurrency = Concurrency()
        self.webhooks = Webhooks(self.spawn)
        self._tasks: set[asyncio.Task[None]] = set()
        if standing_fault:
            self.faults.add(standing(standing_fault))

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something nobody waits for, until it ends or the simulator is reset."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def reset(self, parts: Sequence[Part] = PARTS) -> None:
        """Forget these parts; responses and webhooks lose what they still had to do."""
        if {"responses", "webhooks"} & set(parts):
            self._cancel_work()
        owners = {
            "faults": self.faults.clear,
            "ledger": self.ledger.reset,
            "responses": self.responses.reset,
            "webhooks": self.webhooks.reset,
            "concurrency": self.concurrency.reset,
        }
        for part in parts:
            owners[part]()

    async def close(self) -> None:
        """Stop all work and close files and connections."""
        self._cancel_work()
        await self.webhooks.close()
        self.ledger.close()

    def _cancel_work(self) -> None:
        for task in self._tasks:
            task.cancel()


def standing(name: str) -> Fault:
    """Return the fault of a PROVIDER_FAULT value, which lasts until it is cleared."""
    if name not in STANDING:
        message = f"PROVIDER_FAULT={name!r} is not one of {', '.join(STANDING)}"
        raise ValueError(message)
    return Fault(preset=STANDING[name], count=None)
