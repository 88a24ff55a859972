"""What every job store promises: one winner, nothing created by an update, nothing overwritten."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from breakwater.domain.records import Child, Delivery, ProviderJob, RouteState
from breakwater.ports import Committed, Conflicted, Guard
from breakwater.store.items import due_shard
from breakwater.store.table import DynamoJobStore
from tests.support.builders import NOW, make_execution, make_job

STATUSES = (
    "pending",
    "review",
    "processing",
    "at_provider",
    "failed",
    "succeeded",
    "dead_letter",
    "closed",
    "cancelled",
)


def created(store, **more):
    """A stored job."""
    answer = store.create(make_job(**more), NOW)
    assert isinstance(answer, Committed)
    return answer.job


@pytest.mark.parametrize("status", STATUSES)
def test_every_kind_of_job_reads_back_as_it_was_written(store, status):
    """No field is lost or changed on the way through the table."""
    job = created(store, status=status, owed={}, user_ref="u-1")

    assert store.get(job.job_id) == job


def test_create_is_the_unique_constraint(store):
    """The second create of one key finds the first job and changes nothing."""
    first = created(store)

    second = store.create(first.with_(fingerprint="other"), NOW)

    assert isinstance(second, Conflicted)
    assert second.current == first


def test_fifty_creates_at_once_have_one_winner(store):
    """The condition is in the write, not in a read before it."""
    job = make_job()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: store.create(job, NOW), range(50)))

    assert sum(isinstance(one, Committed) for one in answers) == 1


def test_create_replaces_what_is_past_its_retention(store):
    """A key whose job only waits for the cleaner is free again; a table that cleans late does not matter."""
    old = created(store, ttl=NOW // 1000 - 60)

    answer = store.create(make_job(job_id=old.job_id, created_at=NOW + 5), NOW)

    assert isinstance(answer, Committed)
    assert store.get(old.job_id).created_at == NOW + 5


def test_commit_needs_the_revision_it_read(store):
    """Of two writers over one reading, one wins and the other gets what stands there."""
    job = created(store)
    first = store.commit(job, job.with_(waits=1))

    second = store.commit(job, job.with_(waits=7))

    assert isinstance(first, Committed)
    assert isinstance(second, Conflicted)
    assert second.current == first.job
    assert store.get(job.job_id).waits == 1
    assert first.job.rev == job.rev + 1


def test_commit_never_creates_what_it_does_not_find(store):
    """A late writer can't revive a job that is gone."""
    ghost = make_job("processing")

    answer = store.commit(ghost, ghost.with_(waits=1))

    assert answer == Conflicted(None)
    assert store.get(ghost.job_id) is None


def test_commit_checks_the_epoch_it_believes_in(store):
    """A holder that is no longer the holder writes nothing."""
    job = created(store, status="processing", lease_epoch=2)

    answer = store.commit(job, job.with_(waits=1), Guard(epoch=1))

    assert isinstance(answer, Conflicted)


def test_commit_checks_the_lease_end_as_read(store):
    """A renewal between the read and the takeover refuses the takeover, though `rev` did not move."""
    job = created(store, status="processing")
    assert store.renew(job.job_id, 1, NOW, NOW + 90_000)

    answer = store.commit(job, job.with_(waits=1), Guard(epoch=1, locked_until=job.locked_until))

    assert isinstance(answer, Conflicted)
    assert answer.current.rev == job.rev
    assert answer.current.locked_until == NOW + 90_000


def test_commit_removes_what_vanished(store):
    """Attributes that became empty are gone from the item, and with them from the sparse indexes."""
    job = created(store, status="processing", due_at=NOW + 5)

    done = store.commit(job, job.with_(execution=None, locked_until=None, due_at=None))

    assert isinstance(done, Committed)
    standing = store.get(job.job_id)
    assert standing.execution is None
    assert standing.locked_until is None
    assert job.job_id not in [one.id for one in store.due(_shard(job.job_id), NOW + 10_000, 50)[0]]


@pytest.mark.parametrize(
    ("epoch", "now", "held"),
    [(1, NOW, True), (1, NOW + 60_000, False), (1, NOW + 60_001, False), (2, NOW, False), (0, NOW, False)],
)
def test_a_renewal_needs_its_epoch_and_an_unexpired_lease(store, epoch, now, held):
    """It changes the lease end alone, and only for the holder in time."""
    job = created(store, status="processing")

    assert store.renew(job.job_id, epoch, now, NOW + 120_000) is held

    standing = store.get(job.job_id)
    assert standing.locked_until == (NOW + 120_000 if held else job.locked_until)
    assert standing.rev == job.rev


def test_a_renewal_never_creates_a_job(store):
    """Nothing stands under an id nobody stored."""
    assert store.renew("job_ghost", 1, NOW, NOW + 1) is False
    assert store.get("job_ghost") is None


def test_a_child_is_put_once(store):
    """The second writer reads what the first one wrote."""
    job = created(store)
    first = Child(sk="RESULT#1", data={"n": 1}, body="{}")

    assert store.put_child(job.job_id, first, None) == first
    assert store.put_child(job.job_id, Child(sk="RESULT#1", data={"n": 2}), None) == first
    assert store.child(job.job_id, "RESULT#1") == first
    assert store.child(job.job_id, "RESULT#2") is None


def test_children_come_in_key_order_by_prefix(store):
    """History reads in the order it happened, and META is no child."""
    job = created(store)
    for name in ("EXEC#2", "EXEC#1", "RESULT#1", "EXEC#3"):
        store.put_child(job.job_id, Child(sk=name), None)

    assert [one.sk for one in store.children(job.job_id, "EXEC#")] == ["EXEC#1", "EXEC#2", "EXEC#3"]
    assert [one.sk for one in store.children(job.job_id, "EXEC#", 2)] == ["EXEC#1", "EXEC#2"]
    assert [one.sk for one in store.children(job.job_id, "M")] == []


def test_children_go_on_behind_a_key(store):
    """A reader takes up where it stopped, inside one prefix, in pages; the key itself is not repeated."""
    job = created(store)
    for name in ("SEG#1#000000", "SEG#1#000001", "SEG#1#000002", "SEG#2#000000"):
        store.put_child(job.job_id, Child(sk=name), None)

    def found(after, limit=10):
        return [one.sk[-8:] for one in store.children_after(job.job_id, "SEG#1#", after, limit)]

    assert found(None) == ["1#000000", "1#000001", "1#000002"]
    assert found("SEG#1#000000") == ["1#000001", "1#000002"]
    assert found("SEG#1#000000", 1) == ["1#000001"]
    assert found("SEG#1#000002") == []


def _shard(item_id):
    return int(due_shard(item_id).split("#")[1])


def test_due_lists_what_is_due_and_nothing_else(store):
    """Earliest first, bounded, going on where it stopped, and from the newest end when asked."""
    jobs = []
    while len(jobs) < 5:
        job = make_job(due_at=NOW - 1_000_000 + len(jobs))
        if _shard(job.job_id) == 3:
            jobs.append(store.create(job, NOW).job)
    until = NOW - 1_000_000 + 3

    page, cursor = store.due(3, until, 2)
    assert [one.id for one in page] == [job.job_id for job in jobs[:2]]
    assert [one.kind for one in page] == ["job", "job"]
    assert cursor is not None
    rest, _ = store.due(3, until, 2, cursor)
    assert [one.id for one in rest] == [job.job_id for job in jobs[2:4]]
    newest, _ = store.due(3, until, 1, newest=True)
    assert [one.id for one in newest] == [jobs[3].job_id]


def test_an_owner_lists_only_their_own_jobs_newest_first(store):
    """Pages follow each other without a gap or a repeat."""
    jobs = [created(store, owner_key="lister", created_at=NOW + n) for n in range(5)]
    created(store, owner_key="somebody-else")

    first, cursor = store.by_owner("lister", 3, None)
    second, end = store.by_owner("lister", 3, cursor)

    assert first + second == [job.job_id for job in reversed(jobs)]
    assert end is None
    assert set(store.get_many(first)) == set(first)


def test_a_delivery_is_recorded_once_and_closed_once(store):
    """The same id finds the first record; a processed one can't be processed again or made due again."""
    delivery = Delivery(
        endpoint="openai",
        webhook_id=f"wh-{id(store)}",
        event_type="response.completed",
        body_sha="a",
        received_at=NOW,
        provider_job_id="resp_1",
        due_at=NOW + 5,
    )
    assert store.record_delivery(delivery) is None
    assert store.record_delivery(delivery) == delivery
    assert store.delivery(delivery.id) == delivery

    moved = replace(delivery, due_at=NOW + 9, nudges=1)
    assert store.update_delivery(delivery, moved)
    assert not store.update_delivery(delivery, moved), "due_at is not as it was read"
    done = replace(moved, processed_at=NOW + 9, verdict="settled", due_at=None)
    assert store.update_delivery(moved, done)
    assert not store.update_delivery(done, moved)
    assert store.delivery(delivery.id) == done
    ghost = replace(delivery, webhook_id="ghost")
    assert not store.update_delivery(ghost, ghost)
    assert store.delivery("openai#ghost") is None


def test_a_closed_delivery_is_reopened_once_as_it_was_read(store):
    """Of two redeliveries one reopens it; what is open or was never there is left alone."""
    closed = Delivery(
        endpoint="openai",
        webhook_id=f"wh-again-{id(store)}",
        event_type="response.completed",
        body_sha="a",
        received_at=NOW,
        processed_at=NOW + 9,
        verdict="given_up",
    )
    store.record_delivery(closed)
    fresh = replace(closed, received_at=NOW + 20, processed_at=None, verdict=None, due_at=NOW + 25)

    assert not store.reopen_delivery(replace(closed, processed_at=NOW + 8), fresh)
    assert store.reopen_delivery(closed, fresh)
    assert not store.reopen_delivery(closed, fresh)
    assert store.delivery(closed.id) == fresh
    ghost = replace(closed, webhook_id="never-there")
    assert not store.reopen_delivery(ghost, ghost)
    assert store.delivery(ghost.id) is None


def test_whose_a_provider_job_is_is_written_once(store):
    """The first word stands, per endpoint."""
    name = f"pred-{id(store)}"
    first = ProviderJob(endpoint="media", provider_job_id=name, job_id="job_a", execution_id="job_a.1.1.1", ttl=9)
    second = replace(first, job_id="job_b", execution_id="job_b.1.1.1")

    assert store.provider_job("media", name) is None
    assert store.put_provider_job(first) == first
    assert store.put_provider_job(second) == first
    assert store.put_provider_job(first) == first
    assert store.provider_job("media", name) == first
    assert store.provider_job("other", name) is None


def test_a_delivery_keeps_what_it_carries(store):
    """Inline, or where it is, and through every later write."""
    inline = Delivery(
        endpoint="media", webhook_id=f"wh-b-{id(store)}", event_type="t", body_sha="a", received_at=NOW, due_at=NOW,
        body='{"id": "é"}',
    )  # fmt: skip
    large = replace(inline, webhook_id=f"wh-c-{id(store)}", body=None, blob="deliveries/media/a.json")
    for one in (inline, large):
        store.record_delivery(one)
        store.update_delivery(one, replace(one, due_at=NOW + 1))

        assert store.delivery(one.id) == replace(one, due_at=NOW + 1)


def test_a_route_state_is_written_under_the_revision_it_read(store):
    """Two closers can't overwrite each other unseen."""
    key = f"route-{id(store)}"
    assert store.route(key) is None
    assert store.put_route(None, RouteState(route_key=key, closed_until=NOW, reason="pacing", rev=0))
    assert not store.put_route(None, RouteState(route_key=key, closed_until=NOW + 1, rev=0))
    standing = store.route(key)
    assert (standing.closed_until, standing.reason, standing.rev) == (NOW, "pacing", 1)
    assert store.put_route(standing, RouteState(route_key=key, closed_until=NOW + 9, reason="quota", rev=1))
    assert store.route(key).closed_until == NOW + 9


def test_a_route_write_whose_answer_was_lost_meets_itself(dynamo_cloud, jobs_table):
    """The SDK repeats it, and the repeat fails its condition against our own stamp: it landed."""
    stamps = ["one", "one", "two"]
    store = DynamoJobStore(dynamo_cloud.client("dynamodb"), jobs_table, lambda: stamps.pop(0))
    closed = RouteState(route_key=f"route-{uuid.uuid4().hex}", closed_until=NOW, reason="pacing")

    assert store.put_route(None, closed)
    assert store.put_route(None, closed)  # the same write once more
    assert not store.put_route(None, closed)  # somebody else's


def test_usage_counts_each_execution_once(store):
    """Line and totals are one transaction."""
    owner = f"owner-{id(store)}"
    line = {
        "owner_key": owner,
        "workflow": "sync",
        "period": "2026-11",
        "execution_id": "x.1",
        "cost_micros": 300,
        "usage_units": 120,
        "input_tokens": 100,
        "output_tokens": 20,
    }

    assert store.count_usage(line)
    assert not store.count_usage(line)
    assert store.count_usage({**line, "execution_id": "x.2"})

    totals = {item["sk"]: item for item in store.usage(owner, "2026-11")}
    assert totals.keys() == {"TOTAL#2026-11#sync"}
    assert totals["TOTAL#2026-11#sync"]["executions"] == 2
    assert totals["TOTAL#2026-11#sync"]["cost_micros"] == 600


def test_a_job_is_read_with_the_children_that_were_asked_for(store):
    """Under a prefix on either side of META, and without one."""
    job = created(store)
    for sk in ("EXECUTION#1", "INPUT#1", "INPUT#2", "LATE#1", "RESULT#1", "SEEN#1"):
        store.put_child(job.job_id, Child(sk=sk, data={"is": sk}), None)
    for prefix, wanted in (("INPUT#", ["INPUT#2", "INPUT#1"]), ("RESULT#", ["RESULT#1"]), ("STATE#", [])):
        read, children = store.get_with(job.job_id, prefix, 9)
        assert (read, [one.sk for one in children]) == (job, wanted)
    assert store.get_with("job_ghost", "INPUT#", 1) == (None, [])


def test_neighbours_of_another_kind_count_against_what_is_read_with_a_job(store):
    """They stand between, on either side; who needs a child that was not read asks for it."""
    job = created(store)
    for sk in ("INPUT#1", "LATE#1", "LATE#2", "REPLAY#1", "REPLAY#2", "RESULT#1", "RESULT#2"):
        store.put_child(job.job_id, Child(sk=sk, data={"is": sk}), None)

    for prefix, most, wanted in (("INPUT#", 2, []), ("INPUT#", 3, ["INPUT#1"]), ("RESULT#", 3, ["RESULT#1"])):
        assert [one.sk for one in store.get_with(job.job_id, prefix, most)[1]] == wanted


def test_a_job_is_found_however_many_children_stand_before_it(store):
    """A client that polls by sending its request again leaves an input each time; more than one page of them."""
    job = created(store)
    for n in range(80):
        store.put_child(job.job_id, Child(sk=f"INPUT#{n:04d}", body="x" * 15_000), None)

    read, children = store.get_with(job.job_id, "INPUT#", 1)
    assert read == job
    assert len(children) <= 1


def test_a_child_is_kept_longer_and_never_shorter(store):
    """Only one that stands there and would go sooner; one without an end has none."""
    job = created(store)
    store.put_child(job.job_id, Child(sk="INPUT#1", body="{}"), 2_000_000_000)
    store.put_child(job.job_id, Child(sk="INPUT#2", body="{}"), None)

    assert store.keep_child(job.job_id, "INPUT#1", 2_000_000_100)
    assert not store.keep_child(job.job_id, "INPUT#1", 2_000_000_100)
    assert not store.keep_child(job.job_id, "INPUT#1", 1_900_000_000)
    assert not store.keep_child(job.job_id, "INPUT#2", 2_000_000_100)
    assert not store.keep_child(job.job_id, "INPUT#3", 2_000_000_100)
    assert store.child(job.job_id, "INPUT#3") is None


def test_children_are_put_at_once_and_none_is_replaced(store):
    """Each if absent: what stands there stays."""
    job_id = created(store).job_id
    store.put_child(job_id, Child(sk="EFFECT#a", data={"at": 1}), None)
    later = [Child(sk=f"EFFECT#{name}", data={"at": 2, "why": None, "nested": {"tries": [1]}}) for name in "abc"]
    assert store.put_children(job_id, later, 1_900_000_000) == [False, True, True]
    assert [one.data["at"] for one in store.children(job_id, "EFFECT#")] == [1, 2, 2]
    assert store.child(job_id, "EFFECT#c") == later[2]
    assert store.put_children(job_id, later[:1], None) == [False]
    assert store.put_children(job_id, [], None) == []
    assert store.child(job_id, "EFFECT#a").data == {"at": 1}


def test_an_execution_survives_the_table(store):
    """Nested values come back as the values they were."""
    execution = make_execution("job_x", usage={"input_tokens": 5}, message_id="m", receive_count=2)
    job = created(store, status="processing", execution=execution)

    assert store.get(job.job_id).execution == execution
