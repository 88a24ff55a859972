"""Names of children: in key order they are in order of time, and each names incarnation, generation and attempt."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from breakwater.domain import records
from breakwater.domain.job import Execution, execution_id, execution_suffix
from breakwater.domain.records import ApiKey, Delivery, RouteState, execution_data, execution_of
from tests.support.builders import NOW, make_execution

ATTEMPTS = st.tuples(st.integers(NOW, NOW + 10**11), st.integers(1, 99), st.integers(1, 99))


@given(ATTEMPTS, ATTEMPTS)
def test_keys_of_executions_sort_as_they_happened(one, other):
    """Incarnation, generation, attempt; so a story is one query."""
    first, second = (records.execution_key(execution_id("job_a", *parts)) for parts in (one, other))

    assert (first < second) is (one < other)
    assert (first == second) is (one == other)


def test_every_child_of_an_attempt_names_it():
    """A late writer of another incarnation, generation or attempt can't hit the same key."""
    name = execution_id("job_a", NOW, 2, 3)
    suffix = f"{NOW}#0002#0003"

    assert execution_suffix(name) == suffix
    assert records.result_key(name) == f"RESULT#{suffix}"
    assert records.execution_key(name) == f"EXEC#{suffix}"
    assert records.late_key(name, "accepted") == f"LATE#{suffix}#accepted"
    assert records.generation_key(NOW, 2) == f"GEN#{NOW}#0002"
    assert records.input_key(NOW, "abc") == f"INPUT#{NOW}#abc"
    assert records.effect_child_key("usage#x") == "EFFECT#usage#x"
    assert records.audit_key(NOW, "retry") == f"AUDIT#{NOW}#retry"


def test_no_child_can_be_taken_for_the_meta_item():
    """Their sort keys never begin like META's."""
    name = execution_id("job_a", NOW, 1, 1)
    keys = [
        records.result_key(name), records.execution_key(name), records.late_key(name, "x"),
        records.generation_key(NOW, 1), records.input_key(NOW, "x"), records.effect_child_key("x"),
        records.audit_key(NOW, "x"),
    ]  # fmt: skip

    assert not [key for key in keys if key.startswith("META")]


def test_an_execution_reads_back_and_forgives_what_a_newer_version_wrote():
    """Unknown fields are ignored, missing ones are their defaults."""
    full = make_execution(usage={"input_tokens": 5}, provider_job_id="r", closed_at=NOW, outcome="completed")

    assert execution_of({**execution_data(full), "field_of_tomorrow": 1}) == full
    assert "provider_request_id" not in execution_data(full)
    assert isinstance(execution_of(execution_data(full)), Execution)


def test_a_delivery_is_named_by_its_endpoint_and_webhook_id():
    """Two senders may use the same id."""
    one = Delivery(endpoint="a", webhook_id="1", event_type="t", body_sha="x", received_at=NOW)

    assert (one.id, replace(one, endpoint="b").id) == ("a#1", "b#1")


def test_a_route_is_closed_until_its_time_and_not_at_it():
    """At T the first call may go."""
    route = RouteState(route_key="r", closed_until=NOW)

    assert route.closed(NOW - 1)
    assert not route.closed(NOW)
    assert not RouteState(route_key="r").closed(NOW)


def test_a_key_is_usable_until_revoked_or_expired():
    """Both are read, never waited for."""
    key = ApiKey(key_hash="h", key_id="k", owner_key="acme", scopes=frozenset())

    assert key.usable(NOW)
    assert not replace(key, revoked_at=NOW - 1).usable(NOW)
    assert not replace(key, expires_at=NOW).usable(NOW)
    assert replace(key, expires_at=NOW + 1).usable(NOW)
