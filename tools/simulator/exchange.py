"""How does one call go, from its arrival to its answer or its accident?

Ledger entry, key, understanding, fault, work, delay, answer: in this order for every endpoint.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from . import sse
from .accidents import AFTER_THE_WORK, BEFORE_THE_WORK, STREAM, Call
from .dialect import check_key
from .faults import Fault
from .operation import Operation
from .shapes import Asked, Incoming, Problem, Processed
from .wire import Wire
from .world import World


class Exchange:
    """The ASGI endpoint around an operation."""

    def __init__(self, world: World, operation: Operation) -> None:
        """Serve the operation in this world."""
        self._world = world
        self._operation = operation

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one call; whatever happens, the ledger learns how it ended."""
        wire = Wire(scope, receive, send)
        operation, ledger = self._operation, self._world.ledger
        incoming = await _incoming(scope, wire)
        entry = ledger.open(operation.route, incoming, cost_bearing=operation.cost_bearing)
        call = Call(self._world, operation, wire, entry, operation.dialect.headers())
        try:
            check_key(operation.dialect, incoming.headers, incoming.query)
            asked = operation.read(self._world, incoming)
            ledger.understood(entry, asked)
            with self._world.concurrency.inside(operation.route, asked.model):
                await self._serve(call, asked)
        except Problem as problem:
            status, body = operation.dialect.refusal(problem)
            await call.answer(Processed(status, json.dumps(body).encode()))
        finally:
            if entry.outcome == "open":
                ledger.closed(entry, "broken")

    async def _serve(self, call: Call, asked: Asked) -> None:
        operation, world = self._operation, self._world
        fault = world.faults.take(operation.route, operation.dialect.provider, asked)
        call.entry.fault = fault.name if fault else None
        if fault and not fault.does_the_work:
            await BEFORE_THE_WORK[fault.kind](call, fault)
            return
        processed = await operation.process(world, asked, fault)
        world.ledger.processed(call.entry, processed.provider_id, processed.usage)
        delay = fault.ms if fault and fault.kind == "slow" else 0
        delay += 0 if asked.background else asked.directives.number("delay")
        if delay and not await call.wire.rest(delay):
            call.closed("client_gone")
        elif fault and fault.kind in AFTER_THE_WORK:
            await AFTER_THE_WORK[fault.kind](call, fault, processed)
        elif processed.frames:
            await _stream(call, processed, fault)
        else:
            await call.answer(processed)


async def _incoming(scope: Scope, wire: Wire) -> Incoming:
    request = Request(scope)
    return Incoming(
        method=request.method,
        path=request.url.path,
        params=request.path_params,
        query=dict(request.query_params),
        headers=dict(request.headers),
        raw=await wire.read(),
    )


async def _stream(call: Call, processed: Processed, fault: Fault | None) -> None:
    player = asyncio.ensure_future(_play(call, processed, fault))
    watcher = asyncio.ensure_future(call.wire.until_gone())
    await asyncio.wait({player, watcher}, return_when=asyncio.FIRST_COMPLETED)
    watcher.cancel()
    if not player.done() and call.wire.lost and call.entry.outcome == "open":
        player.cancel()
        call.closed("client_gone")
    with suppress(asyncio.CancelledError):
        await player


async def _play(call: Call, processed: Processed, fault: Fault | None) -> None:
    if processed.frames is None:
        return
    breaks = STREAM.get(fault.kind) if fault else None
    sent = 0
    await call.wire.start({**call.headers, **sse.HEADERS})
    async for frame in processed.frames:
        if fault and breaks and sent == fault.after_events:
            await breaks(call, fault)
            return
        await call.wire.chunk(frame)
        sent += 1
    call.closed("answered", processed.status)
    await call.wire.finish()
