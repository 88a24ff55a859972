"""A key that is used again after its retention is another job; nothing of the old one can touch it."""

from __future__ import annotations

from breakwater.ports import Committed, Conflicted
from tests.support.builders import NOW, make_job

BORN_AGAIN = NOW + 40 * 86_400_000


def test_a_write_planned_for_the_old_job_is_refused_by_the_new_one(store):
    """Revisions start anew with each incarnation, so the birth is part of every condition."""
    old = store.create(make_job(ttl=NOW // 1000 + 60), NOW).job
    new = store.create(make_job(job_id=old.job_id, created_at=BORN_AGAIN), BORN_AGAIN).job
    assert old.rev == new.rev

    answer = store.commit(old, old.with_(waits=9))

    assert answer == Conflicted(new)
    assert isinstance(store.commit(new, new.with_(waits=1)), Committed)


def test_a_key_is_free_from_the_very_moment_its_job_is_no_longer_readable(store):
    """Reading and admitting agree to the second: never a job that is neither there nor replaceable."""
    old = store.create(make_job(ttl=NOW // 1000), NOW - 5_000).job

    early = store.create(make_job(job_id=old.job_id, created_at=NOW - 1), NOW - 1)
    on_time = store.create(make_job(job_id=old.job_id, created_at=NOW), NOW)

    assert early == Conflicted(old)
    assert isinstance(on_time, Committed)
