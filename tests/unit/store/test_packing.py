"""META leaves out what the rest of it tells, and loses nothing by it."""

from __future__ import annotations

from hashlib import sha256
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as some

from breakwater.domain.errors import CorruptItem
from breakwater.domain.job import Execution, Job, Owed, SlotRef, execution_id
from breakwater.domain.records import input_key
from breakwater.store.items import job_attributes, job_of
from breakwater.store.wire import to_wire

BORN = 1_796_000_000_000
NAME = "job_th5o7h4554rry5ca4r37kxwnnahzeiqu"
UUID_TEXT = "3bc5866c-2f3f-42ec-99ee-25e035ce5065"
times = some.sampled_from([0, BORN, BORN + 1, BORN + 60_000])
names = some.sampled_from(["hook", "other", ""])
maybe = some.none() | some.sampled_from(["resp_1", "resp_2", ""])
texts = some.none() | some.text(max_size=12) | some.uuids().map(str) | some.just(UUID_TEXT.upper())
hashes = some.binary(min_size=32, max_size=32).map(bytes.hex) | some.text(max_size=70) | some.just("A" * 64)
small = some.integers(0, 3)

executions = some.builds(
    Execution,
    id=some.just(execution_id(NAME, BORN, 1, 1)) | some.text(max_size=20),
    generation=small,
    attempt=small,
    epoch=small,
    route_key=names,
    requested_model=names,
    opened_at=times,
    request_id=maybe,
    message_id=texts,
    lambda_request_id=texts,
    waited_from=some.none() | times,
    provider_job_id=maybe,
    possible_duplicate=some.booleans(),
    usage=some.none() | some.just({"input_tokens": 3}),
)
refs = some.sampled_from([None, "", "resp_1", "=", execution_id(NAME, BORN, 1, 1), "2 route:hook|3"])
owed = some.dictionaries(
    some.sampled_from([f"usage#{BORN:013d}#0001#0001", "notify#1", "bus_event#1", "release#x#y#z"]),
    some.builds(Owed, next_at=times, tries=small, ref=refs),
)
jobs = some.builds(
    Job,
    job_id=some.just(NAME),
    owner_key=some.just("acme"),
    workflow=some.just("summary"),
    idempotency_key=some.just("k"),
    fingerprint=hashes,
    created_at=some.just(BORN),
    input_ref=hashes | hashes.map(lambda digits: input_key(BORN, digits)) | some.just(input_key(BORN - 1, "a" * 64)),
    request_id=maybe,
    generation=small,
    attempt=small,
    round_started_at=times,
    ready_at=times,
    route_key=names,
    requested_model=names,
    lease_epoch=small,
    provider_job_id=maybe,
    possible_duplicate=some.booleans(),
    execution=some.none() | executions,
    owed=owed,
)


@given(jobs)
def test_every_job_is_read_as_it_was_written(job):
    """Whatever equals whatever, and whatever differs."""
    assert job_of(to_wire(job_attributes(job))) == job


def at_the_provider() -> Job:
    """A background job while its provider works: the largest META there is on the usual way."""
    digest = sha256(b"input").hexdigest()
    job = Job(
        job_id=NAME,
        owner_key="acme",
        workflow="support_summary",
        idempotency_key=UUID_TEXT,
        fingerprint=digest,
        created_at=BORN,
        input_ref=input_key(BORN, digest),
        request_id="VzqHxgIcoAMEPxw=",
        round_started_at=BORN,
        ready_at=BORN,
        attempt=1,
        generation=1,
        route_key="openai-sol",
        requested_model="gpt-5.6-sol",
        lease_epoch=1,
        provider_job_id="resp_8146428db72641d3bcf84e694a721844e9c76ad9e6e14275",
        slots=(SlotRef(scope="route:openai-sol", n=3),),
    )
    return job.with_(
        execution=Execution(
            id=execution_id(NAME, BORN, 1, 1),
            generation=1,
            attempt=1,
            epoch=1,
            route_key=job.route_key,
            requested_model=job.requested_model,
            opened_at=BORN + 40,
            request_id=job.request_id,
            message_id=UUID_TEXT,
            receive_count=1,
            lambda_request_id=UUID_TEXT,
            policy_hash="214a784a3d1e3433",
            code_version="1.4.0",
            waited_from=BORN,
            provider_job_id=job.provider_job_id,
        )
    )


def test_an_open_execution_says_only_what_its_job_does_not():
    """UUIDs and hashes as bytes; ids, births and repeats not at all."""
    item = job_attributes(at_the_provider())
    assert item["execution"] == {
        "opened_at": BORN + 40,
        "message_id": UUID(UUID_TEXT).bytes,
        "receive_count": 1,
        "lambda_request_id": UUID(UUID_TEXT).bytes,
        "policy_hash": "214a784a3d1e3433",
        "code_version": "1.4.0",
    }
    assert not {"job_id", "round_started_at", "ready_at"} & item.keys()
    assert isinstance(item["fingerprint"], bytes)
    assert isinstance(item["input_ref"], bytes)


def test_an_owed_effect_is_a_time_and_repeats_no_id():
    """True stands for the execution in the key."""
    usage = f"usage#{BORN:013d}#0001#0001"
    mine = Owed(next_at=BORN, ref=execution_id(NAME, BORN, 1, 1))
    job = at_the_provider().with_(owed={"bus_event#1": Owed(next_at=BORN), usage: mine})
    assert job_attributes(job)["owed"] == {"bus_event#1": BORN, usage: [BORN, 0, True]}


def test_what_differs_from_the_job_is_written_even_if_it_is_nothing():
    """An execution that never heard an id of the provider, in a job that did."""
    job = at_the_provider()
    unheard = job.with_(execution=Execution(**{**as_fields(job.execution), "provider_job_id": None}))
    assert job_attributes(unheard)["execution"]["provider_job_id"] is None
    assert job_of(to_wire(job_attributes(unheard))).execution.provider_job_id is None


def as_fields(execution: Execution | None) -> dict[str, object]:
    """An execution as keywords."""
    assert execution is not None
    return {name: getattr(execution, name) for name in Execution.__dataclass_fields__}


@pytest.mark.parametrize("broken", [{"created_at": None}, {"pk": 5}, {"execution": {"nothing": 1}}, {"execution": 7}])
def test_what_does_not_read_is_named(broken):
    """Never half a job."""
    item = {**job_attributes(at_the_provider()), **broken}
    with pytest.raises(CorruptItem):
        job_of(to_wire({name: value for name, value in item.items() if value is not None}))
