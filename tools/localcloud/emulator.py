"""How is MiniStack, the AWS emulator, started so that functions see nothing of this machine's environment?"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import httpx

from tools.localcloud import ports
from tools.localcloud.errors import LocalCloudError, with_tail
from tools.localcloud.processes import Processes, Running

NAME = "emulator"
PREFERRED_PORT = 4566
REGION = "us-east-1"
START_SECONDS = 60.0
# Functions run as children of the emulator and inherit what it has: nothing but this. The certificate file matters
# where a company's proxy stands between a laptop and a real provider; how long it keeps idle workers is the emulator's.
INHERITED = ("SSL_CERT_FILE", "SSL_CERT_DIR", "LANG", "LC_ALL", "LAMBDA_WARM_TTL_SECONDS")


class Emulator:
    """One MiniStack process with a folder of its own."""

    def __init__(self, root: Path, folder: Path, processes: Processes, *, keep: bool) -> None:
        self._root, self._folder, self._processes, self._keep = root, folder, processes, keep
        self.log = folder / "logs" / "emulator.log"

    @property
    def running(self) -> Running | None:
        """The process, if it runs."""
        return self._processes.get(NAME)

    @property
    def processes(self) -> int:
        """How many it consists of by now: itself, and one for each function instance it keeps."""
        running = self.running
        return len(running.members()) if running is not None else 0

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        if (running := self.running) is None:
            raise LocalCloudError("The local cloud is not running: `make run` starts it.")
        return f"http://127.0.0.1:{running.port}"

    def start(self, variable: str | None = None) -> None:
        """Start it, or leave a running one alone. What it knew before is loaded again if `keep`."""
        if self.running is not None:
            return
        self._processes.stop(NAME)  # a dead leader may have left children
        python = self._root / ".local" / "venvs" / "cloud" / "bin" / "python"
        if not python.exists():
            raise LocalCloudError("The emulator is not installed: run `make setup` first.")
        port = self._port(variable)
        self._make_folders(wipe=not self._keep)
        self._processes.start(
            NAME,
            [str(python), "-m", "ministack"],
            cwd=self._folder,
            env=self._environment(port),
            log=self.log,
            port=port,
        )
        (self._folder / "port").write_text(str(port))
        if not self._processes.wait_until(NAME, lambda: healthy(port), START_SECONDS):
            self._processes.stop(NAME)
            raise with_tail("The emulator did not start.", self.log)

    def stop(self) -> None:
        """End it and every function it runs; one that keeps nothing need not write anything down."""
        self._processes.stop(NAME, gently=self._keep)
        _remove(self._folder / "tmp")

    def reset(self) -> None:
        """Forget everything."""
        httpx.post(f"{self.endpoint}/_ministack/reset", timeout=30, trust_env=False).raise_for_status()

    def _port(self, variable: str | None) -> int:
        last = self._folder / "port"
        known = int(last.read_text()) if last.is_file() else None
        port = ports.choose(known or (PREFERRED_PORT if self._keep else None), variable)
        if known and port != known:
            # Queue URLs, kept in the state, name the old port.
            shutil.rmtree(self._folder / "state", ignore_errors=True)
        return port

    def _make_folders(self, *, wipe: bool) -> None:
        _remove(self._folder / "tmp")
        if wipe:
            shutil.rmtree(self._folder / "state", ignore_errors=True)
            self.log.unlink(missing_ok=True)
        for name in ("tmp", "home", "state/s3", "logs"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)

    def _environment(self, port: int) -> dict[str, str]:
        own = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self._folder / "home"),
            "TMPDIR": str(self._folder / "tmp"),
            "PYTHONNOUSERSITE": "1",
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(port),
            "IOT_MTLS_ENABLED": "0",
            "AUTH": "true",
            "MINISTACK_REGION": REGION,
        }
        if self._keep:
            state = self._folder / "state"
            own |= {"PERSIST_STATE": "1", "STATE_DIR": str(state), "S3_PERSIST": "1", "S3_DATA_DIR": str(state / "s3")}
        return own | {name: os.environ[name] for name in INHERITED if name in os.environ}


def _remove(folder: Path) -> None:
    """Each function that ran has its layers unpacked there: far too many files to delete one by one from Python."""
    subprocess.run(["rm", "-rf", "--", folder], check=False)


def healthy(port: int) -> bool:
    """Whether an emulator answers on this port."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/_ministack/health", timeout=2, trust_env=False).is_success
    except httpx.HTTPError:
        return False
