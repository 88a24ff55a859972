"""How are background programs started so that none is ever left behind?

Each gets a process group of its own, and its number is written down before anything else happens, so that another
process, or the next run after a crash, can end the whole group. A number alone could be somebody else's by then: the
start time stands beside it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.localcloud.errors import LocalCloudError

GRACE_SECONDS = 20.0  # a loaded machine needs some to write down the state
# What this process started, so that it can be reaped; a program may well outlive the object that started it.
_CHILDREN: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True, slots=True)
class Running:
    """A program in the background. Its pid is also the number of its process group."""

    pid: int
    started: str
    port: int | None = None

    def alive(self) -> bool:
        """Whether it still runs (and is not another program that got its number)."""
        return bool(self.started) and _started(self.pid) == self.started

    def members(self) -> list[int]:
        """Itself and what it started, as far as they still run."""
        return _group_members(self.pid) if self.alive() else []


class Processes:
    """The background programs of one local cloud, by name, kept in a file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        log: Path,
        port: int | None = None,
    ) -> Running:
        """Start a program whose output goes to `log`."""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as out:
            child = subprocess.Popen(  # ends in `stop`
                command,
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        running = Running(child.pid, _started(child.pid), port)
        _CHILDREN[child.pid] = child
        self._write({**self.all(), name: running})
        return running

    def get(self, name: str) -> Running | None:
        """The named program, if it runs."""
        _reap()
        running = self.all().get(name)
        return running if running is not None and running.alive() else None

    def all(self) -> dict[str, Running]:
        """Every program that was started and not yet stopped."""
        if not self._file.is_file():
            return {}
        return {name: Running(**fields) for name, fields in json.loads(self._file.read_text()).items()}

    def stop(self, name: str, *, gently: bool = True) -> None:
        """End the program and everything it started; gently first, so that it can write down what it keeps."""
        running = self.all().get(name)
        if running is None:
            return
        if self._ours(running):
            if gently:
                self._signal(running, signal.SIGTERM)
            if not gently or not self._wait_until_gone(running):
                self._signal(running, signal.SIGKILL)
                if not self._wait_until_gone(running):
                    raise LocalCloudError(f"{name} (process group {running.pid}) does not end, even when killed")
        self._write({other: kept for other, kept in self.all().items() if other != name})

    def wait_until(self, name: str, ready: Callable[[], bool], seconds: float) -> bool:
        """Wait until the program answers; False as soon as it ended or the time is over."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if ready():
                return True
            if self.get(name) is None:
                return False
            time.sleep(0.05)
        return False

    def _ours(self, running: Running) -> bool:
        """The leader is the one we started, or it is gone and only its group may be left."""
        _reap()
        return running.alive() or not _started(running.pid)

    def _wait_until_gone(self, running: Running) -> bool:
        until = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < until:
            _reap()
            if not _group_members(running.pid):
                return True
            time.sleep(0.05)
        return False

    def _signal(self, running: Running, number: signal.Signals) -> None:
        try:
            os.killpg(running.pid, number)
        except ProcessLookupError:
            return

    def _write(self, programs: Mapping[str, Running]) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._file.with_suffix(".partial")
        partial.write_text(json.dumps({name: asdict(one) for name, one in programs.items()}, indent=2))
        partial.replace(self._file)


def _reap() -> None:
    for pid, child in list(_CHILDREN.items()):
        if child.poll() is not None:
            del _CHILDREN[pid]


def _started(pid: int) -> str:
    """When the process started, as text; empty when there is none (or only its ashes)."""
    fields = _stat(pid)
    if fields is not None:
        return "" if fields[0] == "Z" else fields[19]
    if Path("/proc/self/stat").exists():
        return ""
    shown = subprocess.run(["ps", "-o", "state=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, when = shown.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else when.strip()


def _group_members(group: int) -> list[int]:
    """Processes of the group that still run."""
    if Path("/proc/self/stat").exists():
        found = []
        for folder in Path("/proc").iterdir():
            fields = _stat(int(folder.name)) if folder.name.isdigit() else None
            if fields is not None and fields[0] != "Z" and fields[2] == str(group):
                found.append(int(folder.name))
        return found
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return []
    return [group]


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat after the name: state, parent, group, … start time is number 19."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
