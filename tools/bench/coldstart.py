"""How long does each function need before it can work? The real Lambda runtime around it, without Docker.

The SAM CLI ships AWS's own Runtime Interface Emulator. It starts `python -m awslambdaric app.handler` with nothing but
the function and its built layers on the path, as in Lambda, and reports the duration of INIT (everything until the
handler is imported) and of the first invocation (clients built, policies read; the event asks for nothing that needs a
network). The byte code is the layers' own; none is written.
"""

from __future__ import annotations

import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tools.bench.template import Function

ROOT = Path(__file__).resolve().parents[2]
_VENVS = ROOT / ".local" / "venvs"
_REPORT = re.compile(
    r"INIT RTDONE\(status: success\).*?INIT REPORT\(durationMs: ([\d.]+)\)"
    r".*?INVOKE RTDONE\(status: success,.*?duration: ([\d.]+)ms\)",
    re.DOTALL,
)
NAIVE = "naive"
_START_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Start:
    """One start in milliseconds."""

    init: float
    first: float


@dataclass(frozen=True, slots=True)
class Starts:
    """All starts of one function."""

    name: str
    runs: tuple[Start, ...]

    @property
    def init(self) -> float:
        """The median of INIT."""
        return statistics.median(one.init for one in self.runs)

    @property
    def first(self) -> float:
        """The median of INIT and first invocation together: what the first caller waits for."""
        return statistics.median(one.init + one.first for one in self.runs)


def measure(functions: Sequence[Function], build: Path, runs: int) -> dict[str, Starts]:
    """Start every function `runs` times, in turns, so that a busy moment of the machine meets all alike."""
    with tempfile.TemporaryDirectory() as scratch:
        client = _runtime_client(Path(scratch))
        wanted = [Function.naive(ROOT / "tools" / "bench" / "naive"), *functions]
        found: dict[str, list[Start]] = {one.name: [] for one in wanted}
        for n in range(runs + 1):
            for one in wanted:
                start = start_once(one, build, client)
                if n:  # the first round fills the file cache
                    found[one.name].append(start)
    return {name: Starts(name, tuple(runs_)) for name, runs_ in found.items()}


def start_once(function: Function, build: Path, client: Path) -> Start:
    """One start of one function in a process of its own."""
    address, api = _free_port(), _free_port()
    rie = next(_VENVS.glob("sam/lib/python3*/site-packages/samcli/local/rapid/aws-lambda-rie-x86_64"))
    layers = [str(build / layer / "python") for layer in function.layers]
    command = [str(rie), "--runtime-interface-emulator-address", f"127.0.0.1:{address}"]
    command += ["--runtime-api-address", f"127.0.0.1:{api}", sys.executable, "-S", "-B", "-m", "awslambdaric"]
    with tempfile.NamedTemporaryFile("a") as log:
        process = subprocess.Popen(
            [*command, "app.handler"],
            cwd=function.code,
            env=_environment(function, [str(function.code), *layers, str(client)]),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _invoke(address, function.event)
        finally:
            os.killpg(process.pid, 9)
            process.wait()
        text = Path(log.name).read_text()
    found = _REPORT.search(text)
    if found is None:
        raise RuntimeError(f"{function.name} did not start:\n{text[-2000:]}")
    return Start(float(found[1]), float(found[2]))


def _invoke(port: int, event: Mapping[str, Any]) -> None:
    url = f"http://127.0.0.1:{port}/2015-03-31/functions/function/invocations"
    until = time.monotonic() + _START_SECONDS
    with httpx.Client(trust_env=False, timeout=_START_SECONDS) as client:
        while True:
            try:
                client.post(url, content=json.dumps(event))
            except httpx.ConnectError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)
            else:
                return


def _runtime_client(folder: Path) -> Path:
    """A folder with AWS's runtime client and nothing else: in Lambda it is part of the runtime."""
    packages = next((_VENVS / "bench" / "lib").glob("python3*/site-packages"))
    for pattern in ("awslambdaric", "runtime_client*", "snapshot_restore_py*", "simplejson"):
        for found in packages.glob(pattern):
            (folder / found.name).symlink_to(found)
    return folder


def _environment(function: Function, path: Sequence[str]) -> dict[str, str]:
    return {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": os.pathsep.join(path),
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_LAMBDA_FUNCTION_TIMEOUT": "60",
        **function.variables,
    }


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
