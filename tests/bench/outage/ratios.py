"""What does one run say? Ratios between the two sides, and our own bounds."""

from __future__ import annotations

from collections import Counter
from typing import Any

DEADLINE = 25.0
MARGIN = 0.5
MINUTE = 60.0


def ratios(facts: dict[str, Any]) -> dict[str, Any]:
    """The numbers of the report, each side by name."""
    found: dict[str, Any] = {side: _side(facts, side) for side in ("ours", "plain")}
    wasted = found["ours"]["wasted_calls"], found["plain"]["wasted_calls"]
    found["ours"]["limits"] = _limits(facts)
    found["wasted_calls_of_baseline"] = round(wasted[0] / wasted[1], 4) if wasted[1] else None
    return found


def _side(facts: dict[str, Any], side: str) -> dict[str, Any]:
    down, up = facts["down"], facts["up"]
    calls = [one for one in facts["calls"] if one["side"] == side]
    during = [one for one in calls if down <= one["at"] < up]
    people = [one for one in facts["asked"] if one["side"] == side and one["kind"] == "interactive"]
    after = Counter(int(one["at"] - up) for one in calls if up <= one["at"] < up + MINUTE)
    return {
        "wasted_calls": sum(not one["charged"] for one in during),
        "calls": len(calls),
        "interactive": len(people),
        "answered_in_time": _share(people, lambda one: bool(one["status"]) and one["took"] <= DEADLINE + MARGIN),
        "slowest_answer_s": round(max((one["took"] for one in people), default=0), 2),
        "outcomes_in_outage": dict(Counter(one["outcome"] for one in people if down <= one["at"] < up)),
        "duplicates": _duplicates(calls),
        "drained_after_s": _drained(facts, side),
        "most_calls_in_a_second_after": max(after.values(), default=0),
        "calls_in_first_minute_after": sum(after.values()),
        "background_done": _done(facts, side, calls),
    }


def _limits(facts: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Each model's most calls at once, and most in any minute after the provider came back, against what is allowed."""
    found = {}
    for model, allowed in facts["limits"].items():
        times = sorted(one["at"] for one in facts["calls"] if one["model"] == model and one["at"] >= facts["up"])
        if model in facts["at_once"]:
            busiest = max((sum(at <= one < at + MINUTE for one in times) for at in times), default=0)
            found[model] = {
                "at_once": f"{facts['at_once'][model]} of {allowed['at_once']}",
                "in_a_minute_after": f"{busiest} of {allowed['a_minute']}",
                "kept": facts["at_once"][model] <= allowed["at_once"] and busiest <= allowed["a_minute"],
            }
    return found


def _share(ones: list[Any], true: Any) -> float | None:
    return round(sum(map(true, ones)) / len(ones), 4) if ones else None


def _key(call: dict[str, Any]) -> str:
    """The first word of what was asked is the request's key."""
    return next((word for word in call["excerpt"].replace('"', " ").split() if "-" in word), "")


def _duplicates(calls: list[dict[str, Any]]) -> int:
    """Paid calls beyond the first for one intent."""
    paid = Counter(_key(one) for one in calls if one["charged"])
    paid.pop("", None)
    return sum(count - 1 for count in paid.values())


def _drained(facts: dict[str, Any], side: str) -> float | None:
    """When the backlog was back at what it was before, from the moment the provider came back."""
    before = [one[side] for one in facts["backlog"] if one["at"] < facts["down"]]
    usual = max(before, default=0) + 1
    late = [one["at"] for one in facts["backlog"] if one["at"] >= facts["up"] and one[side] > usual]
    return round(max(late) - facts["up"], 1) if late else 0.0


def _done(facts: dict[str, Any], side: str, calls: list[dict[str, Any]]) -> float | None:
    asked = {one["key"] for one in facts["asked"] if one["side"] == side and one["kind"] == "background"}
    if side == "ours":
        done = {one["key"] for one in facts["jobs"] if one["status"] == "succeeded"}
    else:
        done = {_key(one) for one in calls if one["charged"]}
    return round(len(asked & done) / len(asked), 4) if asked else None
