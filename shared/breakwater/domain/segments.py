"""How is a stream kept, so that every reader sees one answer and nobody can splice another into it?

A holder of the lease writes its part of the answer as a log: immutable children `SEG#incarnation#generation#epoch#n`,
n = 0, 1, 2 …, each put if absent. META names the epoch whose log is visible, in the same write that flips
`partial_output_committed`. Who takes a stream over puts a *seal* on the first free number of the old log: from then on
the old holder's next put finds the place taken and stops, so where a log ends was decided once, by the table. A seal
names the epoch whose log goes on. The chain of logs from META's epoch is the answer, each piece in it exactly once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from breakwater.domain.records import Child
from breakwater.domain.results import Result
from breakwater.domain.stream_events import Delta, EffectBegun, TextDelta, ToolCallDelta
from breakwater.domain.values import dataclass

FLUSH_MS = 250
FLUSH_BYTES = 4 * 1024
LARGEST_SEGMENT = 300 * 1024  # an item holds 400 KB


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One entry of a log: pieces of the answer, or its end. `sequence`: every event up to it is told."""

    epoch: int
    n: int
    deltas: tuple[Delta, ...] = ()
    sequence: int | None = None
    sealed: bool = False
    next_epoch: int | None = None


def log_prefix(incarnation: int, generation: int, epoch: int) -> str:
    """What all keys of one log begin with."""
    return f"SEG#{incarnation:013d}#{generation:04d}#{epoch:06d}#"


def segment_key(incarnation: int, generation: int, epoch: int, n: int) -> str:
    """Where the n-th segment of a log stands."""
    return f"{log_prefix(incarnation, generation, epoch)}{n:06d}"


def segment_child(incarnation: int, generation: int, segment: Segment) -> Child:
    """A segment as it is stored."""
    facts = {"sequence": segment.sequence, "next_epoch": segment.next_epoch, "sealed": segment.sealed or None}
    return Child(
        sk=segment_key(incarnation, generation, segment.epoch, segment.n),
        data={name: value for name, value in facts.items() if value is not None},
        body=_text([plain(one) for one in segment.deltas]),
    )


def _text(value: Any) -> str:
    """JSON in UTF-8; with escapes where there is half a character that UTF-8 has no bytes for."""
    found = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    try:
        found.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return found


def segment_of(child: Child) -> Segment:
    """The reverse of `segment_child`."""
    *_, epoch, n = child.sk.split("#")
    return Segment(
        epoch=int(epoch),
        n=int(n),
        deltas=tuple(_delta(one) for one in json.loads(child.body or "[]")),
        sequence=child.data.get("sequence"),
        sealed=bool(child.data.get("sealed")),
        next_epoch=child.data.get("next_epoch"),
    )


def plain(delta: Delta) -> dict[str, Any]:
    """A piece as plain data, for the table and for readers."""
    if isinstance(delta, TextDelta):
        return {"text": delta.text}
    if isinstance(delta, EffectBegun):
        return {"effect": delta.kind}
    call = {"index": delta.index, "id": delta.id, "name": delta.name, "arguments": delta.arguments}
    return {"tool_call": {name: value for name, value in call.items() if value != ""}}


def _delta(data: Mapping[str, Any]) -> Delta:
    if "tool_call" in data:
        return ToolCallDelta(**data["tool_call"])
    return EffectBegun(kind=data["effect"]) if "effect" in data else TextDelta(text=data["text"])


def size_of(delta: Delta) -> int:
    """About how many bytes a piece takes."""
    if isinstance(delta, TextDelta):
        return len(delta.text.encode("utf-8", "replace"))
    if isinstance(delta, EffectBegun):
        return len(delta.kind)
    return len(delta.arguments.encode("utf-8", "replace")) + len(delta.name) + len(delta.id)


def merged(deltas: Iterable[Delta]) -> tuple[Delta, ...]:
    """The same pieces, neighbours put together."""
    found: list[Delta] = []
    for one in deltas:
        last = found[-1] if found else None
        if isinstance(one, TextDelta) and isinstance(last, TextDelta):
            found[-1] = TextDelta(text=last.text + one.text)
        elif isinstance(one, ToolCallDelta) and isinstance(last, ToolCallDelta) and last.index == one.index:
            found[-1] = ToolCallDelta(
                index=one.index,
                id=last.id or one.id,
                name=last.name or one.name,
                arguments=last.arguments + one.arguments,
            )
        else:
            found.append(one)
    return tuple(found)


@dataclass(slots=True)
class Answer:
    """What was told of an answer so far."""

    parts: list[str] = field(default_factory=list)
    calls: dict[int, ToolCallDelta] = field(default_factory=dict)

    def add(self, deltas: Iterable[Delta]) -> None:
        """Take the next pieces."""
        for one in deltas:
            if isinstance(one, TextDelta):
                self.parts.append(one.text)
            elif isinstance(one, ToolCallDelta):
                before = self.calls.get(one.index, ToolCallDelta(index=one.index))
                self.calls[one.index] = merged([before, one])[0]  # type: ignore[assignment]

    @property
    def text(self) -> str:
        """All text."""
        if len(self.parts) > 1:
            self.parts = ["".join(self.parts)]
        return self.parts[0] if self.parts else ""

    @property
    def tool_calls(self) -> tuple[dict[str, Any], ...]:
        """The calls of tools in our shape, as far as they were told."""
        return tuple(
            {"id": one.id, "name": one.name, "arguments": one.arguments} for _, one in sorted(self.calls.items())
        )

    def __bool__(self) -> bool:
        return bool(self.parts or self.calls)


def remainder(seen: Answer, result: Result) -> tuple[Delta, ...] | None:
    """What of the whole answer was not told yet; None where what was told is no beginning of it."""
    if not result.text.startswith(seen.text):
        return None
    rest = result.text[len(seen.text) :]
    calls = _calls_left(seen, result.tool_calls)
    if calls is None:
        return None
    return (*((TextDelta(text=rest),) if rest else ()), *calls)


def _calls_left(seen: Answer, whole: Sequence[Mapping[str, Any]]) -> tuple[ToolCallDelta, ...] | None:
    """Calls are held against each other by place: providers number them as they like."""
    told = [one for _, one in sorted(seen.calls.items())]
    if len(told) > len(whole):
        return None
    places = [one.index for one in told]
    following = (max(places) + 1) if places else 0
    places += range(following, following + len(whole) - len(told))
    left = []
    for number, call in enumerate(whole):
        before = told[number] if number < len(told) else None
        given = str(call.get("arguments") or "")
        if before is None:
            names = str(call.get("id") or ""), str(call.get("name") or "")
            left.append(ToolCallDelta(index=places[number], id=names[0], name=names[1], arguments=given))
        elif not _same_beginning(before, call, given):
            return None
        elif len(given) > len(before.arguments) and given.startswith(before.arguments):
            left.append(ToolCallDelta(index=before.index, arguments=given[len(before.arguments) :]))
    return tuple(left)


def _same_beginning(told: ToolCallDelta, call: Mapping[str, Any], given: str) -> bool:
    if told.name and told.name != call.get("name"):
        return False
    return given.startswith(told.arguments) or _same_json(told.arguments, given)


def _same_json(one: str, other: str) -> bool:
    """Arguments that some providers give as an object are written out by us, with blanks of our own."""
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False
