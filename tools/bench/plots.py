"""Draws the plots from `results.json`. Runs in the environment of the benchmarks, which alone has matplotlib."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl  # type: ignore[import-not-found]

mpl.use("Agg")
from matplotlib import pyplot as plt


def main(results: Path, out: Path) -> None:
    """Every plot whose figures are there."""
    found = json.loads(results.read_text())
    if "cold" in found:
        cold(found["cold"], out / "coldstart.png")
    if "calls" in found:
        money(found["calls"], out / "money.png")


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


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
