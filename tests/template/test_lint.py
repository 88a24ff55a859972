"""Does SAM itself find the template sound?"""

from __future__ import annotations

import os
import subprocess

from tests.support.template import ROOT


def test_sam_validates_and_lints_the_template():
    """The rules of CloudFormation and of cfn-lint hold."""
    sam = ROOT / ".local" / "venvs" / "sam" / "bin" / "sam"
    environment = {**os.environ, "SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": "us-east-1"}

    done = subprocess.run(
        [sam, "validate", "--lint"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
