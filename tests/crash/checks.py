"""What must be true of every job when everything has come to rest, whatever died on the way."""

from __future__ import annotations

from collections import Counter
from typing import Any

from breakwater.domain.job import Job
from breakwater.domain.records import effect_child_key, execution_of
from breakwater.domain.slots import Standing, standing
from breakwater.domain.states import Status
from breakwater.store.items import child_of, job_of
from breakwater.store.wire import from_wire
from breakwater.usecases.effects import effect_id
from tests.support.world import World


def jobs_of(world: World) -> list[Job]:
    """Every job in the store."""
    return [job_of(item) for (pk, sk), item in world.store.items.items() if sk == "META" and pk.startswith("JOB#")]


def children(world: World, job: Job, prefix: str) -> list[Any]:
    """A job's children of one kind, in order."""
    keys = sorted(key for key in world.store.items if key[0] == f"JOB#{job.job_id}" and key[1].startswith(prefix))
    return [child_of(world.store.items[key]) for key in keys]


def at_rest(world: World) -> None:
    """Nothing is left behind: no lease, slot, debt, due item, message, undrained crash or open delivery."""
    assert not any(world.queues.sent.values())
    assert not any(world.queues.dlq.values())
    for slot in world.store.taken.values():  # a number taken for a claim that never came is free again by its time
        assert standing(world.store.get(slot.job_id), slot) is not Standing.HELD, "a slot is still held"
        assert slot.verify_at <= world.clock.now() + 65_000  # taken by a clock that may be 5 s ahead
    for (pk, sk), item in world.store.items.items():
        if sk == "META":
            assert "due_at" not in item, f"{pk} is still due"
    for job in jobs_of(world):
        assert job.final or job.in_review, (job.status, job.reason)
        assert (job.locked_until, job.execution, job.slots, job.owed) == (None, None, (), {})
        assert (job.due_at is None) is job.final
        assert (job.waiting_scope, job.poll_at, job.provider_deadline_at) == (None, None, None)


def history(world: World, job: Job) -> None:
    """Every attempt ever made is in the story, once, with its route, policy and message."""
    kept = {child.sk.split("#", 1)[1] for prefix in ("EXEC#", "RESULT#") for child in children(world, job, prefix)}
    latest = {sk for sk in kept if sk.startswith(f"{job.created_at:013d}#{job.generation:04d}#")}
    assert len(latest) == job.attempt, (job.attempt, sorted(kept))
    for child in [*children(world, job, "EXEC#"), *children(world, job, "RESULT#")]:
        execution = execution_of(child.data["execution"])
        assert execution.closed_at is not None
        assert execution.outcome
        assert execution.policy_hash
        assert execution.id.startswith(f"{job.job_id}.{job.created_at}.")


def one_result(world: World, job: Job) -> None:
    """A success names exactly one result that is there; nothing else pretends to be one."""
    if job.status is Status.SUCCEEDED:
        assert job.result_ref is not None
        assert [one.sk for one in children(world, job, "RESULT#")].count(job.result_ref) + [
            one.sk for one in children(world, job, "EXEC#")
        ].count(job.result_ref) == 1


def money(world: World, job: Job) -> None:
    """Each paid execution is one line of the ledger, and META's sum is the sum of the lines."""
    lines = [line for line in world.store.lines.values() if line["job_id"] == job.job_id]
    assert all(count == 1 for count in Counter(line["execution_id"] for line in lines).values())
    assert given_up(world, job, "usage#") or job.cost_micros == sum(line["cost_micros"] for line in lines)
    paid = {child.data["execution"]["id"] for child in children(world, job, "RESULT#")}
    if not given_up(world, job, "usage#"):
        assert paid <= {line["execution_id"] for line in lines}, "a paid result is not in the books"


def given_up(world: World, job: Job, prefix: str) -> set[str]:
    """Debts whose delivery crashed again and again, and that say so."""
    return {one.sk for one in children(world, job, f"EFFECT#{prefix}") if one.data.get("given_up")}


def told(world: World, job: Job) -> None:
    """Every effect that was owed has one record, and each delivery of it bore one stable id."""
    records = {child.sk for child in children(world, job, "EFFECT#")}
    ended = job.generation if job.final else job.generation - 1
    for generation in range(1, ended + 1):
        key = f"bus_event#{generation}"
        assert effect_child_key(key) in records
        assert given_up(world, job, key) or any(event == effect_id(job, key) for event, _, _ in world.bus.events)
        if job.callback_url is not None:
            assert effect_child_key(f"notify#{generation}") in records
    notifier = getattr(world, "notifier", None)
    heard = {one.webhook_id for one in notifier.sent if job.job_id in one.webhook_id} if notifier else set()
    assert heard <= {effect_id(job, f"notify#{generation}") for generation in range(1, ended + 1)}
    mine = {event for event, _, detail in world.bus.events if detail["job_id"] == job.job_id}
    assert mine <= {effect_id(job, f"bus_event#{generation}") for generation in range(1, ended + 1)}
    for event in mine:
        kinds = {kind for name, kind, _ in world.bus.events if name == event}
        assert len(kinds) == 1, f"one event told two stories: {kinds}"
    dead = {one["reference_id"] for one in world.queues.dead if one.get("job_id") == job.job_id}
    assert all(effect_child_key(f"dead_letter#{reference.rsplit('.', 1)[1]}") in records for reference in dead)
    if job.status is Status.DEAD_LETTER and not given_up(world, job, "dead_letter#"):
        assert effect_id(job, f"dead_letter#{job.generation}") in dead


def calls_for(world: World, job: Job) -> int:
    """How many times the provider was asked to work on a job."""
    return sum(call.job_id == job.job_id for call in world.provider.calls)


def ledger(world: World, job: Job) -> None:
    """Every call to the provider is an execution that is on record, and none was sent twice."""
    records = {child.sk.split("#", 1)[1] for kind in ("EXEC#", "RESULT#") for child in children(world, job, kind)}
    assert calls_for(world, job) <= len(records)
    assert job.attempt <= job.max_attempts
    ids = [call.execution_id for call in world.provider.calls if call.job_id == job.job_id]
    assert len(set(ids)) == len(ids), "one execution was sent twice"


def nobody_is_left_running(world: World) -> None:
    """Provider jobs of settled work are over: finished or stopped."""
    for name, known in world.provider.jobs.items():
        assert known["outcome"] is not None, f"{name} still runs"


def everything(world: World) -> None:
    """All of the above, for every job."""
    at_rest(world)
    nobody_is_left_running(world)
    for job in jobs_of(world):
        history(world, job)
        one_result(world, job)
        money(world, job)
        told(world, job)
        ledger(world, job)
        plain = from_wire(world.store.items[f"JOB#{job.job_id}", "META"])
        assert job.owner_key == plain["owner_shard"], "half an item was revived"
