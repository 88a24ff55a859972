"""How are answers shown? Tables for people, JSON for machines; times in UTC with their distance from now."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
_COLOURS = {
    "succeeded": "green",
    "dead_letter": "red",
    "failed": "yellow",
    "cancelled": "dim",
    "yes": "green",
    "no": "red",
    "unknown": "yellow",
    "stuck": "red",
    "done": "green",
    "needs_a_person": "magenta",
}

WIDTH_OF_A_PIPE = 140  # characters; a page or a file has room that a narrow terminal has not


def console() -> Console:
    """Standard output; wide enough that ids are never cut."""
    return Console(soft_wrap=True, width=None if sys.stdout.isatty() else WIDTH_OF_A_PIPE)


def as_json(value: Any) -> None:
    """Print a value as JSON."""
    typer.echo(json.dumps(value, indent=1))


def when(at: Any) -> str:
    """A time in UTC and how far away it is."""
    if at is None:
        return ""
    moment = datetime.fromtimestamp(int(at) / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    away = int(at) / 1000 - time.time()
    return f"{moment} ({length(abs(away))} {'from now' if away > 0 else 'ago'})"


def length(seconds: float) -> str:
    """A length of time in its largest unit."""
    return next((f"{int(seconds // size)}{name}" for size, name in _UNITS if seconds >= size), "0s")


def money(micros: Any) -> str:
    """Micro-dollars as dollars."""
    return "" if micros is None else f"${int(micros) / 1_000_000:.4f}"


def coloured(text: Any) -> str:
    """A word in the colour of what it means."""
    colour = _COLOURS.get(str(text))
    return f"[{colour}]{text}[/]" if colour else str(text)


def table(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], title: str | None = None) -> None:
    """Rows as a table; columns that end in `_at` are times, those with `cost` or `micros` are money."""
    found = list(rows)
    if not found:
        console().print(f"{title or 'Nothing'}: none." if title else "Nothing.", style="dim")
        return
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in columns:
        shown.add_column(name.replace("_", " "), overflow="fold", no_wrap=name.endswith("_id"))
    for row in found:
        shown.add_row(*(cell(name, row.get(name)) for name in columns))
    console().print(shown)


def cell(name: str, value: Any) -> str:
    """One value as text."""
    if value is None:
        return ""
    if name.endswith(("_at", "until", "since")) and isinstance(value, int):
        return when(value)
    if "cost" in name or name.endswith("micros"):
        return money(value)
    if isinstance(value, list | tuple):
        return ", ".join(str(one) for one in value)
    return coloured(value)


def facts(values: Mapping[str, Any], names: Sequence[str] | None = None) -> None:
    """Names and values, one a line; what is not known is left out."""
    out = console()
    for name in names or values:
        if values.get(name) not in (None, "", [], {}):
            out.print(f"  [dim]{name}[/] {cell(name, values[name])}", highlight=False)
