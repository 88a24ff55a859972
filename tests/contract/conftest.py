"""Both stores, behind one fixture: every test of this folder runs over the fake and over DynamoDB."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from breakwater.store.table import DynamoJobStore
from tests.fakes.store import FakeJobStore
from tests.support.cloud import create_table

_stamps = itertools.count(1)


@pytest.fixture(scope="session")
def jobs_table(dynamo_cloud: Any) -> str:
    """One table for the whole folder; each test uses ids of its own."""
    return create_table(dynamo_cloud.client("dynamodb"), "JobsTable")


@pytest.fixture(params=["fake", "dynamodb"])
def store(request: pytest.FixtureRequest) -> Any:
    """A job store."""
    if request.param == "fake":
        return FakeJobStore()
    cloud = request.getfixturevalue("dynamo_cloud")
    table = request.getfixturevalue("jobs_table")
    return DynamoJobStore(cloud.client("dynamodb"), table, lambda: f"stamp-{next(_stamps)}")
