"""What became of every request of a provider batch?"""

from __future__ import annotations

import json

import pytest

from breakwater.domain.signals import ErrorClass
from breakwater.providers.batches import batch_outcomes

IDS = [f"job_{number}" for number in range(10)]
ANSWER = {"id": "r", "status": "completed", "output": [{"type": "message", "content": [{"text": "hi"}]}]}


def line(custom_id, status=200, body=None, error=None):
    """One line of a file, as text."""
    response = None if error else {"status_code": status, "body": ANSWER if body is None else body}
    return json.dumps({"id": "x", "custom_id": custom_id, "response": response, "error": error})


def batch(status, output="file-out", errors="file-err"):
    """A batch object."""
    return {"status": status, "output_file_id": output, "error_file_id": errors}


def test_an_expired_batch_has_paid_results_and_the_rest_runs_again():
    """One was settled from the output, only the other nine are due again, joined by their ids."""
    expired = [line(custom_id, error={"code": "batch_expired", "message": "m"}) for custom_id in IDS[1:5]]

    outcomes = batch_outcomes(batch("expired"), IDS, [line("job_0")], expired)

    assert outcomes.settled == {"job_0": ANSWER}
    assert outcomes.run_again == set(IDS[1:])
    assert (outcomes.failed, outcomes.waiting) == ({}, frozenset())


def test_a_completed_batch_can_be_all_failures():
    """No output file at all, and every request failed for a reason that its line gives."""
    error = {"error": {"type": "invalid_request_error", "code": "model_not_found", "message": "m"}}
    lines = [line(custom_id, 404, error) for custom_id in reversed(IDS[:9])]

    outcomes = batch_outcomes(batch("completed", output=None), IDS[:9], None, lines)

    assert set(outcomes.failed) == set(IDS[:9])
    assert {signal.provider_error_code for signal in outcomes.failed.values()} == {"model_not_found"}
    assert {signal.error_class for signal in outcomes.failed.values()} == {ErrorClass.CALLER_FAULT}
    assert (outcomes.settled, outcomes.run_again, outcomes.waiting) == ({}, frozenset(), frozenset())


def test_a_line_with_a_200_is_no_success_yet():
    """Cut, empty and failed answers in the output are failures with their own class."""
    cut = {**ANSWER, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    busy = {"error": {"code": "server_is_overloaded"}}
    lines = [
        line("job_0", body=cut),
        line("job_1", 503, busy),
        line("job_2", body={}),
        line("job_3", error={"code": "?"}),
    ]

    failed = batch_outcomes(batch("completed"), IDS[:4], lines, []).failed

    assert [failed[custom_id].error_class for custom_id in IDS[:4]] == [
        ErrorClass.TRUNCATED,
        ErrorClass.OVERLOAD,
        ErrorClass.UNKNOWN,
        ErrorClass.UNKNOWN,
    ]


def test_a_success_outweighs_an_error_under_the_same_id():
    """What was paid for counts, whichever file comes first."""
    outcomes = batch_outcomes(batch("completed"), ["job_0"], [line("job_0")], [line("job_0", 500, {})])

    assert list(outcomes.settled) == ["job_0"]


@pytest.mark.parametrize("status", ["validating", "in_progress", "finalizing", "cancelling", None])
def test_a_batch_that_still_runs_leaves_the_rest_waiting(status):
    """Nothing runs again while it may yet be answered."""
    outcomes = batch_outcomes(batch(status), IDS[:3], [line("job_0")], None)

    assert (set(outcomes.settled), outcomes.waiting) == ({"job_0"}, {"job_1", "job_2"})


@pytest.mark.parametrize("unread", ["output", "errors"])
def test_a_file_that_was_not_read_is_not_a_file_without_lines(unread):
    """Results that could not be fetched are not results that don't exist."""
    files = {"output": [line("job_0")], "errors": []}
    files[unread] = None

    assert batch_outcomes(batch("expired"), IDS[:2], **files).waiting >= {"job_1"}


def test_a_line_that_is_missing_from_a_completed_batch_is_an_unknown_outcome():
    """It may have been run and paid: it is not repeated by itself."""
    outcomes = batch_outcomes(batch("completed"), IDS[:2], [line("job_0")], [])

    assert outcomes.failed["job_1"].error_class is ErrorClass.OUTCOME_UNKNOWN
    assert outcomes.failed["job_1"].rule == "adapter.no_batch_line"


def test_a_cancelled_batch_runs_the_rest_again():
    """What it did not come to was not paid; whether it is still wanted is not decided here."""
    lines = [line("job_1", error={"code": "batch_cancelled"})]

    outcomes = batch_outcomes(batch("cancelled"), IDS[:3], [line("job_0")], lines)

    assert outcomes.run_again == {"job_1", "job_2"}


def test_a_batch_that_failed_as_a_whole_says_why_for_all():
    """Its input was refused before anything ran."""
    errors = {"data": [{"code": "invalid_json_line", "message": "m", "line": 3}]}

    outcomes = batch_outcomes({"status": "failed", "errors": errors}, IDS[:2], None, None)

    assert {signal.error_class for signal in outcomes.failed.values()} == {ErrorClass.CALLER_FAULT}
    assert batch_outcomes({"status": "failed"}, ["a"], None, None).failed["a"].error_class is ErrorClass.OUTCOME_UNKNOWN


def test_a_batch_for_which_others_left_no_room_runs_again():
    """The account's tokens in queue are used up, which passes; the requests are as good as before."""
    errors = {"data": [{"code": "token_limit_exceeded", "message": "Enqueued token limit reached", "line": None}]}

    outcomes = batch_outcomes({"status": "failed", "errors": errors}, IDS[:2], None, None)

    assert (outcomes.run_again, outcomes.failed) == (set(IDS[:2]), {})


def test_lines_that_belong_to_nobody_are_left_out():
    """Broken lines, other batches' ids, lines without an id."""
    lines = [
        "",
        "{",
        "[]",
        line("somebody"),
        {"response": {}},
        {"custom_id": "job_0", "response": {"status_code": 200, "body": ANSWER}},
    ]

    outcomes = batch_outcomes(batch("completed"), ["job_0"], lines, [])

    assert (set(outcomes.settled), outcomes.failed) == ({"job_0"}, {})
