"""A route's one number: it opens on faults, never on a caller's, climbs one step a round trip, and does not flap."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakwater.domain import ramp
from breakwater.domain.records import RouteState
from breakwater.domain.signals import ErrorClass
from tests.support.builders import NOW

SECOND = 1_000


def failing(state, now, configured=8, begun=None, draw=0.5):
    """One fault of a call that began just now."""
    after = ramp.failed(state, "r", configured, begun if begun is not None else now, now, draw)
    return after if after is not None else state


def working(state, now, configured=8, begun=None):
    """One success."""
    after = ramp.succeeded(state, configured, begun if begun is not None else now, now)
    return after if after is not None else state


def broken(now=NOW, configured=8):
    """An open circuit."""
    state = None
    for n in range(ramp.OPEN_AFTER):
        state = failing(state, now + n, configured)
    return state


def test_enough_faults_in_a_row_open_the_circuit():
    """The number goes down first, then to nothing, until a time."""
    state, seen = None, []
    for n in range(ramp.OPEN_AFTER):
        state = failing(state, NOW + n)
        seen.append(state.limit)

    assert seen == [4, 2, 1, 0, 0] or seen[-1] == 0
    assert seen == sorted(seen, reverse=True)
    assert state.closed(NOW + 10)
    assert ramp.effective(state, 8, NOW + 10) == 0
    assert (state.reason, state.closed_by, state.due_at) == (ramp.CIRCUIT, "circuit", state.closed_until)


def test_no_caller_fault_is_a_fault():
    """What a caller, a quota or a key does wrong says nothing about the provider's health."""
    assert not ramp.FAULTS & {
        ErrorClass.CALLER_FAULT,
        ErrorClass.CONTENT_REFUSED,
        ErrorClass.TRUNCATED,
        ErrorClass.QUOTA,
        ErrorClass.SPEND,
        ErrorClass.CREDENTIAL,
        ErrorClass.PERMISSION,
        ErrorClass.DATA_BOUNDARY,
        ErrorClass.CANCELLED,
        ErrorClass.PACING,
    }


def test_an_open_circuit_lets_one_probe_through_when_its_time_is_over():
    """No write is needed for that: the time does it."""
    state = broken()

    assert ramp.effective(state, 8, state.closed_until - 1) == 0
    assert ramp.effective(state, 8, state.closed_until) == 1
    assert ramp.effective(state, None, state.closed_until) == 1


def test_a_probe_that_fails_closes_it_for_twice_as_long():
    """One fault is enough, and every opening doubles, up to its limit."""
    state, lengths = broken(), []
    for _ in range(8):
        now = state.closed_until
        state = failing(state, now)
        lengths.append(state.closed_until - now)

    assert lengths == sorted(lengths)
    assert lengths[1] >= 2 * lengths[0] - 1
    assert lengths[-1] <= ramp.LONGEST_OPEN


def test_success_doubles_the_number_once_a_round_trip_up_to_the_configured_limit():
    """1, 2, 4, then as configured; the memory of openings goes only at the end."""
    state = broken()
    now, seen = state.closed_until, []
    for _ in range(3):
        began = now
        now += ramp.STEP
        state = working(state, now, begun=began)
        seen.append(ramp.effective(state, 8, now))

    assert seen == [2, 4, 8]
    assert (state.limit, state.opens, state.closed_until, state.due_at) == (None, 0, None, None)
    assert working(state, now + 1) is state, "a healthy route is not written"


def test_old_calls_say_nothing_about_the_new_number():
    """A call that began before the change neither raises nor halves it."""
    state = broken()
    now = state.closed_until + 10 * SECOND

    assert ramp.succeeded(state, 8, state.closed_until - 1, now) is None
    halved = failing(None, NOW)
    again = failing(halved, NOW + 1, begun=NOW - 1)
    assert (again.limit, again.faults) == (halved.limit, 2)


def test_two_successes_at_once_double_once():
    """The burst of answers of one round is one step."""
    state = broken()
    began = state.closed_until
    once = working(state, began + ramp.STEP, begun=began)

    twice = working(once, began + ramp.STEP + 1, begun=began)

    assert twice is once


def test_faults_far_apart_do_not_open_it():
    """In a row means within a minute, with no success between."""
    state, now = None, NOW
    for _ in range(3 * ramp.OPEN_AFTER):
        now += ramp.FAULT_WINDOW + 1
        state = failing(state, now, begun=now - ramp.FAULT_WINDOW * 2)

    assert not state.closed(now)
    assert state.faults == 1


def test_a_success_ends_a_row():
    """Four faults, a success, four faults: open still."""
    state = None
    for n in range(ramp.OPEN_AFTER - 1):
        state = failing(state, NOW + n, begun=NOW - 1 if n else None)
    state = working(state, NOW + 10, begun=NOW - 1)

    assert state.faults == 0
    for n in range(ramp.OPEN_AFTER - 1):
        state = failing(state, NOW + 20 + n, begun=NOW - 1)
    assert not state.closed(NOW + 30)


def test_a_slow_provider_gets_fewer_calls_but_never_none():
    """Halved once a round trip, down to one."""
    state, now = None, NOW
    for _ in range(10):
        now += SECOND
        state = ramp.slowed(state, "r", 8, now, now) or state

    assert state.limit == 1
    assert not state.closed(now)
    assert ramp.slowed(state, "r", 8, now + 1, now + 1) is None


def test_a_hint_closes_until_its_time_and_the_later_one_stands():
    """And a route that was paced reopens with half its calls, one that was broken with one."""
    paced = ramp.closed(None, "r", 8, until=NOW + 60_000, reason="pacing", by="provider", now=NOW, gently=True)
    assert (ramp.effective(paced, 8, NOW), ramp.effective(paced, 8, NOW + 60_000)) == (0, 4)
    earlier = ramp.closed(paced, "r", 8, until=NOW + 5_000, reason="pacing", by="provider", now=NOW, gently=True)
    assert earlier is None
    later = ramp.closed(paced, "r", 8, until=NOW + 90_000, reason="pacing", by="provider", now=NOW + 1, gently=True)
    assert (later.closed_until, later.since, later.limit) == (NOW + 90_000, NOW, 4)

    shut = ramp.closed(None, "r", None, until=NOW + 60_000, reason="overload", by="provider", now=NOW, gently=False)
    assert ramp.effective(shut, None, NOW + 60_000) == 1


def test_an_operator_opens_it_at_the_start_of_its_ramp():
    """Nobody jumps from closed to everything."""
    state = ramp.opened(broken(), NOW + SECOND)

    assert ramp.effective(state, 8, NOW + SECOND) == 1
    assert (state.closed_until, state.due_at, state.reason) == (None, None, None)


def _size(number):
    """No number means no limit."""
    return float("inf") if number is None else number


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["good", "bad", "slow", "hint"]),
        st.integers(0, 30_000),  # time that passes before
        st.integers(0, 20_000),  # how long the call took
        st.floats(0, 0.999),
    ),
    max_size=60,
)


@given(events=EVENTS, configured=st.one_of(st.none(), st.integers(1, 40)))
def test_the_number_obeys_its_laws_whatever_happens(events, configured):
    """Within the configured limit, raised at most twofold a step, closed until a time, and no write for nothing."""
    state, now, raised_at = None, NOW, None
    for kind, passes, took, draw in events:
        now += passes
        before, number = state, ramp.effective(state, configured, now)
        begun = now - took
        if kind == "good":
            after = ramp.succeeded(state, configured, begun, now)
        elif kind == "bad":
            after = ramp.failed(state, "r", configured, begun, now, draw)
        elif kind == "slow":
            after = ramp.slowed(state, "r", configured, begun, now)
        else:
            after = ramp.closed(
                state, "r", configured, until=now + 1 + took, reason="pacing", by="p", now=now, gently=draw < 0.5
            )
        if after is None:
            continue
        assert after != before, "only changes are written"
        state = after
        after_number = ramp.effective(state, configured, now)
        if configured is not None:
            assert 0 <= after_number <= configured
        if kind != "good":
            assert _size(after_number) <= _size(number)
        elif number is not None and after_number is not None and after_number > number:
            assert after_number <= 2 * number + 1
            assert raised_at is None or now - raised_at >= ramp.STEP
            raised_at = now
        assert state.due_at is None or state.due_at == state.closed_until


@given(draws=st.lists(st.floats(0, 0.999), min_size=1, max_size=12))
def test_a_provider_that_stays_down_gets_one_call_an_opening(draws):
    """The probes of an hour can be counted: they thin out, they never stop."""
    state = broken()
    for draw in draws:
        at = state.closed_until
        assert ramp.effective(state, 8, at) == 1
        state = failing(state, at, draw=draw)
        assert state.closed(at)
        assert ramp.FIRST_OPEN <= state.closed_until - at <= ramp.LONGEST_OPEN


def reopened(state, count):
    """The circuit opens that many more times, each probe failing."""
    for _ in range(count):
        state = failing(state, state.closed_until)
    return state


def test_a_provider_that_is_back_on_one_route_is_asked_sooner_on_the_next():
    """A circuit that would stay open for minutes gets its probe at once, and only a probe."""
    state = reopened(broken(), 4)
    at = state.closed_until - 60 * SECOND

    after = ramp.sooner(state, at, 0.5)

    assert at <= after.closed_until == after.due_at < at + ramp.SPREAD
    assert ramp.effective(after, 8, after.closed_until) == 1
    again = failing(after, after.closed_until)
    assert again.closed_until - after.closed_until >= state.closed_until - state.changed_at, "it still doubles"


def test_a_route_that_was_just_asked_is_not_asked_again_at_once():
    """However often a neighbour comes and goes."""
    state = reopened(broken(), 4)
    assert ramp.sooner(state, state.fault_at + SECOND, 0.0).closed_until == state.fault_at + ramp.FIRST_OPEN


@pytest.mark.parametrize("by", ["provider", "ann"])
def test_what_a_hint_or_a_person_closed_stays_closed(by):
    """They know better than another route's success."""
    state = ramp.closed(None, "r", 8, until=NOW + 90 * SECOND, reason="x", by=by, now=NOW, gently=False)
    assert ramp.sooner(state, NOW + SECOND, 0.0) is None


@pytest.mark.parametrize("by", ["provider", "operator: maintenance"])
def test_what_is_closed_while_a_circuit_is_open_longer_is_not_brought_forward_either(by):
    """A hint of a minute arrives while the circuit is open for two: it stays shut that long, whoever is back."""
    state = replace(reopened(broken(), 4), closed_until=NOW + 120 * SECOND)

    hinted = ramp.closed(state, "r", 8, until=NOW + 60 * SECOND, reason="overload", by=by, now=NOW, gently=False)

    assert (hinted.closed_until, hinted.closed_by, hinted.reason) == (NOW + 120 * SECOND, by, "overload")
    assert ramp.sooner(hinted, NOW + 16 * SECOND, 0.0) is None
    assert ramp.closed(hinted, "r", 8, until=NOW + SECOND, reason="overload", by=by, now=NOW, gently=False) is None


@given(after=st.integers(0, 400 * SECOND), draw=st.floats(0, 0.999), opens=st.integers(0, 5))
def test_sooner_is_never_later_and_never_closer_than_the_first_opening(after, draw, opens):
    """Whenever a neighbour recovers."""
    state = reopened(broken(), opens)
    found = ramp.sooner(state, state.changed_at + after, draw)
    if found is not None:
        assert max(state.fault_at + ramp.FIRST_OPEN, state.changed_at + after) <= found.closed_until
        assert found.closed_until < state.closed_until


def test_only_a_probe_that_went_well_says_that_a_provider_is_back():
    """Neither its opening, nor a later step of the ramp, nor a route that never broke."""
    state = broken()
    at = state.closed_until
    assert not ramp.answers_again(state, ramp.opened(state, at), at)
    probed = working(state, at + ramp.STEP)
    assert ramp.answers_again(state, probed, at + ramp.STEP)
    higher = working(probed, at + 2 * ramp.STEP)
    assert not ramp.answers_again(probed, higher, at + 2 * ramp.STEP)
    lowered = failing(None, NOW, configured=2)
    assert not ramp.answers_again(lowered, working(lowered, NOW + ramp.STEP, configured=2), NOW + ramp.STEP)
    assert not ramp.answers_again(None, lowered, NOW)


def test_work_that_the_provider_took_long_before_does_not_count_against_the_ramp():
    """A probe needs room even where background jobs still run there."""
    state = broken()
    assert ramp.since(state) == state.closed_until
    lowered = failing(None, NOW)
    assert ramp.since(lowered) == NOW - 60_000


@pytest.mark.parametrize("state", [None, RouteState(route_key="r")])
def test_a_healthy_route_is_as_configured(state):
    """No number, no cost."""
    assert ramp.effective(state, None, NOW) is None
    assert ramp.effective(state, 5, NOW) == 5
    assert ramp.succeeded(state, 5, NOW, NOW) is None


def test_the_memory_of_openings_outlives_a_half_climbed_ramp():
    """Up a step and down again: the next opening is longer than the first. That is what keeps it from flapping."""
    state = broken()
    first = state.closed_until - NOW
    now = state.closed_until + ramp.STEP
    state = working(state, now, begun=state.closed_until)
    state = replace(state, limit=1)

    state = failing(state, now + 1)

    assert state.closed_until - now - 1 > first


def test_a_lowered_number_lapses_when_nothing_confirms_it():
    """A route that nobody used since is as configured again; an open circuit still asks for its probe."""
    lowered, later = failing(None, NOW), NOW + ramp.LAPSE + 1

    assert ramp.effective(lowered, 8, later) == 8
    assert ramp.effective(lowered, None, later) is None
    assert failing(replace(lowered, limit=1), later).limit == 4, "one fault does not open it"
    assert ramp.effective(broken(), 8, later) == 1
    cleared = working(lowered, later, begun=later - 1)
    assert (cleared.limit, cleared.faults) == (None, 0)
