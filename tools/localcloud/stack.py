"""How does the bundle get into the local cloud? With the real `sam build` and `sam deploy`.

A build goes into a folder named after a hash over every source, and is never changed afterwards: what was built once is
found again, and a test that uses one build is not disturbed by another run that makes the next. A deploy is skipped
where the same build stands already.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tools.localcloud import local_template
from tools.localcloud.emulator import REGION
from tools.localcloud.errors import LocalCloudError, with_tail
from tools.localcloud.progress import step

STACK = "breakwater-local"
KEPT_BUILDS = 5
BUILT_FROM = (
    "template.yaml",
    "samconfig.toml",
    "layers",
    "shared",
    "locks/uv.txt",
    "tools/localcloud/local_template.py",
)


class Stack:
    """The bundle, built once for this machine and deployed to one emulator."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root, self._folder = root, folder
        self._log = folder / "logs" / "sam.log"

    def build(self, *, quiet: bool = False) -> Path:
        """The folder with the built template; built now if these sources never were."""
        builds = self._root / ".local" / "build"
        folder = builds / _digest(self._root, BUILT_FROM, sys.version)[:16]
        with _locked(folder):
            done = folder / "done"
            if not done.exists():
                with step("sam build", quiet=quiet):
                    local_template.write(self._root, folder)
                    where: list[str | Path] = [
                        "--template-file",
                        folder / "template.yaml",
                        "--build-dir",
                        folder / "sam",
                    ]
                    self._sam("build", *where)
            done.touch()
        _forget_old(builds)
        return folder / "sam"

    def deploy(self, endpoint: str, emulator: str, parameters: Mapping[str, str], *, quiet: bool = False) -> None:
        """Build and deploy what changed. `emulator` tells one life of the emulator from another."""
        built = self.build(quiet=quiet)
        self._clean_functions()
        wanted = _digest(self._root, ("functions",), str(built), emulator, json.dumps(parameters, sort_keys=True))
        mark = self._folder / "deployed"
        if mark.is_file() and mark.read_text() == wanted:
            return
        with step("sam deploy", quiet=quiet):
            overrides = self._folder / "parameters.yaml"  # JSON is YAML, and SAM wants this ending
            overrides.write_text(json.dumps(parameters))
            where: list[str | Path] = [
                "--template-file",
                built / "template.yaml",
                "--parameter-overrides",
                f"file://{overrides}",
            ]
            self._sam("deploy", *where, endpoint=endpoint)
        mark.write_text(wanted)

    def _sam(self, command: str, *arguments: str | Path, endpoint: str = "http://127.0.0.1:9") -> None:
        sam = self._root / ".local" / "venvs" / "sam" / "bin" / "sam"
        if not sam.exists():
            raise LocalCloudError("The SAM CLI is not installed: run `make setup` first.")
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            done = subprocess.run(
                [sam, command, "--config-file", self._root / "samconfig.toml", "--config-env", "local", *arguments],
                cwd=self._root,
                env=self._environment(endpoint),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if done.returncode:
            raise with_tail(f"`sam {command}` failed.", self._log, lines=30)

    def _environment(self, endpoint: str) -> dict[str, str]:
        """Nothing of the user's own AWS settings: this must never reach a real account."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SAM_", "PYTHON"))}
        return kept | {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "NO_PROXY": "127.0.0.1,localhost",
            "SAM_CLI_TELEMETRY": "0",
            "SAM_CLI_POLL_DELAY": "0.3",
            "__SAM_CLI_APP_DIR": str(self._folder / "home"),
        }

    def _clean_functions(self) -> None:
        """Byte code beside a handler would be shipped, and would change the package without a change."""
        for leftover in (self._root / "functions").rglob("__pycache__"):
            shutil.rmtree(leftover)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _forget_old(builds: Path) -> None:
    """Keep the builds that were used last; a newer one may be in use by another run."""
    used = sorted(builds.glob("*/done"), key=lambda done: done.stat().st_mtime)
    for done in used[:-KEPT_BUILDS]:
        shutil.rmtree(done.parent, ignore_errors=True)


def _digest(root: Path, sources: tuple[str, ...], *more: str) -> str:
    digest = hashlib.sha256()
    for source in sources:
        top = root / source
        for file in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes() + b"\0")
    for text in more:
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()
