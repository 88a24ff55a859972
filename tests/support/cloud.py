"""How do tests get an AWS to talk to? Fixtures over the local cloud, loaded by tests/conftest.py.

- `dynamo_cloud`: an emulator with nothing deployed, one for each test process. For contract and integration tests.
- `tables`: fresh, empty tables in it, with the keys and indexes of template.yaml.
- `deployed_stack`: emulator, simulator and the real bundle, built and deployed; one for the whole run.

Each run has folders of its own under `.local/cloud`, so that several runs do not meet; what a killed run left behind
is ended by the next.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import template

if TYPE_CHECKING:
    from tools.localcloud import LocalCloud

ROOT = template.ROOT
CLOUDS = ROOT / ".local" / "cloud"


@dataclass(frozen=True, slots=True)
class Tables:
    """Names of two fresh tables and a bucket, and a way to reach the emulator they are in."""

    jobs: str
    control: str
    bucket: str
    cloud: LocalCloud

    def client(self, service: str) -> Any:
        """A boto3 client with every right."""
        return self.cloud.client(service)


@pytest.fixture(scope="session")
def dynamo_cloud() -> Iterator[LocalCloud]:
    """An emulator without any stack."""
    cloud = _cloud(f"test-{_run()}-{os.environ.get('PYTEST_XDIST_WORKER', 'main')}")
    cloud.start()
    yield cloud
    _stop(cloud)


@pytest.fixture
def tables(dynamo_cloud: LocalCloud) -> Tables:
    """Empty tables and an empty bucket, as the template describes them."""
    client = dynamo_cloud.client("dynamodb")
    bucket = f"payloads-{uuid.uuid4().hex[:12]}"
    dynamo_cloud.client("s3").create_bucket(Bucket=bucket)
    return Tables(create_table(client, "JobsTable"), create_table(client, "ControlTable"), bucket, dynamo_cloud)


@pytest.fixture(scope="session")
def deployed_stack() -> Iterator[LocalCloud]:
    """The bundle as `sam deploy` deploys it, seeded, with the simulator as every provider."""
    from tools.localcloud.seed import stand_up  # noqa: PLC0415 - only these tests need it

    cloud = _cloud(f"test-{_run()}-stack")
    with _users(cloud) as users:
        if not users:
            try:
                stand_up(cloud)
            except BaseException:
                cloud.stop()
                raise
        users.append(os.getpid())
    yield cloud
    with _users(cloud) as users:
        users.remove(os.getpid())
        if not users:
            _stop(cloud)


def create_table(client: Any, logical_id: str) -> str:
    """Create a table under a name of its own, from its definition in the template."""
    wanted = template.resources("AWS::DynamoDB::Table")[logical_id]
    copied = ("AttributeDefinitions", "KeySchema", "BillingMode", "GlobalSecondaryIndexes")
    name = f"{logical_id}-{uuid.uuid4().hex[:12]}"
    client.create_table(TableName=name, **{key: wanted[key] for key in copied if key in wanted})
    return name


def _run() -> int:
    """The process that stands for this run: with xdist, the one that started the workers."""
    return os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()


def _cloud(name: str) -> LocalCloud:
    from tools.localcloud import LocalCloud  # noqa: PLC0415 - unit tests start faster without it

    _end_what_killed_runs_left()
    return LocalCloud(ROOT, name)


def _end_what_killed_runs_left() -> None:
    from tools.localcloud import LocalCloud  # noqa: PLC0415 - as above

    for folder in CLOUDS.glob("test-*-*"):
        run = int(folder.name.split("-")[1])
        if not _alive(run):
            LocalCloud(ROOT, folder.name).stop()
            shutil.rmtree(folder, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _stop(cloud: LocalCloud) -> None:
    """End the processes and remove the data; the logs stay until the next run."""
    cloud.stop()
    for name in ("home", "state", "simulator"):
        shutil.rmtree(cloud.folder / name, ignore_errors=True)


@contextlib.contextmanager
def _users(cloud: LocalCloud) -> Iterator[list[int]]:
    """The processes that use a shared cloud; whoever looks at the list keeps the others waiting."""
    cloud.folder.mkdir(parents=True, exist_ok=True)
    with (cloud.folder / "users.json").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        users: list[int] = json.loads(file.read() or "[]")
        yield users
        file.truncate(0)
        file.write(json.dumps(users))
