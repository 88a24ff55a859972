"""What does each kind of fault do to a call?

One table for faults that come before the provider did anything, one for those that come after the
work was done, one for those in the middle of a stream.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from . import sse
from .faults import Fault, Kind
from .ledger import Entry
from .operation import Operation
from .shapes import Processed
from .wire import Wire
from .world import World

_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Call:
    """One call in progress: where it came from, its line in the ledger, its usual headers."""

    world: World
    operation: Operation
    wire: Wire
    entry: Entry
    headers: dict[str, str]

    def closed(self, outcome: str, status: int | None = None) -> None:
        """Put the end on record."""
        self.world.ledger.closed(self.entry, outcome, status)

    async def answer(self, processed: Processed, outcome: str = "answered") -> None:
        """Send a complete answer; it is on record before the caller can have it."""
        self.closed("client_gone" if self.wire.lost else outcome, processed.status)
        headers = {**self.headers, "content-type": _JSON}
        await self.wire.answer(processed.status, headers, processed.body)


async def _status(call: Call, fault: Fault) -> None:
    plain = isinstance(fault.body, str)
    headers = {
        **call.headers,
        "content-type": "text/plain; charset=utf-8" if plain else _JSON,
        **{name.lower(): value for name, value in fault.headers.items()},
    }
    if fault.retry_after is not None:
        headers.pop("retry-after-ms", None)
        headers["retry-after"] = fault.retry_after
    if fault.retry_after == "":
        del headers["retry-after"]
    call.closed("client_gone" if call.wire.lost else "answered", fault.status)
    await call.wire.answer(fault.status, headers, _body(fault))


def _body(fault: Fault) -> bytes:
    if fault.body is None:
        return b""
    if isinstance(fault.body, str):
        return fault.body.encode()
    return json.dumps(_with_delay(fault.body, fault.retry_delay)).encode()


def _with_delay(body: Any, delay: str | None) -> Any:
    if delay is None:
        return body
    if isinstance(body, list):
        return [_with_delay(each, delay) for each in body]
    if isinstance(body, dict):
        return {name: delay if name == "retryDelay" else _with_delay(value, delay) for name, value in body.items()}
    return body


async def _hang(call: Call, fault: Fault) -> None:
    stayed = await call.wire.rest(fault.ms)
    call.closed("cut" if stayed else "client_gone")
    await call.wire.cut(reset=fault.reset)


async def _cut(call: Call, fault: Fault) -> None:
    call.closed("cut")
    await call.wire.cut(reset=fault.reset)


async def _cut_body(call: Call, fault: Fault, processed: Processed) -> None:
    call.closed("cut", processed.status)
    headers = {**call.headers, "content-type": _JSON}
    await call.wire.answer_half(processed.status, headers, processed.body)
    await call.wire.cut(reset=fault.reset)


async def _empty(call: Call, fault: Fault, processed: Processed) -> None:
    del fault
    await call.answer(Processed(processed.status, b""), "broken")


async def _truncated(call: Call, fault: Fault, processed: Processed) -> None:
    del fault
    half = processed.body[: len(processed.body) // 2]
    await call.answer(Processed(processed.status, half), "broken")


async def _stall(call: Call, fault: Fault) -> None:
    stayed = await call.wire.rest(fault.ms)
    call.closed("cut" if stayed else "client_gone", 200)
    await call.wire.cut(reset=fault.reset)


async def _stream_cut(call: Call, fault: Fault) -> None:
    call.closed("cut", 200)
    await call.wire.cut(reset=fault.reset)


async def _stream_error(call: Call, fault: Fault) -> None:
    call.closed("broken", 200)
    await call.wire.chunk(call.operation.stream_error(fault.error))
    await call.wire.finish()


async def _stream_end(call: Call, fault: Fault) -> None:
    del fault
    call.closed("broken", 200)
    await call.wire.finish()


async def _stream_done(call: Call, fault: Fault) -> None:
    await call.wire.chunk(sse.DONE)
    await _stream_end(call, fault)


def _after(before: Before) -> After:
    async def accident(call: Call, fault: Fault, processed: Processed) -> None:
        del processed
        await before(call, fault)

    return accident


Before = Callable[[Call, Fault], Awaitable[None]]
After = Callable[[Call, Fault, Processed], Awaitable[None]]
BEFORE_THE_WORK: dict[Kind, Before] = {"status": _status, "hang": _hang, "cut_before": _cut}
AFTER_THE_WORK: dict[Kind, After] = {
    "status": _after(_status),
    "hang": _after(_hang),
    "cut_before": _after(_cut),
    "cut_after": _after(_cut),
    "cut_body": _cut_body,
    "empty_body": _empty,
    "truncated_json": _truncated,
}
STREAM: dict[Kind, Before] = {
    "stream_cut": _stream_cut,
    "stream_stall": _stall,
    "stream_error": _stream_error,
    "stream_end": _stream_end,
    "stream_done": _stream_done,
}
