"""What did an operator do, to what, and why? One entry before a change and one after it; never changed, never content.

`asked` stands before the change with what was there, so that a crash leaves no change without a name. `done` or
`refused` follows with what came of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from breakwater.domain.values import dataclass


class Stage(StrEnum):
    """Where in an action the entry was written."""

    ASKED = "asked"
    DONE = "done"
    REFUSED = "refused"


_ORDER = {Stage.ASKED: 0, Stage.REFUSED: 1, Stage.DONE: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line. `before` and `after` hold states, ids and numbers."""

    id: str  # of the action; the same for its stages
    at: int  # when it was asked for
    stage: Stage
    who: str  # owner and key id of the caller
    what: str  # the action: replay, close, approve, open_route…
    target: str  # what it was done to: `job:…`, `route:…`, `key:…`
    why: str
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)

    @property
    def month(self) -> str:
        """The partition it stands in."""
        return month_of(self.at)

    @property
    def sk(self) -> str:
        """Its place among the others: by time, then action, then stage."""
        return f"{self.at:013d}#{self.id}#{_ORDER[self.stage]}"

    def data(self) -> dict[str, Any]:
        """As plain data, as the table and the log group keep it."""
        return {
            "id": self.id,
            "at": self.at,
            "stage": self.stage.value,
            "who": self.who,
            "what": self.what,
            "target": self.target,
            "why": self.why,
            "before": dict(self.before),
            "after": dict(self.after),
        }


def entry_of(data: Mapping[str, Any]) -> Entry:
    """The reverse of `Entry.data`."""
    known = {name: data[name] for name in Entry.__dataclass_fields__ if name in data}
    return Entry(**{**known, "stage": Stage(data["stage"])})


def month_of(at: int) -> str:
    """`YYYY-MM` of a time."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m")
