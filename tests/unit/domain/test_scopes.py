"""A scope is used without a look only where a look would tell nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from breakwater.domain.job import SlotRef
from breakwater.domain.scopes import LATELY, Scopes
from breakwater.domain.slots import ScopeLimit, Slot, free_numbers
from tests.support.builders import NOW

WIDE = ScopeLimit(scope="route:a", limit=10)


def held(*numbers, scope="route:a"):
    """These numbers in use."""
    return [Slot(scope=scope, n=n, job_id="j", epoch=1, taken_at=NOW, verify_at=NOW) for n in numbers]


def seen(*numbers, limit=WIDE):
    """A scope that was looked at just now."""
    scopes = Scopes()
    scopes.saw(limit, held(*numbers), NOW)
    return scopes


def test_a_roomy_scope_is_used_for_a_second():
    """With what this process took and gave back since."""
    scopes = seen(0, 3)
    assert scopes.free(WIDE, NOW + LATELY) == (1, 2, 4, 5, 6, 7, 8, 9)
    scopes.took(SlotRef(scope="route:a", n=1))
    scopes.freed(SlotRef(scope="route:a", n=3))
    assert scopes.free(WIDE, NOW) == (2, 3, 4, 5, 6, 7, 8, 9)
    assert scopes.free(WIDE, NOW + LATELY + 1) == ()
    assert scopes.free(WIDE, NOW - 1) == (), "the clock went back"


@pytest.mark.parametrize(
    ("scopes", "limit"),
    [
        (Scopes(), WIDE),
        (seen(0, 1, 2, 3, 4), WIDE),
        (seen(12), WIDE),
        (seen(), ScopeLimit(scope="route:a", limit=9)),
        (seen(), ScopeLimit(scope="route:a", limit=10, ramp=8)),
        (seen(limit=ScopeLimit(scope="route:a", limit=10, ramp=8)), WIDE),
        (seen(limit=ScopeLimit(scope="route:a", limit=7)), ScopeLimit(scope="route:a", limit=7)),
    ],
    ids=["unseen", "half full", "used above the limit", "limit changed", "ramp", "seen in a ramp", "narrow"],
)
def test_all_others_are_looked_at(scopes, limit):
    """Wherever a look is what keeps the limit or the line."""
    assert scopes.free(limit, NOW) == ()


def test_what_proved_wrong_is_forgotten():
    """And a later look replaces an earlier one."""
    scopes = seen(0)
    scopes.forget("route:a")
    assert scopes.free(WIDE, NOW) == ()
    scopes.saw(WIDE, held(7), NOW)
    scopes.saw(WIDE, held(13), NOW)
    assert scopes.free(WIDE, NOW) == ()


def test_it_remembers_no_more_than_it_can_hold():
    """Many owners' scopes in one process."""
    scopes = Scopes()
    for n in range(1_001):
        scopes.saw(ScopeLimit(scope=f"route:a|owner:{n}", limit=10), [], NOW)
    assert scopes.free(ScopeLimit(scope="route:a|owner:0", limit=10), NOW) == ()
    assert scopes.free(ScopeLimit(scope="route:a|owner:1000", limit=10), NOW)


@given(some.sets(some.integers(0, 15)), some.integers(1, 14))
def test_without_a_look_nothing_is_offered_that_a_look_would_not_offer(numbers, most):
    """The law that keeps a limit: the remembered numbers are among those that a look gives."""
    limit = ScopeLimit(scope="route:a", limit=most)
    assert set(seen(*numbers, limit=limit).free(limit, NOW)) <= set(free_numbers(limit, held(*numbers)))
