"""How is a server-sent event framed?"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable

from .shapes import Json

DONE = b"data: [DONE]\n\n"
HEADERS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


def data(body: Json) -> bytes:
    """Frame a payload without an event name."""
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def named(body: Json) -> bytes:
    """Frame a payload under its own `type` as event name."""
    return f"event: {body['type']}\n".encode() + data(body)


async def paced(frames: Iterable[bytes], pace_ms: int) -> AsyncIterator[bytes]:
    """Play frames with a pause before each but the first."""
    for number, frame in enumerate(frames):
        if number and pace_ms:
            await asyncio.sleep(pace_ms / 1000)
        yield frame
