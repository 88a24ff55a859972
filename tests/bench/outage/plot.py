"""One picture a side: what people saw, what the provider saw, what waited, and how work came back."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

COLOURS = {"result": "tab:green", "queued": "tab:blue", "problem": "tab:orange", "error": "tab:red"}
NAMES = {"ours": "Breakwater", "plain": "Plain: SQS, Lambda, Powertools, SDK retries"}


def main(source: Path, folder: Path) -> None:
    """Draw both sides on the same scales."""
    facts = json.loads(source.read_text())
    most = {"calls": 1, "backlog": 1}
    for side in NAMES:
        counted = Counter(int(one["at"] - facts["began"]) // 5 for one in facts["calls"] if one["side"] == side)
        most["calls"] = max(most["calls"], *counted.values()) if counted else most["calls"]
        most["backlog"] = max(most["backlog"], *(one[side] for one in facts["backlog"]))
    for side in NAMES:
        _draw(facts, side, most, folder / f"outage-{side}.png")


def _draw(facts: dict, side: str, most: dict, file: Path) -> None:  # type: ignore[type-arg]
    began = facts["began"]
    figure, axes = plt.subplots(4, 1, figsize=(11, 12), sharex=True, constrained_layout=True)
    figure.suptitle(f"{NAMES[side]}: a provider's outage")
    people = [one for one in facts["asked"] if one["side"] == side and one["kind"] == "interactive"]
    for outcome, colour in COLOURS.items():
        some = [one for one in people if one["outcome"] == outcome]
        axes[0].scatter(
            [one["at"] - began for one in some], [one["took"] for one in some], s=9, c=colour, label=outcome
        )
    none = [one for one in people if one["outcome"] not in COLOURS]
    axes[0].scatter(
        [one["at"] - began for one in none], [one["took"] for one in none], s=9, c="black", label="no answer"
    )
    axes[0].set_ylabel("people wait, s")
    axes[0].legend(loc="upper right", ncols=5, fontsize=8)
    for charged, colour, label in ((False, "tab:red", "wasted"), (True, "tab:green", "paid and used")):
        counted = Counter(
            int(one["at"] - began) // 5 * 5
            for one in facts["calls"]
            if one["side"] == side and one["charged"] is charged
        )
        axes[1].bar(list(counted), list(counted.values()), width=4, color=colour, label=label, alpha=0.8)
    axes[1].set_ylabel("provider calls in 5 s")
    axes[1].set_ylim(0, most["calls"] * 1.1)
    axes[1].legend(loc="upper right", fontsize=8)
    axes[2].plot([one["at"] - began for one in facts["backlog"]], [one[side] for one in facts["backlog"]])
    axes[2].set_ylabel("backlog")
    axes[2].set_ylim(0, most["backlog"] * 1.1)
    after = Counter(
        int(one["at"] - began) for one in facts["calls"] if one["side"] == side and one["at"] >= facts["up"]
    )
    axes[3].bar(list(after), list(after.values()), width=0.9)
    axes[3].set_ylabel("calls a second after recovery")
    axes[3].set_xlabel("seconds")
    for axis in axes:
        axis.axvspan(facts["down"] - began, facts["up"] - began, color="0.9", zorder=-1)  # behind what happened
    figure.savefig(file, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
