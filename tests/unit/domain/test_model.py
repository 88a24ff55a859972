"""What was checked once is read again without the checker, and is the same."""

from __future__ import annotations

from datetime import date
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from breakwater.domain import policy, routes, strategy
from breakwater.domain.checked import policy_of, route_of
from breakwater.domain.model import Model
from breakwater.policy_yaml import load
from tests.support.cases import WITH_FALLBACK, make_policy, make_route

SHIPPED = load(Path(__file__).parents[3] / "shared" / "policies")
KINDS = sorted(
    {
        kind
        for module in (policy, routes, strategy)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Model) and kind is not Model
    },
    key=lambda kind: kind.__name__,
)


def inside(annotation: Any) -> list[type]:
    """The classes an annotation speaks of."""
    found = [one for inner in get_args(annotation) for one in inside(inner)]
    return [annotation, *found] if isinstance(annotation, type) else found


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_that_plain_data_cannot_hold_says_how_it_is_read(kind):
    """A new field with a model, a word of a closed list or a date in it, and no part, would stay text."""
    hints = {name: inside(hint) for name, hint in get_type_hints(kind).items() if name != "parts"}
    wanted = {name for name, classes in hints.items() if any(issubclass(one, Model | Enum | date) for one in classes)}

    assert set(kind.parts) == wanted


@pytest.mark.parametrize("workflow", SHIPPED.workflows())
@pytest.mark.parametrize("sparse", [True, False])
def test_a_policy_is_read_again_as_it_was_checked(workflow, sparse):
    """Defaults written out or left out: the checker and the plain reader make one value."""
    checked = SHIPPED.need_policy(workflow)
    plain = checked.plain(sparse=sparse)

    assert type(checked).of(plain) == policy_of(plain) == checked


@pytest.mark.parametrize("key", SHIPPED.route_keys())
@pytest.mark.parametrize("sparse", [True, False])
def test_a_route_is_read_again_as_it_was_checked(key, sparse):
    """The same for routes."""
    checked = SHIPPED.route(key)
    plain = checked.plain(sparse=sparse)

    assert type(checked).of(plain) == route_of(plain) == checked


def test_every_kind_of_value_goes_to_json_and_back():
    """Dates, words of closed lists, models in lists and alone, and what is not given."""
    lanes = {
        "interactive_admission": {"shed_priority_below": "normal", "backoff": {"base_ms": 300}},
        "stream_recovery": {"max_attempts": 3, "backoff": {"base_ms": 600}},
        "background_retry": {"backoff": {"cap_ms": 70_000}},
        "owner_review": {"approvers": ["ann"]},
        "dead_letter": {"enter_when": ["max_attempts_exhausted"]},
    }
    full = make_policy(
        lanes=lanes,
        strategy={
            "fallback": {"require_cost_cap": False},
            "backpressure": {"concurrency_key": ["workflow"]},
        },
        priority="high",
        quality_tier="premium",
        data_boundary={"regions": ["eu"]},
        output_contract={"tools": True},
        limits={"concurrency": 3},
        **WITH_FALLBACK,
    )
    route = make_route(limits={"concurrency": 2})

    assert type(full).of(full.plain(sparse=True)) == full
    assert full.plain()["fallbacks"][0]["approved_on"] == "2026-11-16"
    assert "mode" not in full.plain(sparse=True)
    assert type(route).of(route.plain(sparse=True)) == route
    assert route.plain()["catalogue"] == {"as_of": "2026-11-30", "source": "test"}


def test_a_value_that_contradicts_itself_is_not_made_from_plain_data_either():
    """What fields say about each other holds wherever the value comes from."""
    with pytest.raises(ValueError, match="needs gateway"):
        routes.Route.of({**make_route().plain(), "provider": "gateway"})
