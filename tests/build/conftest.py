"""Two real builds of the same sources, one after the other: for AWS, and for this machine."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.template import ROOT
from tools.localcloud import LocalCloud


@dataclass(frozen=True, slots=True)
class Builds:
    """Folders with the built layers."""

    aws: Path
    local: Path


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    """The build for AWS goes first, so that the local one has every chance to spoil it."""
    aws = tmp_path_factory.mktemp("aws-build")
    sam = ROOT / ".local" / "venvs" / "sam" / "bin" / "sam"
    environment = {**os.environ, "SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": "us-east-1"}
    done = subprocess.run(
        [sam, "build", "--build-dir", aws],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Builds(aws, LocalCloud(ROOT, "build").build())
