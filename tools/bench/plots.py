"""Draws the plots from `results.json`. Runs in the environment of the benchmarks, which alone has matplotlib."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl  # type: ignore[import-not-found]

mpl.use("Agg")
from matplotlib import pyplot as plt

_COLOURS = {"Breakwater": "tab:blue", "SQS + Lambda": "tab:green", "durable function": "tab:red"}


def main(results: Path, out: Path) -> None:
    """Every plot whose figures are there."""
    found = json.loads(results.read_text())
    if "cold" in found:
        cold(found["cold"], out / "coldstart.png")
    if "calls" in found:
        money(found["calls"], out / "money.png")
    if "peers" in found:
        peers(found["peers"], out / "peers.png")
    if "versus" in found:
        pace(found["versus"], out / "pace.png")


def cold(starts: list[dict[str, Any]], out: Path) -> None:
    """Bars of INIT, and what the first invocation adds."""
    figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
    names = [one["name"].removesuffix("Function") for one in starts]
    axes.barh(names, [one["init"] for one in starts], label="INIT")
    rest = [one["first"] - one["init"] for one in starts]
    axes.barh(names, rest, left=[one["init"] for one in starts], label="first invocation")
    axes.invert_yaxis()
    axes.set_xlabel("ms, median")
    axes.legend()
    figure.savefig(out, dpi=110)


def money(jobs: list[dict[str, Any]], out: Path) -> None:
    """What a million jobs cost, by service."""
    figure, axes = plt.subplots(figsize=(9, 3.6), layout="constrained")
    names = [one["name"] for one in jobs]
    left = [0.0] * len(jobs)
    for part in jobs[0]["dollars_a_million"]:
        values = [one["dollars_a_million"][part] for one in jobs]
        axes.barh(names, values, left=left, label=part)
        left = [before + value for before, value in zip(left, values, strict=True)]
    axes.invert_yaxis()
    axes.set_xlabel("USD a million jobs, list prices")
    axes.legend(fontsize="small")
    figure.savefig(out, dpi=110)


def peers(jobs: list[dict[str, Any]], out: Path) -> None:
    """What a million jobs cost by who waits for the provider, and how long."""
    figure, axes = plt.subplots(figsize=(8, 3.4), layout="constrained")
    waits = sorted({one["wait_ms"] for one in jobs})
    cost = {(one["name"], one["wait_ms"]): one["dollars_a_million"] for one in jobs}
    _side_by_side(axes, [f"provider takes {one / 1000:g} s" for one in waits], waits, cost)
    axes.set_yscale("log")
    axes.set_ylabel("USD a million jobs")
    axes.legend(fontsize="small")
    figure.savefig(out, dpi=110)


def pace(races: list[dict[str, Any]], out: Path) -> None:
    """Calls a second by number of submitters, for a provider that answers at once and one that takes long."""
    paces = sorted({one["answer_ms"] for one in races})
    figure, pictures = plt.subplots(1, len(paces), figsize=(10, 3.6), layout="constrained", squeeze=False)
    for axes, answer_ms in zip(pictures[0], paces, strict=True):
        same = [one for one in races if one["answer_ms"] == answer_ms]
        numbers = sorted({one["submitters"] for one in same})
        speed = {(one["contestant"], one["submitters"]): one["jobs_a_second"] for one in same}
        _side_by_side(axes, [f"{one} submitter{'s' if one > 1 else ''}" for one in numbers], numbers, speed)
        axes.set_title(f"an answer takes {answer_ms / 1000:g} s" if answer_ms else "the provider answers at once")
        axes.set_ylabel("calls a second")
    figure.legend(*pictures[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize="small")
    figure.savefig(out, dpi=110)


def _side_by_side(axes: Any, labels: list[str], places: list[int], values: dict[tuple[str, int], float]) -> None:
    """One group of bars for each place, one bar in it for each contestant in its own colour, its figure above."""
    names = list(dict.fromkeys(name for name, _ in values))
    for n, name in enumerate(names):
        at = [group + (n - (len(names) - 1) / 2) * 0.8 / len(names) for group in range(len(places))]
        heights, colour = [values.get((name, one), 0) for one in places], _COLOURS.get(name, "tab:orange")
        bars = axes.bar(at, heights, 0.75 / len(names), label=name, color=colour)
        axes.bar_label(bars, fmt="%.3g", fontsize="x-small")
    axes.set_xticks(range(len(places)), labels)
    axes.margins(y=0.15)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
