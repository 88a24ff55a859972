"""Where in an answer is a reader? Its `Last-Event-ID`, read back without trusting it.

`1.3.12`: generation 1, the log of epoch 3, segment 12. `1.rest.400`: 400 characters of the text are told, and what is
left comes from the stored result. `1.end`: the terminal event was told.
"""

from __future__ import annotations

import re

from breakwater.domain.values import dataclass

_SEGMENT = re.compile(r"([0-9]{1,6})\.([0-9]{1,9})\.([0-9]{1,6})", re.ASCII)
_REST = re.compile(r"([0-9]{1,6})\.rest\.([0-9]{1,9})", re.ASCII)
_END = re.compile(r"([0-9]{1,6})\.end", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What was told last. Without epoch, characters and end: nothing yet."""

    generation: int
    epoch: int | None = None
    n: int = -1
    told: int | None = None  # characters of the text, once it comes from the stored result
    ended: bool = False

    @property
    def id(self) -> str:
        """As an event carries it."""
        if self.ended:
            return f"{self.generation}.end"
        if self.told is not None:
            return f"{self.generation}.rest.{self.told}"
        return f"{self.generation}.{self.epoch}.{self.n}"


def place_of(text: str | None) -> Place | None:
    """The place behind an id; None where there is none, or one that we never gave."""
    text = (text or "").strip()
    if found := _SEGMENT.fullmatch(text):
        return Place(generation=int(found[1]), epoch=int(found[2]), n=int(found[3]))
    if found := _REST.fullmatch(text):
        return Place(generation=int(found[1]), told=int(found[2]))
    if found := _END.fullmatch(text):
        return Place(generation=int(found[1]), ended=True)
    return None
