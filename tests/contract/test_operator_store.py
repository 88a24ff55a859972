"""What operators' stores promise: lists in order, batches under a revision, an audit that keeps what was said."""

from __future__ import annotations

import itertools
import uuid
from dataclasses import replace

import pytest

from breakwater.domain.audit import Entry, Stage
from breakwater.domain.records import ApiKey, Child
from breakwater.domain.replay_batch import Batch, BatchStatus, Ref
from breakwater.ports import Committed
from breakwater.store.operator import OperatorTable
from tests.fakes.desk import FakeOperatorTable
from tests.support.builders import NOW, make_job
from tests.support.cloud import create_table

# Each test looks at a time of its own, since the index is shared.
_times = itertools.count(NOW + 10**9, 10**6)


@pytest.fixture(scope="session")
def control_table(dynamo_cloud):
    """One control table for all."""
    return create_table(dynamo_cloud.client("dynamodb"), "ControlTable")


@pytest.fixture(params=["fake", "dynamodb"])
def table(request):
    """The operators' part of the control table."""
    if request.param == "fake":
        return FakeOperatorTable()
    cloud = request.getfixturevalue("dynamo_cloud")
    return OperatorTable(cloud.client("dynamodb"), request.getfixturevalue("control_table"))


def stored(store, status, at):
    """A job that died, or was held, at a time."""
    job_id = f"job_{uuid.uuid4().hex[:12]}"
    job = make_job(status, job_id=job_id, updated_at=at, completed_at=at if status != "review" else None)
    answer = store.create(job, NOW)
    assert isinstance(answer, Committed)
    return answer.job


def make_batch(**more):
    """A batch with one open job."""
    base = {
        "id": f"b-{uuid.uuid4().hex[:12]}",
        "created_at": next(_times),
        "created_by": "ops/k1",
        "owner_key": "ops",
        "terms": {"terms": {"owner": "alex", "stop": {"max_attempts": 2}}},
        "total": 3,
        "rate_per_minute": 60,
        "at_once": 10,
        "error_threshold": 5,
        "open": (Ref(job_id="job_a", generation=1),),
        "counts": {"failed": 1},
        "tick_at": NOW,
        "due_at": NOW + 120_000,
    }
    return Batch(**{**base, **more})


# --- attention ------------------------------------------------------------------------------------------------------


def test_what_needs_a_person_is_listed_newest_first_page_by_page(store):
    """Open dead letters by time of death; the cursor goes on where a page ended."""
    start = next(_times)
    jobs = [stored(store, "dead_letter", start + number) for number in range(5)]

    first, cursor = store.attention("dead_letter", start, start + 100, 3)
    second, _ = store.attention("dead_letter", start, start + 100, 3, cursor)

    assert first + second == [job.job_id for job in reversed(jobs)]
    assert cursor is not None


def test_times_bound_the_list(store):
    """Both ends count."""
    start = next(_times)
    jobs = [stored(store, "dead_letter", start + number) for number in range(4)]

    found, _ = store.attention("dead_letter", start + 1, start + 2, 10)

    assert found == [jobs[2].job_id, jobs[1].job_id]


def test_reviews_have_a_list_of_their_own_and_closed_jobs_none(store):
    """A closed dead letter needs nobody."""
    start = next(_times)
    review = stored(store, "review", start)
    stored(store, "closed", start)
    stored(store, "succeeded", start)

    assert store.attention("owner_review", start, start, 10)[0] == [review.job_id]
    assert store.attention("dead_letter", start, start, 10)[0] == []


def test_a_job_leaves_the_list_with_the_write_that_moves_it(store):
    """Closing takes the index attributes away in the same update."""
    start = next(_times)
    job = stored(store, "dead_letter", start)

    store.commit(job, job.with_(closed_at=start, closed_by="ops"))

    assert store.attention("dead_letter", start, start, 10)[0] == []


# --- batches --------------------------------------------------------------------------------------------------------


def test_a_batch_reads_back_as_it_was_written(store):
    """No field is lost."""
    batch = make_batch(status=BatchStatus.STOPPED, why="threshold")

    assert store.put_batch(None, batch)

    assert store.batch(batch.id) == replace(batch, rev=1)
    assert store.batch("b-unknown") is None


def test_a_batch_moves_only_under_the_revision_it_was_read_at(store):
    """Of two ticks one wins; a batch is created once."""
    batch = make_batch()
    store.put_batch(None, batch)
    read = store.batch(batch.id)

    assert store.put_batch(read, replace(read, next=1))
    assert not store.put_batch(read, replace(read, next=2))
    assert not store.put_batch(None, batch)
    assert store.batch(batch.id).next == 1


def test_a_batch_is_due_until_it_is_over_and_listed_for_good(store):
    """The sweep finds it by the same index as everything unfinished."""
    batch = make_batch()
    store.put_batch(None, batch)

    def due():
        found = [store.due(shard, NOW + 10**6, 100)[0] for shard in range(8)]
        return [one for page in found for one in page if one.kind == "batch" and one.id == batch.id]

    assert [one.due_at for one in due()] == [batch.due_at]
    read = store.batch(batch.id)
    store.put_batch(read, replace(read, due_at=None, tick_at=None))
    assert due() == []
    assert store.attention("batch", batch.created_at, batch.created_at, 10)[0] == [batch.id]


def test_lines_of_a_batch_are_put_once_and_read_in_order(store):
    """The selection is frozen; what became of a job is said once."""
    batch = make_batch()

    assert store.put_batch_line(batch.id, Child(sk="ITEMS#0001", data={"refs": ["b|1"]}), None)
    assert store.put_batch_line(batch.id, Child(sk="ITEMS#0000", data={"refs": ["a|1"]}), 2_000_000_000)
    assert not store.put_batch_line(batch.id, Child(sk="ITEMS#0000", data={"refs": ["other|1"]}), None)
    store.put_batch_line(batch.id, Child(sk="DONE#job_a", data={"outcome": "failed"}), None)

    assert [one.data["refs"] for one in store.batch_lines(batch.id, "ITEMS#")] == [["a|1"], ["b|1"]]
    assert len(store.batch_lines(batch.id, "ITEMS#", 1)) == 1


# --- control --------------------------------------------------------------------------------------------------------


def make_entry(**more):
    """One entry."""
    base = {
        "id": uuid.uuid4().hex[:12],
        "at": NOW,
        "stage": Stage.ASKED,
        "who": "ops/k1",
        "what": "close",
        "target": "job:job_a",
        "why": "nobody needs it",
        "before": {"status": "dead_letter"},
    }
    return Entry(**{**base, **more})


def test_an_audit_entry_is_never_overwritten(table):
    """Put if absent, also for the same action and stage."""
    entry = make_entry(at=next(_times))

    assert table.put_audit(entry)
    assert not table.put_audit(replace(entry, why="something else"))
    assert entry in table.audit(entry.month, 1_000)[0]


def test_the_audit_reads_newest_first_page_by_page(table):
    """An action's outcome stands above its question."""
    at = 1_000_000_000_000 + next(_times) % 10**9 * 1_000
    entries = [make_entry(at=at + number) for number in range(3)]
    done = replace(entries[-1], stage=Stage.DONE, after={"closed_at": 1})
    for one in [*entries, done]:
        table.put_audit(one)

    first, cursor = table.audit(entries[0].month, 2)
    second, _ = table.audit(entries[0].month, 2, cursor)

    assert first + second == [done, *reversed(entries)]


def test_keys_are_listed_by_owner_and_revoked_once(table):
    """Only hashes are kept; a revoked key stays listed."""
    owner = f"owner-{uuid.uuid4().hex[:8]}"
    keys = [
        ApiKey(
            key_hash=uuid.uuid4().hex,
            key_id=f"key_{number}",
            owner_key=owner,
            scopes=frozenset({"read", "submit"}),
            created_at=NOW,
        )
        for number in range(2)
    ]
    for key in keys:
        table.put_api_key(key)

    assert table.revoke_api_key(keys[0], NOW + 1)
    assert not table.revoke_api_key(keys[0], NOW + 2)
    assert table.api_keys(owner) == [replace(keys[0], revoked_at=NOW + 1), keys[1]]
    assert {one.key_id for one in table.api_keys()} >= {"key_0", "key_1"}


def test_owner_settings_move_under_their_revision(table):
    """Of two operators one wins."""
    owner = f"owner-{uuid.uuid4().hex[:8]}"

    assert table.put_owner(owner, {}, {"budget_micros": 5})
    assert not table.put_owner(owner, {}, {"budget_micros": 6})
    assert table.put_owner(owner, {"rev": 1}, {"budget_micros": 7})
    assert table.owner_now(owner) == {"budget_micros": 7, "rev": 2}
    assert table.owner_now("owner-unknown") == {}
