"""A replay of many over the real tables: five hundred dead jobs are looked at within one request of the gateway."""

from __future__ import annotations

import time
import uuid

from breakwater.domain.records import Child
from breakwater.domain.replay import Filter
from breakwater.domain.replay_batch import BatchStatus, Outcome
from breakwater.store.table import DynamoJobStore
from breakwater.usecases.batch import create, tick
from breakwater.usecases.preview import preview_many
from tests.support.builders import make_job
from tests.support.dead import batch_terms
from tests.support.world import World


def dead_in(world, store, count):
    """Dead jobs as storage has them."""
    run = uuid.uuid4().hex[:8]
    for number in range(count):
        job = make_job("dead_letter", job_id=f"job_{run}{number:04d}", ttl=None, completed_at=world.clock.now())
        store.create(job, world.clock.now())
        store.put_child(job.job_id, Child(sk=job.input_ref, body='{"messages":[{"role":"user","content":"hi"}]}'), None)


def test_a_preview_of_five_hundred_fits_into_a_request(tables):
    """29 s are the gateway's; the reads run side by side."""
    store = DynamoJobStore(tables.client("dynamodb"), tables.jobs, lambda: uuid.uuid4().hex)
    world = World(store=store)
    dead_in(world, store, 500)

    begun = time.monotonic()
    found = preview_many(world.deps, Filter(workflow="sync"), "same", 500)

    assert (found["jobs"], found["would_replay"]) == (500, 500)
    assert time.monotonic() - begun < 25


def test_a_batch_runs_over_the_real_tables(tables):
    """Frozen, opened, counted and done, with the conditions of DynamoDB."""
    store = DynamoJobStore(tables.client("dynamodb"), tables.jobs, lambda: uuid.uuid4().hex)
    world = World(store=store)
    dead_in(world, store, 12)

    create(world.deps, batch_terms(), "ops/k1", "ops")
    for _ in range(20):
        world.pump(2_000)
        tick(world.deps, "batch-1")
        world.clock.advance(15_000)
        if store.batch("batch-1").status is not BatchStatus.RUNNING:
            break

    batch = store.batch("batch-1")
    assert (batch.status, batch.count(Outcome.SUCCEEDED)) == (BatchStatus.DONE, 12)
    assert len(world.provider.calls) == 12
