"""What every test gets: no accidental cloud, and a local one on request."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.cloud import deployed_stack, dynamo_cloud, tables

__all__ = ["deployed_stack", "dynamo_cloud", "tables"]

UNIT = Path(__file__).parent / "unit"

# The same examples every time, however busy the machine is; `--hypothesis-profile=default` looks for new ones.
settings.register_profile("repeatable", deadline=None, derandomize=True, database=None, print_blob=True)
settings.load_profile("repeatable")

# Nothing that a developer has set may reach a test: no real account, no real key, no proxy.
for name in list(os.environ):
    if (
        name.startswith("AWS_")
        or name.endswith("_API_KEY")
        or name.lower() in {"http_proxy", "https_proxy", "all_proxy"}
    ):
        del os.environ[name]
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"


@pytest.fixture(autouse=True)
def _unit_tests_stay_inside(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.path.is_relative_to(UNIT):

        def refuse(_socket: socket.socket, address: object) -> None:
            raise AssertionError(f"a unit test connects to {address}")

        monkeypatch.setattr(socket.socket, "connect", refuse)
