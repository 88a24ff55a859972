"""The checklist item by item, from facts alone."""

from __future__ import annotations

import pytest

from breakwater.domain.checklist import Facts, Item, Verdict, blocking, checks
from breakwater.domain.records import RouteState
from breakwater.domain.states import Reason
from tests.support.builders import NOW, make_job
from tests.support.catalogue import catalogue

POLICY, ROUTE = catalogue().policies["sync"], catalogue().routes["plain"]


def facts(**more):
    """A dead job that nothing speaks against."""
    job = make_job("dead_letter", **more.pop("job", {}))
    base = {"job": job, "now": NOW, "policy": POLICY, "route": ROUTE, "state": None, "input_present": True}
    return Facts(**{**base, **more})


def execution(**more):
    """One closed execution."""
    return {"id": "job_a.1.1.1", "attempt": 1, "policy_hash": POLICY.hash, "code_version": "", **more}


def verdict(item, known):
    """The verdict on one item."""
    return next(one.verdict for one in checks(known) if one.item is item)


def test_nothing_speaks_against_a_plain_dead_letter():
    """Every item is yes, and nothing blocks."""
    found = checks(facts())

    assert {one.verdict for one in found} == {Verdict.YES}
    assert blocking(found) is None
    assert [one.item for one in found] == list(Item)


CLOSED = RouteState(route_key="plain", closed_until=NOW + 1_000, reason="credential")
TRIED_OUT = RouteState(route_key="plain", limit=1)
CASES = [
    ("a closed route", Item.CAUSE_FIXED, {"state": CLOSED}, "no"),
    ("a route that is tried out", Item.CAUSE_FIXED, {"state": TRIED_OUT}, "unknown"),
    ("a refused request, unchanged", Item.CAUSE_FIXED, {"job": {"reason": Reason.CALLER_FAULT}}, "unknown"),
    (
        "a refused request with the same policy and code",
        Item.CAUSE_FIXED,
        {"job": {"reason": Reason.CALLER_FAULT}, "executions": (execution(),)},
        "no",
    ),
    (
        "a refused request on another route",
        Item.CAUSE_FIXED,
        {"job": {"reason": Reason.CALLER_FAULT}, "executions": (execution(),), "clauses": {"tools": True}},
        "unknown",
    ),
    ("a route that is gone", Item.CREDENTIALS, {"route": None}, "no"),
    ("a refused credential", Item.CREDENTIALS, {"state": CLOSED}, "no"),
    ("a credential refused before", Item.CREDENTIALS, {"job": {"last_error_class": "permission"}}, "unknown"),
    ("a spent budget", Item.QUOTA, {"budget_micros": 5, "spent_micros": 5}, "no"),
    ("a budget with room", Item.QUOTA, {"budget_micros": 5, "spent_micros": 4}, "yes"),
    ("credit that ran out", Item.QUOTA, {"job": {"last_error_class": "quota"}}, "unknown"),
    ("an input that is gone", Item.INPUT, {"input_present": False}, "no"),
    ("a job past its retention", Item.INPUT, {"job": {"ttl": NOW // 1000 - 1}}, "no"),
    ("a job within its retention", Item.INPUT, {"job": {"ttl": NOW // 1000 + 9}}, "yes"),
    ("a policy that is gone", Item.VERSIONS, {"policy": None, "executions": (execution(),)}, "no"),
    ("a route that is not allowed", Item.CONTRACT, {"route_allowed": False}, "no"),
    ("a contract that holds", Item.CONTRACT, {"clauses": {"tools": True}}, "yes"),
    ("a broken clause", Item.CONTRACT, {"clauses": {"tools": False}}, "no"),
    ("an unknown clause", Item.CONTRACT, {"clauses": {"tools": None}}, "unknown"),
    ("a policy that forbids repeats", Item.IDEMPOTENCY, {"job": {"reason": Reason.NOT_IDEMPOTENT}}, "unknown"),
    (
        "a partial answer that was seen",
        Item.IDEMPOTENCY,
        {"job": {"reason": Reason.PARTIAL_OUTPUT_COMMITTED}},
        "unknown",
    ),
    (
        "an answer of the wrong model, without effect",
        Item.IDEMPOTENCY,
        {"job": {"reason": Reason.SERVED_MODEL_MISMATCH}, "executions": (execution(outcome="completed"),)},
        "yes",
    ),
    (
        "a paid result that came too late",
        Item.IDEMPOTENCY,
        {"job": {"side_effects": "paid"}, "executions": (execution(outcome="unknown"), execution(outcome="completed"))},
        "yes",
    ),
    ("a lost answer without effect", Item.IDEMPOTENCY, {"executions": (execution(outcome="unknown"),)}, "yes"),
    (
        "a provider job whose cancel is owed",
        Item.IDEMPOTENCY,
        {"executions": (execution(provider_job_id="r"),), "cancels": {"job_a.1.1.1": "owed"}},
        "no",
    ),
    (
        "a provider job that could not be cancelled",
        Item.IDEMPOTENCY,
        {"executions": (execution(provider_job_id="r"),), "cancels": {"job_a.1.1.1": "given_up"}},
        "unknown",
    ),
    (
        "an effect that happened",
        Item.IDEMPOTENCY,
        {
            "job": {"side_effects": "paid", "reason": Reason.SERVED_MODEL_MISMATCH},
            "executions": (execution(outcome="completed"),),
        },
        "no",
    ),
    (
        "an effect that may have happened",
        Item.IDEMPOTENCY,
        {"job": {"side_effects": "external"}, "executions": (execution(outcome="lost"),)},
        "unknown",
    ),
    (
        "an effect that was refused",
        Item.IDEMPOTENCY,
        {"job": {"side_effects": "paid"}, "executions": (execution(outcome="refused"),)},
        "yes",
    ),
]


@pytest.mark.parametrize(("name", "item", "more", "expected"), CASES, ids=[case[0] for case in CASES])
def test_a_fact_decides_its_item(name, item, more, expected):
    """One fact at a time; the others stay as they were."""
    assert verdict(item, facts(**more)).value == expected, name


def test_the_worst_execution_counts():
    """One unsure execution among good ones is enough."""
    known = facts(
        job={"side_effects": "paid"},
        executions=(
            execution(outcome="refused"),
            execution(outcome="unknown", attempt=2),
            execution(outcome="refused"),
        ),
    )

    assert verdict(Item.IDEMPOTENCY, known) is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("more", "flags", "blocked"),
    [
        ({"state": CLOSED}, {}, Item.CAUSE_FIXED),
        ({"state": CLOSED}, {"override": True}, None),
        ({"input_present": False}, {"override": True, "proof": True}, Item.INPUT),
        ({"job": {"reason": Reason.NOT_IDEMPOTENT}}, {"override": True}, Item.IDEMPOTENCY),
        ({"job": {"reason": Reason.NOT_IDEMPOTENT}}, {"proof": True}, None),
        ({"clauses": {"tools": None}}, {"override": True, "proof": True}, Item.CONTRACT),
        ({"job": {"last_error_class": "quota"}}, {}, None),
    ],
    ids=str,
)
def test_what_blocks_and_what_opens_it(more, flags, blocked):
    """An override answers an unfixed cause, proof answers an unknown effect, nothing answers the rest."""
    found = blocking(checks(facts(**more)), **flags)

    assert (found.item if found else None) is blocked
