"""How does a background response live: when does it move, how does it end, who is told?"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from .faults import Fault, Outcome
from .openai_shape import events_of, response_object
from .responses_store import RUNNING, Record, natural_end
from .shapes import Json
from .webhooks import tried_within
from .world import World

GAUGE = "openai.responses.running"
_QUEUED_SHARE = 0.3
_EVENTS_QUEUED = 2
_EVENTS_STARTED = 3


@dataclass(frozen=True, slots=True)
class Script:
    """How this response will end, and after how long."""

    outcome: str
    error: Json | None
    reason: str | None
    delay_ms: int


async def begin(world: World, record: Record, fault: Fault | None) -> None:
    """Set a response going; in webhook mode `early`, bring it to its end first."""
    script = _script(world, record, fault)
    if record.asked.stream:
        record.events = events_of(record, _foreseen(record, script))
    early = world.webhooks.mode(record.asked.directives.text("webhook")) == "early"
    if early and script.outcome not in RUNNING:
        tried = finish(world, record, script.outcome, script.error, script.reason)
        await tried_within(tried, world.webhooks.settings.early_hold_ms)
    else:
        record.task = world.spawn(_live(world, record, script))


def finish(
    world: World,
    record: Record,
    outcome: str,
    error: Json | None = None,
    reason: str | None = None,
) -> asyncio.Event:
    """End a response and tell the receiver; set once that was tried."""
    record.end(outcome, error, reason)
    if record.events and outcome != "cancelled":
        last = {"type": f"response.{outcome}", "response": response_object(record)}
        record.events[-1].update(last)
        record.reveal(len(record.events))
    return world.webhooks.notify(record.id, outcome, record.asked.directives.text("webhook"))


def cancel(world: World, record: Record, outcome: Outcome = "cancelled") -> None:
    """End a running response now; one that has ended stays as it is."""
    if not record.running:
        return
    if record.task is not None:
        record.task.cancel()
    natural = natural_end(record.answer)
    matching = natural if natural[0] == outcome else (outcome, None, "max_output_tokens")
    finish(world, record, *matching)


def _script(world: World, record: Record, fault: Fault | None) -> Script:
    wants = record.asked.directives
    delay = wants.number("delay", world.background_delay_ms)
    if fault is None or fault.kind != "background":
        return Script(*natural_end(record.answer), delay)
    delay = delay if fault.delay_ms is None else fault.delay_ms
    if fault.outcome == "completed":
        return Script(*natural_end(record.answer), delay)
    return Script(fault.outcome, fault.error, fault.reason, delay)


def _foreseen(record: Record, script: Script) -> Json:
    outcome = "completed" if script.outcome in RUNNING else script.outcome
    ended = replace(record)
    ended.end(outcome, script.error, script.reason)
    return response_object(ended)


async def _live(world: World, record: Record, script: Script) -> None:
    with _counted(world, record):
        record.reveal(_EVENTS_QUEUED)
        if script.outcome == "queued":
            await _for_ever()
        await asyncio.sleep(script.delay_ms * _QUEUED_SHARE / 1000)
        record.move("in_progress")
        record.reveal(_EVENTS_STARTED)
        if script.outcome == "in_progress":
            await _for_ever()
        await _work(record, script.delay_ms * (1 - _QUEUED_SHARE))
        finish(world, record, script.outcome, script.error, script.reason)


async def _for_ever() -> None:
    await asyncio.Event().wait()


async def _work(record: Record, milliseconds: float) -> None:
    steps = max(1, len(record.events) - _EVENTS_STARTED - 1)
    pace = record.asked.directives.number("pace") or milliseconds / steps
    for step in range(steps):
        await asyncio.sleep(pace / 1000)
        record.reveal(min(_EVENTS_STARTED + step + 1, len(record.events) - 1))


@contextmanager
def _counted(world: World, record: Record) -> Iterator[None]:
    world.concurrency.enter(GAUGE, record.asked.model)
    try:
        yield
    finally:
        world.concurrency.leave(GAUGE, record.asked.model)
