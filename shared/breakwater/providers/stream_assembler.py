"""What do all readers of a provider's stream share?

An assembler takes events as parsed JSON and gives what is new; beside that it puts the pieces together into the body
that the same API would have answered without a stream, so that one reading and one classification serve both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from breakwater.domain.stream_events import StreamEvent

Json = Mapping[str, Any]


class Assembler(ABC):
    """One answer as far as it came."""

    resumable: ClassVar[bool] = False

    def __init__(self) -> None:
        self.ended = False  # the provider said that the answer is over: an end of the connection is no loss
        self.closed = False  # by its terminal event: nothing follows

    @abstractmethod
    def take(self, data: Json) -> list[StreamEvent]:
        """What this event adds. Total: a field of the wrong type reads as one that is missing."""

    @abstractmethod
    def body(self) -> dict[str, Any]:
        """The answer so far, in the shape of an answer without stream."""

    def usage(self) -> dict[str, Any] | None:
        """A body with nothing but what was counted so far; None where nothing was."""
        return None

    def done(self) -> bool:
        """The mark `[DONE]` came: whether the answer is over. A mark of APIs that have no other terminal event."""
        return self.ended
