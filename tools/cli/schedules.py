"""When will a schedule run? In the clock on the wall and in UTC, before it is switched on."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
import yaml
from rich.console import Console
from rich.table import Table

from breakwater.domain.calendar import Rate
from breakwater.domain.errors import InvalidPolicy
from breakwater.domain.schedules import Schedule, load_schedules
from breakwater.domain.windows import Window, idempotency_key, next_runs
from breakwater.domain.zones import instant
from tools.cli.show import WIDTH_OF_A_PIPE

FILE = Path(__file__).resolve().parents[2] / "shared" / "policies" / "schedules.yaml"

app = typer.Typer(no_args_is_help=True, help="Look at the schedules: which there are, and when they run next.")
File = Annotated[Path, typer.Option("--file", help="The file with the schedules.")]
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


@app.command("list")
def list_schedules(file: File = FILE, as_json: AsJson = False) -> None:
    """Print every schedule with its rhythm, its rules and its next run."""
    now = time.time_ns() // 1_000_000
    rows = [_row(one, next_runs(one, now, 1)) for one in _load(file).values()]
    _print(rows, as_json, f"No schedules in {file}.")


@app.command()
def preview(
    name: str,
    count: Annotated[int, typer.Option("-n", "--count", min=1, max=1_000, help="How many runs.")] = 10,
    after: Annotated[str | None, typer.Option(help="From then on, ISO 8601; now, if not given.")] = None,
    file: File = FILE,
    as_json: AsJson = False,
) -> None:
    """Print the next runs of a schedule in local time and in UTC, as the two daylight-saving rules make them."""
    schedule = _load(file).get(name)
    if schedule is None:
        raise typer.BadParameter(f"there is no schedule {name}; there are: {', '.join(_load(file)) or 'none'}")
    runs = next_runs(schedule, _instant(after), count)
    rows = [{"local": one.local, "utc": one.utc, "key": idempotency_key(schedule, one)} for one in runs]
    if not as_json:
        Console(soft_wrap=True).print(_title(schedule), markup=False, highlight=False)
    _print(rows, as_json, "It never runs.")


def _load(file: Path) -> dict[str, Schedule]:
    try:
        return load_schedules(yaml.safe_load(file.read_text(encoding="utf-8")) or {})
    except (InvalidPolicy, OSError, yaml.YAMLError) as error:
        Console(stderr=True, soft_wrap=True).print(f"{file.name}: {error}", style="red", markup=False)
        raise typer.Exit(1) from error


def _instant(after: str | None) -> int:
    if after is None:
        return time.time_ns() // 1_000_000
    try:
        return instant(after)
    except ValueError as error:
        raise typer.BadParameter(f"--after must be a time such as 2026-03-28T12:00:00Z, got {after}") from error


def _row(schedule: Schedule, following: list[Window]) -> dict[str, str]:
    return {
        "name": schedule.name,
        "enabled": "yes" if schedule.enabled else "no",
        "workflow": schedule.workflow,
        "rhythm": schedule.cron or f"every {schedule.every}",
        "zone": schedule.zone,
        "overlap": schedule.overlap.value,
        "missed": schedule.missed.value,
        "next": following[0].local if following else "never",
    }


def _title(schedule: Schedule) -> str:
    """The schedule in one line, with the rules in force rather than those written down."""
    state = "" if schedule.enabled else ", switched off"
    rhythm = schedule.rhythm
    if isinstance(rhythm, Rate):
        return f"{schedule.name}: every {schedule.every} of elapsed time, shown for {schedule.zone}{state}"
    rules = f"nonexistent: {rhythm.nonexistent.value}, ambiguous: {rhythm.ambiguous.value}"
    return f"{schedule.name}: {rhythm.expression} in {rhythm.zone} ({rules}){state}"


def _print(rows: list[dict[str, str]], as_json: bool, otherwise: str) -> None:
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    if not rows:
        typer.echo(otherwise)
        return
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*row.values())
    Console(soft_wrap=True, width=None if sys.stdout.isatty() else WIDTH_OF_A_PIPE).print(table)
