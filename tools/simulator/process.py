"""How does a test get a simulator of its own, and get rid of it again?

The simulator holds on to its starter through standard input: if the starter dies, however, it stops.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from .address import announced, withdraw
from .client import SimulatorClient

_ROOT = Path(__file__).resolve().parents[2]
_START_SECONDS = 15.0
_STOP_SECONDS = 5.0


class StartError(Exception):
    """The simulator did not come up; the message holds what it said."""


@dataclass(frozen=True, slots=True)
class RunningSimulator:
    """A simulator in a process of its own; `stop` ends it, as does leaving a with statement."""

    base_url: str
    client: SimulatorClient
    process: subprocess.Popen[bytes]

    @property
    def openai_url(self) -> str:
        """Base URL for OpenAI clients."""
        return f"{self.base_url}/openai/v1"

    @property
    def anthropic_url(self) -> str:
        """Base URL for Anthropic clients."""
        return f"{self.base_url}/anthropic"

    @property
    def gemini_url(self) -> str:
        """Base URL for Gemini clients."""
        return f"{self.base_url}/gemini"

    @property
    def gateway_url(self) -> str:
        """Base URL for clients of the gateway."""
        return f"{self.base_url}/gateway/v1"

    @property
    def flatkey_url(self) -> str:
        """Base URL for clients of the second gateway."""
        return f"{self.base_url}/flatkey/v1"

    def stop(self) -> None:
        """End the process and wait until it is gone; a second time does nothing."""
        self.client.close()
        _end(self.process, _STOP_SECONDS)

    def __enter__(self) -> Self:
        """Use it in a with statement."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop it at the end."""
        self.stop()


def start(
    data_dir: Path,
    port: int = 0,
    *,
    background_delay_ms: int = 300,
    environment: Mapping[str, str] | None = None,
) -> RunningSimulator:
    """Start a simulator and return once it answers; its output goes to `simulator.log`."""
    data_dir.mkdir(parents=True, exist_ok=True)
    withdraw(data_dir)
    command = [sys.executable, "-m", "tools.simulator", "--follow-stdin"]
    command += ["--port", str(port), "--data-dir", str(data_dir)]
    command += ["--background-delay-ms", str(background_delay_ms)]
    with (data_dir / "simulator.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            cwd=_ROOT,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        client = SimulatorClient(_address(data_dir, process))
        client.health()
    except BaseException:
        _end(process, patience=0)
        raise
    return RunningSimulator(client.base_url, client, process)


def _end(process: subprocess.Popen[bytes], patience: float) -> None:
    if process.stdin:
        process.stdin.close()
    process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _address(data_dir: Path, process: subprocess.Popen[bytes]) -> str:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        base_url = announced(data_dir)
        if base_url:
            return base_url
        time.sleep(0.01)
    said = (data_dir / "simulator.log").read_text(encoding="utf-8")[-2000:]
    raise StartError(f"the simulator did not come up:\n{said}")
