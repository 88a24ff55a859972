"""Where schedules stand: the fake and DynamoDB keep the same promises."""

from __future__ import annotations

from uuid import uuid4

from breakwater.ports import Scheduled


def test_a_schedule_that_nobody_saw_stands_nowhere(store):
    """Its first tick must make up for nothing."""
    assert store.scheduled(f"s-{uuid4().hex[:8]}") is None


def test_what_was_put_is_read_back_under_its_revision(store):
    """The first write creates it, the next one raises its revision."""
    name = f"s-{uuid4().hex[:8]}"

    assert store.put_scheduled(None, Scheduled(name=name, last_window_ms=60_000, job_id="job_a"))
    first = store.scheduled(name)
    assert store.put_scheduled(first, Scheduled(name=name, last_window_ms=120_000, job_id="job_b"))

    assert first == Scheduled(name=name, last_window_ms=60_000, job_id="job_a", rev=1)
    assert store.scheduled(name) == Scheduled(name=name, last_window_ms=120_000, job_id="job_b", rev=2)


def test_of_two_schedulers_one_writes(store):
    """Both read the same; the second finds that the first was faster, and changes nothing."""
    name = f"s-{uuid4().hex[:8]}"
    assert store.put_scheduled(None, Scheduled(name=name, last_window_ms=60_000))
    read = store.scheduled(name)

    assert store.put_scheduled(read, Scheduled(name=name, last_window_ms=120_000))
    assert not store.put_scheduled(read, Scheduled(name=name, last_window_ms=180_000))
    assert not store.put_scheduled(None, Scheduled(name=name))

    standing = store.scheduled(name)
    assert (standing.last_window_ms, standing.rev) == (120_000, 2)


def test_what_is_not_known_is_not_stored(store):
    """A schedule that has passed over everything has no job yet."""
    name = f"s-{uuid4().hex[:8]}"

    store.put_scheduled(None, Scheduled(name=name, last_window_ms=60_000))

    assert store.scheduled(name).job_id is None
