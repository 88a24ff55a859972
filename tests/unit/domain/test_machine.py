"""Every (row, event) pair of the table of states, against a list written by hand."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args

import pytest

from breakwater.domain import events as ev
from breakwater.domain.apply import APPLY
from breakwater.domain.errors import IllegalTransition
from breakwater.domain.job import Owed, SlotRef
from breakwater.domain.machine import CLOSED, REVIEW, ROW_STATUS, TRANSITIONS, advance, amend, effect_key, may, row_of
from breakwater.domain.results import Usage
from breakwater.domain.states import EffectKind, Lane, Reason, Status
from tests.support.builders import NOW, make_execution, make_job

LATER = NOW + 5_000

# One event of each kind, for a job whose first attempt is open.
EVENTS: dict[str, ev.Event] = {
    "Leased": ev.Leased(execution=make_execution(attempt=2, epoch=2), locked_until=LATER + 60_000),
    "Waiting": ev.Waiting(at=LATER + 9, reason=Reason.ROUTE_CLOSED),
    "HeldForReview": ev.HeldForReview(reason=Reason.OUTCOME_UNKNOWN, review_expires_at=LATER + 99),
    "Expired": ev.Expired(reason=Reason.MAX_QUEUE_AGE_EXCEEDED),
    "Shed": ev.Shed(),
    "Cancelled": ev.Cancelled(by="acme"),
    "CancelRequested": ev.CancelRequested(by="acme"),
    "ProviderAccepted": ev.ProviderAccepted(
        provider_job_id="resp_1", poll_at=LATER + 60_000, provider_deadline_at=LATER + 3_600_000
    ),
    "PollAgain": ev.PollAgain(at=LATER + 10_000),
    "StreamOpened": ev.StreamOpened(provider_job_id="resp_1", provider_deadline_at=LATER + 3_600_000),
    "OutputCommitted": ev.OutputCommitted(epoch=1),
    "StreamHandedOver": ev.StreamHandedOver(poll_at=LATER + 30_000, resume_at=LATER),
    "StreamResumed": ev.StreamResumed(execution=make_execution(epoch=2), locked_until=LATER + 60_000),
    "Succeeded": ev.Succeeded(
        execution_id=make_execution().id,
        result_ref="RESULT#1",
        usage=Usage(input_tokens=10, output_tokens=2),
        cost_micros=30,
        served_model="gpt-5.2",
        finish_reason="stop",
    ),
    "RetryScheduled": ev.RetryScheduled(at=LATER + 1_000, reason=Reason.BACKOFF),
    "FellBack": ev.FellBack(
        route_key="other",
        requested_model="m",
        fallback="second",
        contract_version="1",
        reason=Reason.MAX_ATTEMPTS_EXHAUSTED,
        clauses={},
    ),
    "DeadLettered": ev.DeadLettered(reason=Reason.CALLER_FAULT),
    "Replayed": ev.Replayed(by="ops", at=LATER, max_attempts=3, expires_at=LATER + 900_000, lane=Lane.BACKGROUND_RETRY),
    "Closed": ev.Closed(by="ops"),
    "Approved": ev.Approved(by="lead", at=LATER, lane=Lane.BACKGROUND_RETRY, expires_at=LATER + 900_000),
    "BudgetFreed": ev.BudgetFreed(at=LATER, lane=Lane.BACKGROUND_RETRY, max_attempts=3, expires_at=LATER + 900_000),
    "Rejected": ev.Rejected(by="lead"),
}

# Written by hand from the table of states in the design. What is not here may not happen.
_ENDS = {
    "Expired": "dead_letter",
    "Shed": "dead_letter",
    "DeadLettered": "dead_letter",
    "Cancelled": "cancelled",
    "Succeeded": "succeeded",
}
ALLOWED: dict[str, dict[str, str]] = {
    "pending": {
        **_ENDS,
        "Leased": "processing",
        "Waiting": "pending",
        "FellBack": "pending",
        "HeldForReview": "pending in owner_review",
    },
    "pending in owner_review": {
        "Approved": "pending",
        "BudgetFreed": "pending",
        "Rejected": "cancelled",
        "Cancelled": "cancelled",
        "Expired": "dead_letter",
        "Succeeded": "succeeded",
    },
    "processing": {
        "ProviderAccepted": "processing",
        "PollAgain": "processing",
        "StreamOpened": "processing",
        "OutputCommitted": "processing",
        "StreamHandedOver": "processing",
        "StreamResumed": "processing",
        "CancelRequested": "processing",
        "Succeeded": "succeeded",
        "RetryScheduled": "failed",
        "FellBack": "failed",
        "HeldForReview": "pending in owner_review",
        "DeadLettered": "dead_letter",
        "Expired": "dead_letter",
        "Cancelled": "cancelled",
    },
    "failed": {
        **_ENDS,
        "Leased": "processing",
        "Waiting": "failed",
        "FellBack": "failed",
        "HeldForReview": "pending in owner_review",
    },
    "succeeded": {},
    "dead_letter": {"Replayed": "pending", "Closed": "dead_letter, closed"},
    "dead_letter, closed": {},
    "cancelled": {},
}

# How the builder calls a job that stands in each row; two kinds of processing share one.
BUILT = {
    "pending": ["pending"],
    "pending in owner_review": ["review"],
    "processing": ["processing", "at_provider"],
    "failed": ["failed"],
    "succeeded": ["succeeded"],
    "dead_letter": ["dead_letter"],
    "dead_letter, closed": ["closed"],
    "cancelled": ["cancelled"],
}
PAIRS = [(row, built, name) for row, all_built in BUILT.items() for built in all_built for name in EVENTS]


def test_the_hand_written_list_covers_every_row_and_every_event():
    """A row or an event that somebody adds must be written down here as well."""
    assert set(ALLOWED) == set(TRANSITIONS) == set(ROW_STATUS) == set(BUILT)
    assert {type(event) for event in EVENTS.values()} == set(get_args(ev.Event)) == set(APPLY)


def test_every_status_has_a_row():
    """No status is forgotten; those from which nothing leads have an empty row."""
    assert {status.value for status in Status} <= set(TRANSITIONS)


@pytest.mark.parametrize(("row", "built", "name"), PAIRS, ids=[f"{built}-{name}" for _, built, name in PAIRS])
def test_each_pair_does_what_the_list_says(row, built, name):
    """An allowed event leads where the list says; any other is refused by name. The input never changes."""
    job = make_job(built, job_id="job_a")
    before = job.with_()
    target = ALLOWED[row].get(name)

    assert row_of(job) == row
    assert may(job, type(EVENTS[name])) is (target is not None)
    if target is None:
        with pytest.raises(IllegalTransition) as refused:
            advance(job, EVENTS[name], LATER)
        assert (refused.value.state, refused.value.event) == (row, name)
        assert refused.value.ids == {"job": "job_a"}
    else:
        step = advance(job, EVENTS[name], LATER)
        assert row_of(step.job) == target
        assert (step.before, step.event) == (job, name)
        assert step.job.updated_at == LATER
        assert (step.job.rev, step.job.write_id) == (job.rev, job.write_id), "the store stamps these"
    assert job == before


@pytest.mark.parametrize(("row", "built", "name"), [pair for pair in PAIRS if pair[2] in ALLOWED[pair[0]]])
def test_no_event_touches_the_identity_or_lowers_a_counter(row, built, name):
    """Identity is frozen at admission; epoch and generation never fall, attempts only start anew with a generation."""
    del row
    frozen = (
        "job_id owner_key workflow idempotency_key fingerprint created_at user_ref input_ref request_id priority "
        "side_effects callback_url stream key_given"
    )
    job = make_job(built, job_id="job_a", user_ref="u", request_id="r", callback_url="https://x.test", ttl=9, waits=2)

    after = advance(job, EVENTS[name], LATER).job

    assert all(getattr(after, one) == getattr(job, one) for one in frozen.split())
    assert after.lease_epoch >= job.lease_epoch
    assert after.generation >= job.generation
    assert after.cost_micros >= job.cost_micros
    assert after.ttl >= job.ttl, "retention is never cut short"
    if name != "Replayed":
        assert after.attempt >= job.attempt
        assert after.waits >= job.waits
    assert (after.attempt == job.attempt + 1) is (name == "Leased"), "only a claim spends an attempt"


def test_every_event_leaves_a_job_that_may_hold_a_lease_or_nothing_of_one():
    """A job that is not processing keeps no lease, execution, slot or provider obligation behind."""
    for row, built, name in PAIRS:
        if name not in ALLOWED[row]:
            continue
        job = make_job(built, job_id="job_a", slots=(SlotRef(scope="w#sync", n=3),) if built == "processing" else ())
        after = advance(job, EVENTS[name], LATER).job
        if after.status is not Status.PROCESSING:
            assert (after.locked_until, after.execution, after.slots, after.poll_at) == (None, None, (), None)
            assert (after.provider_deadline_at, after.resume_at) == (None, None)


@pytest.mark.parametrize("built", ["pending", "failed", "processing", "at_provider", "review"])
def test_a_final_state_owes_what_the_world_must_hear(built):
    """Bus event and callback once a generation, the dead-letter reference for the dead."""
    job = make_job(built, job_id="job_a", generation=1, callback_url="https://x.test")
    row = row_of(job)
    for name, target in ALLOWED[row].items():
        owed = advance(job, EVENTS[name], LATER).job.owed
        if target == "dead_letter":
            assert {"bus_event#1", "notify#1", "dead_letter#1"} <= set(owed)
        elif target in ("succeeded", "cancelled"):
            assert {"bus_event#1", "notify#1"} <= set(owed)
            assert "dead_letter#1" not in owed
        else:
            assert not {"bus_event#1", "notify#1", "dead_letter#1"} & set(owed)


def test_nobody_is_called_back_who_left_no_address():
    """Without a callback URL nothing of the kind is owed."""
    assert "notify#1" not in advance(make_job("processing", job_id="job_a"), EVENTS["Succeeded"], LATER).job.owed


def test_standing_debts_survive_a_move():
    """What an earlier move made owed stays owed until it is delivered."""
    job = make_job("failed", owed={"usage#x": Owed(next_at=NOW, ref="x")})

    assert advance(job, EVENTS["Waiting"], LATER).job.owed == job.owed


def test_usage_is_owed_once_for_the_execution_that_brought_it():
    """The key names the execution, so that two reports of one result meet."""
    job = make_job("processing", job_id="job_a")
    key = effect_key(EffectKind.USAGE, make_execution().id)

    owed = advance(job, EVENTS["Succeeded"], LATER).job.owed

    assert owed[key].ref == make_execution().id


def test_slots_are_owed_back_by_whatever_ends_the_execution():
    """Every event that ends an execution that held slots owes their release; those that keep it don't."""
    job = make_job("processing", job_id="job_a", slots=(SlotRef(scope="w#sync", n=3), SlotRef(scope="o#acme", n=1)))
    key = effect_key(EffectKind.RELEASE, make_execution().id)
    for name in ALLOWED["processing"]:
        after = advance(job, EVENTS[name], LATER).job
        if ALLOWED["processing"][name] == "processing":
            assert after.slots == job.slots
            assert key not in after.owed
        else:
            assert after.owed[key].ref.endswith("w#sync|3 o#acme|1")


ABANDONING = [
    (EVENTS["Cancelled"], True),
    (EVENTS["Expired"], True),
    (ev.DeadLettered(reason=Reason.CRASHED_REPEATEDLY), True),
    (ev.DeadLettered(reason=Reason.SERVED_MODEL_MISMATCH, execution_id=make_execution(attempt=7).id), True),
    (ev.DeadLettered(reason=Reason.SERVED_MODEL_MISMATCH, execution_id=make_execution().id), False),
    (EVENTS["DeadLettered"], False),  # the provider itself said no: its job is over
    (EVENTS["Succeeded"], False),
    (EVENTS["RetryScheduled"], False),
]


@pytest.mark.parametrize(("event", "owed"), ABANDONING)
def test_a_provider_job_that_nobody_waits_for_is_owed_a_cancel(event, owed):
    """Whatever leaves the provider's own job running owes it a cancel, with its id."""
    execution = make_execution(provider_job_id="resp_1")
    job = make_job("at_provider", job_id="job_a", execution=execution)
    key = effect_key(EffectKind.PROVIDER_CANCEL, execution.id)

    after = advance(job, event, LATER).job

    assert (key in after.owed) is owed
    if owed:
        assert after.owed[key].ref == "resp_1"


def test_another_executions_result_abandons_the_open_one():
    """A late result settles the job, and the provider job that was open instead is cancelled."""
    execution = make_execution(attempt=2, epoch=2, provider_job_id="resp_2")
    job = make_job("at_provider", job_id="job_a", attempt=2, lease_epoch=2, execution=execution)

    after = advance(job, EVENTS["Succeeded"], LATER).job

    assert after.owed[effect_key(EffectKind.PROVIDER_CANCEL, execution.id)].ref == "resp_2"


def test_an_amendment_moves_nothing():
    """Bookkeeping changes what it names and the plan of the next look."""
    job = make_job("failed", owed={"usage#x": Owed(next_at=NOW)}, crashes=1)

    step = amend(job, LATER, why="EffectsDelivered", owed={})

    assert (step.event, step.job.owed, step.job.status, step.job.crashes) == ("EffectsDelivered", {}, job.status, 1)


def test_a_transition_forgets_crashes():
    """Three crashes count only without a transition in between."""
    assert advance(make_job("pending", crashes=2), EVENTS["Waiting"], LATER).job.crashes == 0


def test_row_constants_are_what_the_list_calls_them():
    """The two tagged rows keep their names, which the docs print."""
    assert (REVIEW, CLOSED) == ("pending in owner_review", "dead_letter, closed")


def test_every_event_is_a_frozen_value():
    """An event can't be changed after it was decided."""
    for event in EVENTS.values():
        name: Any = fields(event)[0].name if fields(event) else None
        if name:
            with pytest.raises(AttributeError):
                setattr(event, name, None)
