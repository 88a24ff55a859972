"""`docs/benchmarks/outage.md` from the last run: what was expected, what was measured, both sides.

python -m tests.bench.outage.report .local/bench/outage.json docs/benchmarks
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.bench.outage.ratios import DEADLINE, MARGIN, ratios

_WASTED = 0.02
_ROWS = (
    ("calls at the provider", "calls"),
    ("wasted calls in the outage (answered with a fault, or not at all)", "wasted_calls"),
    ("requests of people", "interactive"),
    (f"answered within {DEADLINE + MARGIN:g} s", "answered_in_time"),
    ("slowest answer, s", "slowest_answer_s"),
    ("what people were told in the outage", "outcomes_in_outage"),
    ("paid twice", "duplicates"),
    ("background work done at the end", "background_done"),
    ("backlog back to normal after recovery, s", "drained_after_s"),
    ("calls in the first minute after recovery", "calls_in_first_minute_after"),
    ("most calls in one second of it", "most_calls_in_a_second_after"),
)
_HEAD = """# A provider's outage

Written by `make bench-outage`. One steady load on two stacks in one local cloud: people who wait (`POST /v1/run`), and
background work, of three owners. Then the provider answers 503, then 429 with `Retry-After: 30`, then hangs, then 529;
and comes back. The other side is SQS + Lambda + Powertools as public documentation would have people build it, in its
best form: partial batches, idempotency in a table, the vendor's SDK with its own retries (`tests/bench/outage`).
"""


def page(facts: dict[str, Any]) -> str:
    """The whole page."""
    found = ratios(facts)
    lasted = facts["up"] - facts["down"]
    rows = [
        f"The outage lasted {lasted:.0f} s. Measured {time.strftime('%Y-%m-%d', time.gmtime(facts['began']))}.\n",
        "| expected of ours | measured | |\n| --- | ---: | --- |",
        *(f"| {name} | {value} | {'met' if met else 'not met'} |" for name, value, met in _aims(found)),
        "\n| | Breakwater | baseline |\n| --- | ---: | ---: |",
        *(f"| {name} | {_told(found['ours'][key])} | {_told(found['plain'][key])} |" for name, key in _ROWS),
    ]
    pictures = ["\n![Breakwater](outage-ours.png)\n", "![the baseline](outage-plain.png)"]
    return "\n".join([_HEAD, *rows, *pictures]) + "\n"


def _aims(found: dict[str, Any]) -> Iterator[tuple[str, str, bool]]:
    ours, wasted = found["ours"], found["wasted_calls_of_baseline"]
    answered = ours["answered_in_time"] or 0
    yield f"people answered within their deadline + {MARGIN} s: all", f"{answered:.1%}", answered == 1
    if wasted is not None:
        yield f"at most {_WASTED:.0%} of the baseline's wasted calls", f"{wasted:.1%}", wasted <= _WASTED
    yield "nothing paid twice", str(ours["duplicates"]), ours["duplicates"] == 0
    for model, one in ours["limits"].items():
        told = f"{one['at_once']} at once, {one['in_a_minute_after']} in a minute after recovery"
        yield f"no limit of {model} exceeded", told, one["kept"]


def _told(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in sorted(value.items(), key=lambda one: -one[1]))
    return "-" if value is None else f"{value:g}"


if __name__ == "__main__":
    source, folder = map(Path, sys.argv[1:])
    (folder / "outage.md").write_text(page(json.loads(source.read_text())))
