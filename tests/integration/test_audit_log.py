"""Operators' actions in the log group: appended, one stream a day and writer."""

from __future__ import annotations

import json
import time
import uuid

import pytest

from breakwater.domain.audit import Entry, Stage
from breakwater.domain.errors import StoreUnavailable
from breakwater.store.audit import AuditLogGroup


def entry(**more):
    """One entry of now."""
    base = {
        "id": uuid.uuid4().hex[:12],
        "at": int(time.time() * 1000),
        "stage": Stage.DONE,
        "who": "ops/k1",
        "what": "close",
        "target": "job:job_a",
        "why": "nobody needs it",
    }
    return Entry(**{**base, **more})


def test_entries_are_appended_and_the_stream_is_made_on_the_way(dynamo_cloud):
    """The first line of a day makes its stream; the next ones follow."""
    client, group = dynamo_cloud.client("logs"), f"/breakwater/test-{uuid.uuid4().hex[:8]}/audit"
    client.create_log_group(logGroupName=group)
    lines = AuditLogGroup(client, group, "writer")
    first, second = entry(), entry()

    lines.write([first])
    lines.write([second])
    lines.write([])

    found = client.filter_log_events(logGroupName=group)["events"]
    assert [json.loads(one["message"]) for one in found] == [first.data(), second.data()]
    streams = client.describe_log_streams(logGroupName=group)["logStreams"]
    assert [one["logStreamName"].endswith("/writer") for one in streams] == [True]


def test_a_group_that_is_gone_is_told(dynamo_cloud):
    """The caller decides what a lost line means."""
    lines = AuditLogGroup(dynamo_cloud.client("logs"), "/breakwater/nowhere", "writer")

    with pytest.raises(StoreUnavailable):
        lines.write([entry()])
