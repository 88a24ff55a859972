"""`python -m tools.localcloud up|demo|status|logs|env|down`: the local cloud that `make run` shows."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from tools.localcloud.cloud import LocalCloud
from tools.localcloud.errors import LocalCloudError
from tools.localcloud.progress import step
from tools.localcloud.seed import provider_base_urls, seed

ROOT = Path(__file__).resolve().parents[2]
NAME = "dev"
PORT_VARIABLE = "BREAKWATER_PORT"


def main() -> None:
    """Read the command and carry it out; what goes wrong is said in one paragraph."""
    commands = {"up": up, "down": down, "status": status, "logs": logs, "env": environment, "demo": demo}
    parser = argparse.ArgumentParser(prog="python -m tools.localcloud", description=__doc__)
    parser.add_argument("command", choices=commands)
    parser.add_argument("--follow", action="store_true", help="logs: keep showing what is new")
    given = parser.parse_args()
    cloud = LocalCloud(ROOT, NAME, keep=True, quiet=False)
    try:
        commands[given.command](cloud, given)
    except LocalCloudError as error:
        sys.exit(f"\n{error}")
    except KeyboardInterrupt:
        sys.exit(130)


def up(cloud: LocalCloud, _given: argparse.Namespace) -> None:
    """Bring everything up, and leave alone what stands."""
    cloud.start(simulator=True, port_variable=PORT_VARIABLE)
    # The real OpenAI can't reach a laptop: its results are polled for.
    reachable = "no" if os.environ.get("OPENAI_API_KEY") else "yes"
    cloud.deploy(ProviderBaseUrls=provider_base_urls(cloud.simulator.url), ReceiveWebhooks=reachable)
    with step("API key and secrets"):
        seed(cloud)
    cloud.start_pump()


def down(cloud: LocalCloud, _given: argparse.Namespace) -> None:
    """Stop everything; data is kept for the next `up`."""
    with step("stopping the local cloud"):
        cloud.stop()


def demo(cloud: LocalCloud, _given: argparse.Namespace) -> None:
    """Show jobs travelling through the stack."""
    from tools.localcloud.demo import main as show  # noqa: PLC0415 - the other commands don't need what it loads

    show(cloud)


def status(cloud: LocalCloud, _given: argparse.Namespace) -> None:
    """Say what runs, and where."""
    running = cloud.status()
    if not running:
        print("Nothing is running. `make run` starts the local cloud.")
        return
    for name, port in running.items():
        print(f"  {name:<16} {f'http://127.0.0.1:{port}' if port else 'running'}")
    print(f"  {'logs':<16} {cloud.logs}")
    if cloud.running:
        print(f"  {'API':<16} {cloud.api_url}/v1")


def logs(cloud: LocalCloud, given: argparse.Namespace) -> None:
    """Show the log files; the functions' own lines are in the emulator's log and in its CloudWatch Logs."""
    files = sorted(cloud.logs.glob("*.log"))
    if not files:
        raise LocalCloudError("There are no logs yet: `make run` starts the local cloud.")
    subprocess.run(["tail", "-n", "40", *(["-F"] if given.follow else []), *files], check=False)


def environment(cloud: LocalCloud, _given: argparse.Namespace) -> None:
    """Print shell lines that point the AWS command line and scripts at this cloud."""
    lines = {
        "AWS_ENDPOINT_URL": cloud.endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "BREAKWATER_URL": f"{cloud.api_url}/v1",
        "BREAKWATER_API_KEY": cloud.remembered().get("api_key", ""),
    }
    for name, value in lines.items():
        print(f"export {name}={json.dumps(value) if '$' not in value else repr(value)}")


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
