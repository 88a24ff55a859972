"""What do create, retrieve and cancel of the OpenAI Responses API do?

There is no idempotency: the same create twice is two responses and two lines in the ledger.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from . import sse
from .answers import answer_to
from .background import begin, cancel
from .dialect import Dialect
from .faults import Fault
from .openai_read import read_response
from .openai_shape import events_of, response_object
from .operation import Operation
from .responses_store import Record, natural_end
from .shapes import Asked, Incoming, Json, Problem, Processed, Usage
from .world import World


class CreateResponse(Operation):
    """`POST /responses`: at once, as a stream, or in the background."""

    def __init__(self, dialect: Dialect) -> None:
        """Serve the route `openai.responses`."""
        super().__init__("openai.responses", dialect)

    def read(self, world: World, incoming: Incoming) -> Asked:
        """Understand the body."""
        del world
        return read_response(incoming)

    async def process(self, world: World, asked: Asked, fault: Fault | None) -> Processed:
        """Make the response, or begin it; a begun one is answered as queued, come what may."""
        record = Record(asked, answer_to(asked), "queued" if asked.background else "in_progress")
        world.responses.add(record)
        if asked.background:
            queued = response_object(record)
            await begin(world, record, fault)
            return _processed(record, queued, _following(record, -1) if asked.stream else None)
        record.end(*natural_end(record.answer))
        end = response_object(record)
        return _processed(record, end, _playing(record, end) if asked.stream else None)

    def stream_error(self, error: Json | None) -> bytes:
        """This API's error events are flat."""
        fallback = {"code": "server_error", "message": "The server had an error."}
        return sse.named({"type": "error", "param": None, **(error or fallback)})


class RetrieveResponse(Operation):
    """`GET /responses/{id}`, with `stream=true&starting_after=N` to resume a stream."""

    def __init__(self, dialect: Dialect) -> None:
        """Serve the route `openai.responses.get`."""
        super().__init__("openai.responses.get", dialect, cost_bearing=False)

    def read(self, world: World, incoming: Incoming) -> Asked:
        """Find the response; the ledger gets what its create said."""
        record = _found(world, incoming)
        stream = incoming.query.get("stream") == "true"
        if stream and not (record.asked.stream and record.asked.background):
            raise Problem("bad_request", "This response was not created to stream in background.")
        after = incoming.query.get("starting_after", "-1")
        if not after.removeprefix("-").isdecimal():
            raise Problem("bad_request", "starting_after must be an integer.", "starting_after")
        return _about(record, stream=stream, after=int(after))

    async def process(self, world: World, asked: Asked, fault: Fault | None) -> Processed:
        """Tell how it stands, or follow its events."""
        del fault
        record = _known(world, asked)
        frames = _following(record, asked.body["after"]) if asked.stream else None
        return _processed(record, response_object(record), frames, paid=False)


class CancelResponse(Operation):
    """`POST /responses/{id}/cancel`: ends what runs, leaves alone what has ended."""

    def __init__(self, dialect: Dialect) -> None:
        """Serve the route `openai.responses.cancel`."""
        super().__init__("openai.responses.cancel", dialect, cost_bearing=False)

    def read(self, world: World, incoming: Incoming) -> Asked:
        """Find the response; only background responses can be cancelled."""
        record = _found(world, incoming)
        if not record.asked.background:
            raise Problem("bad_request", "Only background responses can be cancelled.")
        return _about(record)

    async def process(self, world: World, asked: Asked, fault: Fault | None) -> Processed:
        """Cancel it, if it runs."""
        del fault
        record = _known(world, asked)
        cancel(world, record)
        return _processed(record, response_object(record), paid=False)


def _found(world: World, incoming: Incoming) -> Record:
    response_id = incoming.params["id"]
    record = world.responses.find(response_id)
    if record is None or not record.stored:
        raise Problem("not_found", f"Response with id '{response_id}' not found.")
    return record


def _about(record: Record, *, stream: bool = False, after: int = -1) -> Asked:
    said = record.asked
    body = {"id": record.id, "after": after}
    return Asked(said.model, text=said.text, metadata=said.metadata, stream=stream, body=body)


def _known(world: World, asked: Asked) -> Record:
    record = world.responses.find(asked.body["id"])
    if record is None:
        raise Problem("not_found", "The response is gone.")
    return record


def _playing(record: Record, end: Json) -> AsyncIterator[bytes]:
    frames = map(sse.named, events_of(record, end))
    return sse.paced(frames, record.asked.directives.number("pace"))


async def _following(record: Record, after: int) -> AsyncIterator[bytes]:
    async for event in record.follow(after):
        yield sse.named(event)


def _processed(
    record: Record, body: Json, frames: AsyncIterator[bytes] | None = None, *, paid: bool = True
) -> Processed:
    return Processed(
        body=json.dumps(body).encode(),
        frames=frames,
        provider_id=record.id,
        usage=record.answer.usage if paid else Usage(),
    )
