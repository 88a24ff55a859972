"""How often was a provider really called, and what did each call cost?

Every call gets an entry the moment it arrives, so a call that hangs is on record too. The file is
append-only: each change writes the whole entry again and the last line of a `seq` counts. A reset
writes a marker, and nothing before it is read back.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from .shapes import Asked, Incoming, Json, Usage, now_ms

_CREDENTIALS = ("authorization", "x-api-key", "x-goog-api-key")
_KEPT = re.compile(r"idempotency-key|user-agent|x-stainless-retry-count|x-(?!stainless-).*")
_EXCERPT = 500
_BY_KEY = ("metadata.", "header.")


@dataclass(slots=True)
class Entry:
    """One call.

    `processed`: the provider acted on it. `cost_bearing`: acting on such a call costs money.
    `charged`: both. `outcome`: open while it lasts, then answered, broken (it ended properly, but
    not whole), cut (by us) or client_gone (the caller left first).
    """

    seq: int
    at_ms: int
    route: str
    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    model: str = ""
    stream: bool = False
    background: bool = False
    metadata: dict[str, str] = field(default_factory=dict)
    excerpt: str = ""
    text_sha256: str = ""
    cost_bearing: bool = False
    processed: bool = False
    charged: bool = False
    status: int | None = None
    outcome: str = "open"
    fault: str | None = None
    provider_id: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    answered_ms: int | None = None

    def mentions(self, text: str) -> bool:
        """Whether the text occurs in what the caller said: prompt, metadata or headers."""
        said = (self.excerpt, *self.metadata.values(), *self.headers.values())
        return any(text in part for part in said)

    def value_of(self, name: str) -> str:
        """A metadata value, or with `header:` in front a header's; empty where there is none."""
        if name.startswith("header:"):
            return self.headers.get(name.removeprefix("header:"), "")
        return self.metadata.get(name, "")


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Pick the headers of interest; a credential is kept as the start of its hash only."""
    kept = {name: value for name, value in headers.items() if _KEPT.fullmatch(name) and name not in _CREDENTIALS}
    for name in _CREDENTIALS:
        if name in headers:
            digest = hashlib.sha256(headers[name].encode()).hexdigest()
            kept["authorization_sha256"] = digest[:16]
    return kept


class Ledger:
    """Every call since the last reset, in memory and in `ledger.jsonl`."""

    def __init__(self, folder: Path) -> None:
        """Continue the file of the folder, if it has one."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "ledger.jsonl"
        self._entries: dict[int, Entry] = _read_back(path) if path.exists() else {}
        self._next = max(self._entries, default=0) + 1
        torn = path.exists() and not path.read_bytes().endswith(b"\n")
        self._file = path.open("a", encoding="utf-8")
        if torn:  # the writer was killed in the middle of a line
            self._file.write("\n")

    def open(self, route: str, incoming: Incoming, *, cost_bearing: bool) -> Entry:
        """Put a call on record as it arrives."""
        entry = Entry(
            seq=self._next,
            at_ms=now_ms(),
            route=route,
            method=incoming.method,
            path=incoming.path,
            headers=kept_headers(incoming.headers),
            cost_bearing=cost_bearing,
        )
        self._next += 1
        self._entries[entry.seq] = entry
        self._write(asdict(entry))
        return entry

    def understood(self, entry: Entry, asked: Asked) -> None:
        """Add what the body said."""
        entry.model, entry.stream, entry.background = asked.model, asked.stream, asked.background
        entry.metadata = dict(asked.metadata)
        entry.excerpt = asked.text[:_EXCERPT]
        entry.text_sha256 = hashlib.sha256(asked.text.encode()).hexdigest()
        self._write(asdict(entry))

    def processed(self, entry: Entry, provider_id: str | None, usage: Usage) -> None:
        """Record that the provider acted on it, before anything is answered."""
        entry.processed, entry.charged = True, entry.cost_bearing
        entry.provider_id = provider_id
        entry.input_tokens, entry.output_tokens = usage.input, usage.output
        self._write(asdict(entry))

    def closed(self, entry: Entry, outcome: str, status: int | None = None) -> None:
        """Record how the call ended on the wire."""
        entry.outcome, entry.status, entry.answered_ms = outcome, status, now_ms()
        self._write(asdict(entry))

    def reset(self) -> None:
        """Forget all calls; the file keeps them above its marker."""
        self._entries.clear()
        self._write({"reset": now_ms()})

    def entries(self, query: Mapping[str, str]) -> list[Entry]:
        """List calls in order of arrival that match every filter; ValueError for an unknown one."""
        for name in query:
            if name not in _FILTERS and not name.startswith(_BY_KEY):
                known = ", ".join((*_FILTERS, *_BY_KEY))
                raise ValueError(f"unknown filter {name!r}; known: {known}")
        return [entry for entry in self._entries.values() if matches(entry, query)]

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, line: Json) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


def _read_back(path: Path) -> dict[int, Entry]:
    entries: dict[int, Entry] = {}
    for line in _whole_lines(path):
        if "reset" in line:
            entries.clear()
        else:
            entries[line["seq"]] = Entry(**line)
    return entries


def _whole_lines(path: Path) -> Iterator[Json]:
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            yield json.loads(text)
        except ValueError:  # a torn line
            continue


_FILTERS: dict[str, Callable[[Entry, str], bool]] = {
    "route": lambda entry, value: fnmatchcase(entry.route, value),
    "model": lambda entry, value: entry.model == value,
    "method": lambda entry, value: entry.method == value,
    "provider_id": lambda entry, value: entry.provider_id == value,
    "outcome": lambda entry, value: entry.outcome == value,
    "contains": lambda entry, value: entry.mentions(value),
    "charged": lambda entry, value: entry.charged == (value == "true"),
    "since": lambda entry, value: entry.seq > int(value),
}


def matches(entry: Entry, query: Mapping[str, str]) -> bool:
    """Whether a call meets all filters."""
    for name, value in query.items():
        if name in _FILTERS:
            met = _FILTERS[name](entry, value)
        else:
            kind, _, key = name.partition(".")
            met = entry.value_of(key if kind == "metadata" else f"header:{key}") == value
        if not met:
            return False
    return True


def summary(entries: list[Entry], group: str | None = None) -> Json:
    """Count calls and charges: in total, by route, and by the value of one metadata key."""
    routes: dict[str, list[Entry]] = {}
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        routes.setdefault(entry.route, []).append(entry)
        if group:
            groups.setdefault(entry.value_of(group), []).append(entry)
    counted: Json = {
        **_counts(entries),
        "routes": {name: _counts(found) for name, found in routes.items()},
    }
    if group:
        counted["groups"] = {name: _counts(found) for name, found in groups.items()}
    return counted


def _counts(entries: list[Entry]) -> Json:
    return {
        "calls": len(entries),
        "processed": sum(entry.processed for entry in entries),
        "charged": sum(entry.charged for entry in entries),
        "statuses": Counter(str(entry.status or entry.outcome) for entry in entries),
        "input_tokens": sum(entry.input_tokens for entry in entries),
        "output_tokens": sum(entry.output_tokens for entry in entries),
    }
