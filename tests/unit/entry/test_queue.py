"""What the queue is told: only ids of this batch, each once, and only what must come again."""

from __future__ import annotations

import json

import pytest

from breakwater.domain.errors import LeaseLost, StoreUnavailable
from breakwater.entry.queue import consume
from tests.fakes.outside import FakeLog


class Context:
    aws_request_id = "lambda-1"


def record(message_id, body):
    """One SQS record."""
    return {"messageId": message_id, "body": body if isinstance(body, str) else json.dumps(body)}


def job(name):
    """A nudge about a job."""
    return {"kind": "job", "id": name}


def run(records, work):
    """The partial-batch answer, and the log."""
    log = FakeLog()
    answer = consume({"Records": records}, Context(), log, work)
    return [one["itemIdentifier"] for one in answer["batchItemFailures"]], log


def failing(*names):
    """Work that fails for these ids."""

    def work(_kind, item_id, _record):
        if item_id in names:
            raise StoreUnavailable

    return work


@pytest.mark.parametrize(("receives", "reported"), [("1", ["m1"]), ("4", ["m1"]), ("5", []), ("9", [])])
def test_a_store_that_is_away_is_not_counted_as_a_crash(receives, reported):
    """The queue brings the nudge back; at the last receive it is let go, and the job's own `due_at` goes on."""
    sent = record("m1", job("j1")) | {"attributes": {"ApproximateReceiveCount": receives}}

    answer, log = run([sent], failing("j1"))

    assert answer == reported
    assert [name for name, _ in log.notes] == ["nudge_failed" if reported else "nudge_let_go"]


def test_a_handler_that_crashes_is_reported_to_the_last():
    """So its queue's DLQ gets it, and it is counted."""

    def work(_kind, _item_id, _record):
        raise ValueError

    sent = record("m1", job("j1")) | {"attributes": {"ApproximateReceiveCount": "5"}}

    assert run([sent], work)[0] == ["m1"]


def test_a_warm_process_remembers_nothing_of_the_last_batch():
    """The second batch's answer holds the second batch's failures."""
    work = failing("j1", "j2")

    assert run([record("m1", job("j1"))], work)[0] == ["m1"]
    assert run([record("m2", job("j2")), record("m3", job("j3"))], work)[0] == ["m2"]
    assert run([record("m4", job("j4"))], work)[0] == []


def test_equal_ids_are_reported_once():
    """A message that stands twice in a batch is one failure."""
    assert run([record("m1", job("j1")), record("m1", job("j1"))], failing("j1"))[0] == ["m1"]


def test_one_bad_body_does_not_stop_the_others():
    """Each unreadable body is reported; the good job runs once; an unknown job is the use case's to judge."""
    worked = []
    bodies = {
        "m1": "{not json",
        "m2": job("j2"),
        "m3": "null",
        "m4": {"kind": "job", "id": 12345},
        "m5": job("does-not-exist"),
        "m6": "",
        "m7": {"job_id": "j2"},
        "m8": {"kind": "other", "id": "x"},
    }

    failed, log = run([record(*one) for one in bodies.items()], lambda _kind, item_id, _record: worked.append(item_id))

    assert failed == ["m1", "m3", "m4", "m6", "m7", "m8"]
    assert worked == ["j2", "does-not-exist"]
    assert {name for name, _ in log.notes} == {"unreadable_nudge"}


def test_a_record_without_an_id_can_not_be_reported_and_crashes_nothing():
    """An id that is not there is not invented."""
    assert run([{"body": "{"}], failing())[0] == []


def test_somebody_else_won_is_no_failure():
    """A lost race is done; what is left has its own `due_at`."""

    def work(*_):
        raise LeaseLost

    failed, log = run([record("m1", job("j1"))], work)

    assert failed == []
    assert log.notes[0][0] == "nudge_overtaken"


def test_a_crash_is_told_by_place_and_never_by_message():
    """An exception's text can quote a prompt."""

    def work(*_):
        raise ValueError("the prompt was: my secret")

    failed, log = run([record("m1", job("j1"))], work)

    assert failed == ["m1"]
    name, told = log.notes[0]
    assert (name, told["error"]) == ("nudge_crashed", "ValueError")
    assert "secret" not in json.dumps(told)
    assert told["trace"]


def test_an_empty_event_is_an_empty_answer():
    """No records, no failures."""
    assert run([], failing())[0] == []
