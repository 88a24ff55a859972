"""How is the provider simulator started beside the emulator?"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import httpx

from tools.localcloud import ports
from tools.localcloud.errors import LocalCloudError, with_tail
from tools.localcloud.processes import Processes

NAME = "simulator"
PREFERRED_PORT = 4580
START_SECONDS = 30.0


class Simulator:
    """One simulator process with a data folder of its own."""

    def __init__(self, root: Path, folder: Path, processes: Processes, *, keep: bool) -> None:
        self._root, self._folder, self._processes, self._keep = root, folder, processes, keep
        self.log = folder / "logs" / "simulator.log"

    @property
    def url(self) -> str:
        """Where it listens."""
        if (running := self._processes.get(NAME)) is None:
            raise LocalCloudError("The provider simulator is not running: `make run` starts it.")
        return f"http://127.0.0.1:{running.port}"

    def start(self) -> None:
        """Start it, or leave a running one alone."""
        if self._processes.get(NAME) is not None:
            return
        self._processes.stop(NAME)
        last = self._folder / "simulator-port"
        known = int(last.read_text()) if last.is_file() else None
        port = ports.choose(known or (PREFERRED_PORT if self._keep else None))
        data = self._folder / "simulator"
        data.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tools.simulator", "--port", str(port), "--data-dir", str(data)]
        env = {"PATH": os.environ.get("PATH", ""), "HOME": str(self._folder / "home"), "PYTHONUNBUFFERED": "1"}
        self._processes.start(NAME, command, cwd=self._root, env=env, log=self.log, port=port)
        last.write_text(str(port))
        if not self._processes.wait_until(NAME, lambda: healthy(port), START_SECONDS):
            self._processes.stop(NAME)
            raise with_tail("The provider simulator did not start.", self.log)

    def stop(self) -> None:
        """End it."""
        self._processes.stop(NAME)


def healthy(port: int) -> bool:
    """Whether a simulator answers on this port."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/_sim/health", timeout=2, trust_env=False).is_success
    except httpx.HTTPError:
        return False
