"""What is a local cloud? An emulator, perhaps a simulator and a metrics pump, one stack, and one folder.

Everything of it is under `.local/cloud/<name>`: logs, temporary files, kept state, process numbers. Several run side
by side under different names.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from tools.localcloud.emulator import REGION, Emulator
from tools.localcloud.errors import LocalCloudError
from tools.localcloud.processes import Processes
from tools.localcloud.progress import step
from tools.localcloud.simulator import Simulator
from tools.localcloud.stack import STACK, Stack

PUMP = "metrics pump"


class LocalCloud:
    """One local cloud. `keep` makes its data outlive a stop, and prefers the well-known ports."""

    def __init__(self, root: Path, name: str, *, keep: bool = False, quiet: bool = True) -> None:
        self.root, self.folder, self._quiet = root, root / ".local" / "cloud" / name, quiet
        self.logs = self.folder / "logs"
        self._processes = Processes(self.folder / "processes.json")
        self.emulator = Emulator(root, self.folder, self._processes, keep=keep)
        self.simulator = Simulator(root, self.folder, self._processes, keep=keep)
        self._stack = Stack(root, self.folder)
        self._outputs: dict[str, str] = {}
        self._clients: dict[tuple[str, str, str], Any] = {}

    @property
    def endpoint(self) -> str:
        """Where the AWS services answer."""
        return self.emulator.endpoint

    @property
    def running(self) -> bool:
        """Whether the emulator runs."""
        return self.emulator.running is not None

    def start(self, *, simulator: bool = False, port_variable: str | None = None) -> None:
        """Start what does not run yet."""
        with step("local cloud", quiet=self._quiet):
            self.emulator.start(port_variable)
        if simulator:
            with step("provider simulator", quiet=self._quiet):
                self.simulator.start()

    def deploy(self, **parameters: str) -> None:
        """Run the real `sam build` and `sam deploy`; what did not change is left as it stands."""
        running = self.emulator.running
        if running is None:
            raise LocalCloudError("Start the local cloud before deploying to it.")
        life = f"{running.pid} {running.started}"
        wanted = {"Stage": "local", "LogRetentionDays": "7", "CallbackLoopbackHosts": "127.0.0.1"} | parameters
        self._stack.deploy(self.endpoint, life, wanted, quiet=self._quiet)
        self._outputs = {}

    def build(self) -> Path:
        """Run the real `sam build` if a source changed; returns the folder of the build."""
        return self._stack.build(quiet=self._quiet)

    def start_pump(self) -> None:
        """Feed metrics and queue figures to the emulator's alarms in the background."""
        if self._processes.get(PUMP) is None:
            self._processes.stop(PUMP)
            command = [sys.executable, "-m", "tools.localcloud.pump", self.endpoint]
            env = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder / "home"), "PYTHONUNBUFFERED": "1"}
            self._processes.start(PUMP, command, cwd=self.root, env=env, log=self.logs / "pump.log")

    def stop(self) -> None:
        """End every process of this cloud; nothing is left behind."""
        while self._clients:
            self._clients.popitem()[1].close()
        for name in reversed(self._processes.all()):
            if name != "emulator":
                self._processes.stop(name)
        self.emulator.stop()

    def client(self, service: str, account: str = "test") -> Any:
        """A boto3 client with every right, kept; twelve digits as `account` are an isolated account of their own."""
        key = (self.endpoint, service, account)
        if key not in self._clients:
            self._clients[key] = client(*key)
        return self._clients[key]

    def outputs(self) -> Mapping[str, str]:
        """What the deployed template says about itself."""
        if not self._outputs:
            try:
                stacks = self.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
            except ClientError as error:
                raise LocalCloudError("Nothing is deployed in the local cloud yet: `make run` does it.") from error
            self._outputs = {one["OutputKey"]: one["OutputValue"] for one in stacks[0].get("Outputs", [])}
        return self._outputs

    @property
    def api_url(self) -> str:
        """Base of the deployed HTTP API, up to and without `/v1`.

        By path, since the host name that AWS would use does not resolve everywhere.
        """
        return f"{self.endpoint}/_aws/execute-api/{self.outputs()['ApiId']}/$default"

    def status(self) -> dict[str, int | None]:
        """Port of every program that runs."""
        return {name: one.port for name, one in self._processes.all().items() if one.alive()}

    def remember(self, **facts: str) -> None:
        """Keep what a later command needs (such as the API key that was made)."""
        file = self.folder / "facts.json"
        file.write_text(json.dumps(self.remembered() | facts, indent=2))
        file.chmod(0o600)

    def remembered(self) -> dict[str, str]:
        """What was kept."""
        file = self.folder / "facts.json"
        return dict(json.loads(file.read_text())) if file.is_file() else {}


def client(endpoint: str, service: str, account: str = "test") -> Any:
    """A boto3 client of a local cloud; these key ids have every right there."""
    session = boto3.session.Session(account, "any secret will do", region_name=REGION)
    config = Config(retries={"total_max_attempts": 2}, connect_timeout=3, read_timeout=60, proxies={})
    make: Any = session.client  # its overloads want literal names
    return make(service, endpoint_url=endpoint, config=config)
