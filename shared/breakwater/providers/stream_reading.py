"""What does the answer of a provider say, piece by piece?

No sockets and no clock: bytes go in, events come out. Only the provider's terminal event makes a `Done`. Everything
else that ends a stream (a clean close, a cut, an error inside, an answer that is no stream) is read and classified
like any other reply, with what came of the answer kept beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from breakwater.domain.classify import classify
from breakwater.domain.reading import says_something
from breakwater.domain.results import Call, Completed, Refused, Result
from breakwater.domain.rules.bodies import parse_json
from breakwater.domain.rules.endings import End as Ending
from breakwater.domain.rules.streams import event_ending, named
from breakwater.domain.signals import ErrorClass, Reply, Signal
from breakwater.domain.sse import EventTooLarge, SseEvent, SseParser
from breakwater.domain.stream_events import (
    Done,
    Failed,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    UsageSeen,
)
from breakwater.providers import transport
from breakwater.providers.conversation import schema_of
from breakwater.providers.stream_assembler import Assembler

if TYPE_CHECKING:
    from breakwater.providers.base import Adapter

_DONE = "[DONE]"
_NOTHING = ("", "null")  # what gateways send to keep a connection
_FIRST_ERROR = 300
_LARGEST_ANSWER = 8 * 1024 * 1024


class Reading:
    """One stream as far as it was read. After `over` nothing more is taken in."""

    def __init__(self, adapter: Adapter, assembler: Assembler, call: Call) -> None:
        self._adapter, self._assembler, self._call = adapter, assembler, call
        self._parser = SseParser()
        self._status, self._headers = 0, dict[str, str]()
        self._whole: bytearray | None = None  # of an answer that is no stream
        self._size = 0
        self._counted: Any = None
        self.over = False

    def head(self, status: int, headers: Mapping[str, str]) -> list[StreamEvent]:
        """Status and headers. An error, and a gateway that ignores our wish, answer with a whole body."""
        self._status, self._headers = status, transport.lower(headers)
        kind = self._headers.get("content-type", "")
        if status >= _FIRST_ERROR or (kind and "event-stream" not in kind):
            self._whole = bytearray()
        return []

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        """The next bytes."""
        if self.over:
            return []
        if self._whole is not None:
            self._whole += chunk
            return []
        try:
            events = self._parser.feed(chunk)
        except EventTooLarge:
            return [self._broken("adapter.event_too_large")]
        return [one for event in events for one in self._event(event)]

    def end(self, reply: Reply | None) -> list[StreamEvent]:
        """The connection is over: cleanly, or as `reply` says."""
        if self.over:
            return []
        if reply is not None and reply.transport is None:
            return self._replied(reply)
        if self._whole is not None and reply is None:
            return self._replied(transport.reply_of(self._status, self._headers, bytes(self._whole)))
        if self._assembler.ended:
            return self._finished()
        began = bool(self._status) and self._whole is None
        lost = reply or Reply(status=self._status, headers=self._headers, received_at=transport.now_ms())
        return [self._failed(replace(lost, in_stream=began))]

    def _event(self, event: SseEvent) -> list[StreamEvent]:
        if self.over or event.name == "ping" or event.data.strip() in _NOTHING:
            return []
        if event.data.strip() == _DONE:
            whole = self._assembler.done()
            return self._finished() if whole else [self._broken("adapter.tool_call_cut")]
        data = parse_json(event.data)
        if not isinstance(data, Mapping):
            return [self._broken("adapter.event_unreadable")]
        data = named(event.name, data)
        ending = event_ending(data)
        if ending is not None and ending.end is Ending.ERROR:
            return [self._failed(replace(self._reply(data), in_stream=True))]
        found = self._assembler.take(data)
        self._size += sum(len(one.text) for one in found if isinstance(one, TextDelta))
        self._size += sum(len(one.arguments) for one in found if isinstance(one, ToolCallDelta))
        if self._size > _LARGEST_ANSWER:
            return [self._broken("adapter.answer_too_large")]
        return [*found, *self._counting(), *(self._finished() if self._assembler.closed else [])]

    def _counting(self) -> list[StreamEvent]:
        usage = self._assembler.usage()
        if usage is None or usage == self._counted:
            return []
        self._counted = _copied(usage)
        return [UsageSeen(usage=self._adapter.read(usage, self._headers).usage)]

    def _finished(self) -> list[StreamEvent]:
        """The provider's own end: success or not, as the same answer without a stream would be."""
        self.over = True
        return [self._outcome(self._reply(self._assembler.body()), told=True)]

    def _replied(self, reply: Reply) -> list[StreamEvent]:
        """A whole answer in place of a stream; where it is a success, it is told in one piece."""
        self.over = True
        event = self._outcome(reply, told=False)
        return [*_told(event.result), event] if isinstance(event, Done) else [event]

    def _outcome(self, reply: Reply, *, told: bool) -> Done | Failed:
        outcome = self._adapter.outcome(reply, self._call, wants_json=schema_of(self._call.payload) is not None)
        if isinstance(outcome, Completed):
            return Done(result=outcome.result)
        if isinstance(outcome, Refused):
            return Failed(signal=outcome.signal, partial=outcome.partial, told=told)
        return Failed(signal=self._adapter.signal(ErrorClass.UNKNOWN, "adapter.no_stream", reply))

    def _broken(self, rule: str) -> Failed:
        """It can't be read on without losing something."""
        self.over = True
        signal = self._adapter.signal(ErrorClass.STREAM_INCOMPLETE, rule, self._reply(None))
        return Failed(signal=signal, partial=self._partial())

    def _failed(self, reply: Reply) -> Failed:
        self.over = True
        signal: Signal = classify(self._adapter.provider, reply, route_key=self._adapter.route_key)
        return Failed(signal=signal, partial=self._partial())

    def _partial(self) -> Result | None:
        result = self._adapter.result_of(self._reply(self._assembler.body()), self._call)
        if result is None or not says_something(result):
            return None
        return replace(result, finish_reason="incomplete")

    def _reply(self, body: Any) -> Reply:
        status = self._status or 200
        return Reply(status=status, headers=self._headers, body=body, received_at=transport.now_ms())


def _told(result: Result) -> list[StreamEvent]:
    """A whole answer as pieces."""
    text: list[StreamEvent] = [TextDelta(text=result.text)] if result.text else []
    calls = [
        ToolCallDelta(index=n, id=str(one["id"]), name=str(one["name"]), arguments=str(one["arguments"]))
        for n, one in enumerate(result.tool_calls)
    ]
    return [*text, *calls]


def _copied(usage: dict[str, Any]) -> dict[str, Any]:
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in usage.items()}
