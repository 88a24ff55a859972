"""What is wrong, in words the author of a file can act on."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from breakwater.domain.checked import policy_of
from breakwater.domain.complaints import complaints, path_of
from breakwater.domain.policy import Policy
from tests.support.cases import LANES, fallback


def said(change: dict[str, Any], strategy: dict[str, Any] | None = None) -> list[str]:
    """All complaints about a policy, as lines."""
    raw = {"workflow": "chat", "ai_api_queueing_strategy": {"lanes": LANES, **(strategy or {})}, **change}
    with pytest.raises(ValidationError) as caught:
        policy_of(raw)
    return [f"{path}: {text}" for path, text in complaints(Policy, caught.value)]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"deadline_ms": 99_000}, "deadline_ms: must be <= 27000, got 99000"),
        ({"deadline_ms": 9}, "deadline_ms: must be >= 1000, got 9"),
        ({"deadline_ms": "soon"}, "deadline_ms: must be a whole number, got 'soon'"),
        ({"deadline_ms": 1.5}, "deadline_ms: must be a whole number, got 1.5"),
        ({"deadline_ms": None}, "deadline_ms: must be a whole number, got nothing"),
        ({"serve_latest": "yes"}, "serve_latest: must be true or false, got 'yes'"),
        ({"mode": "async"}, "mode: must be one of 'sync' or 'background', got 'async'"),
        ({"priority": "top"}, "priority: must be one of 'low', 'normal' or 'high', got 'top'"),
        ({"description": 7}, "description: must be text, got 7"),
        ({"workflow": "No Blanks"}, "workflow: must match ^[a-z][a-z0-9_]{0,62}$, got 'No Blanks'"),
        ({"fallbacks": "second"}, "fallbacks: must be a list, got 'second'"),
        ({"fallbacks": [fallback(approved_by="")]}, "fallbacks[0].approved_by: must not be empty"),
        (
            {"fallbacks": [fallback(approved_on="May")]},
            "fallbacks[0].approved_on: must be a date like 2026-11-30, got 'May'",
        ),
        ({"limits": 3}, "limits: must be a mapping of keys, got 3"),
        ({"dedline_ms": 1}, "dedline_ms: is not a known key; did you mean deadline_ms?"),
        (
            {"limits": {"zzz": 1}},
            "limits.zzz: is not a known key; known are concurrency, per_workflow, per_owner, per_user",
        ),
        (
            {"fallbacks": [{**fallback(), "rout": "x"}]},
            "fallbacks[0].rout: is not a known key; did you mean route?",
        ),
        (
            {"fallbacks": [fallback()], "route": "second"},
            ("file: fallbacks need names and routes of their own, each other than the workflow's route"),
        ),
    ],
)
def test_a_complaint_has_a_path_a_reason_and_what_was_given(change, line):
    """One line each, in the words of the file."""
    assert line in said(change)


@pytest.mark.parametrize("lane", ["interactive_admission", "background_retry"])
@pytest.mark.parametrize(
    ("depths", "line"),
    [
        ({"max_queue_depth": 0}, ".max_queue_depth: must be >= 1, got 0"),
        ({"max_queue_depth": 10_001}, ".max_queue_depth: must be <= 10000, got 10001"),
        ({"max_queue_depth_per_owner": "many"}, ".max_queue_depth_per_owner: must be a whole number, got 'many'"),
        (
            {"max_queue_depth": 5, "max_queue_depth_per_owner": 6},
            ": max_queue_depth_per_owner (6) is above max_queue_depth (5), so it limits nobody",
        ),
    ],
)
def test_a_limit_of_depth_is_a_number_that_can_be_counted_and_reached(lane, depths, line):
    """Both lanes that admit have both limits."""
    assert said({}, {"lanes": {**LANES, lane: depths}}) == [f"ai_api_queueing_strategy.lanes.{lane}{line}"]


def test_the_example_of_the_manual():
    """A path through three levels of the strategy."""
    lanes = {**LANES, "background_retry": {"max_attempts": 0}}

    assert said({}, {"lanes": lanes}) == [
        "ai_api_queueing_strategy.lanes.background_retry.max_attempts: must be >= 1, got 0",
    ]


def test_a_missing_key_is_named():
    """With what to do about it."""
    with pytest.raises(ValidationError) as caught:
        policy_of({"workflow": "chat"})

    assert list(complaints(Policy, caught.value)) == [("ai_api_queueing_strategy", "is missing; add it")]


def test_several_complaints_come_together():
    """Nobody repairs a file one error a run."""
    assert len(said({"deadline_ms": 1, "mode": "x", "surprise": 1})) == 3


def test_an_error_without_words_of_ours_keeps_pydantics():
    """New kinds of error are still readable."""
    assert said({"data_boundary": {"regions": {"us": 1}}})[0].startswith("data_boundary.regions: ")


def test_a_path_reads_like_the_file():
    """Keys with dots, places in lists in brackets, nothing is the whole file."""
    assert path_of(("fallbacks", 0, "route")) == "fallbacks[0].route"
    assert path_of(()) == "file"
