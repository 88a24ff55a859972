"""What does one rule look like?

A row is data: conditions, and the class they mean. All conditions of a row must hold; one that is absent holds.
First match wins, so rows stand from the most to the least telling: money before pace, words before statuses.
"""

from __future__ import annotations

from collections.abc import Collection

from breakwater.domain.rules.endings import End
from breakwater.domain.rules.facts import Facts, Shape
from breakwater.domain.signals import ErrorClass, LimitDimension, TransportFailure
from breakwater.domain.values import dataclass

ANY_CALLER_STATUS = frozenset({200, 400, 404, 405, 409, 412, 413, 414, 415, 422, 431})
"""Statuses beside which a word may mean a caller fault: others say more than the word does."""


_REFUSALS = range(400, 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """Conditions on the facts. Empty means: any."""

    transport: Collection[TransportFailure] = ()
    status: Collection[int] = ()
    refused: bool | None = None  # the status says that the request was refused: 4xx
    in_stream: bool | None = None
    shape: Collection[Shape] = ()
    ending: Collection[End] = ()
    words: Collection[str] = ()  # at least one of them is among the provider's words
    quotas: tuple[str, ...] = ()  # at least one is part of a quota's name
    text: tuple[str, ...] = ()  # at least one is part of a message: only where a provider has no word for it

    def holds(self, facts: Facts) -> bool:
        """Whether every condition that is set is met."""
        return all(
            (
                not self.transport or facts.transport in self.transport,
                not self.status or facts.status in self.status,
                self.refused is None or (facts.status in _REFUSALS) is self.refused,
                self.in_stream is None or facts.in_stream is self.in_stream,
                not self.shape or facts.shape in self.shape,
                not self.ending or facts.ending.end in self.ending,
                not self.words or not facts.words.isdisjoint(self.words),
                not self.quotas or any(part in quota for part in self.quotas for quota in facts.quotas),
                not self.text or any(part in facts.text for part in self.text),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One rule. `implies` is the status the provider gives this error where it had to say 200 first."""

    name: str
    when: When
    error_class: ErrorClass
    limit_dimension: LimitDimension | None = None
    implies: int | None = None


Rows = tuple[Row, ...]
