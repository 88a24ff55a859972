"""Does a simulator come and go as a process should: alone, cleanly, and saying what is wrong?"""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tools.simulator.process import StartError, start

ROOT = Path(__file__).resolve().parents[2]
KEY = {"authorization": "Bearer k"}
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
STARTER = """
import sys, time
from pathlib import Path
from tools.simulator.process import start
print(start(Path(sys.argv[1])).process.pid, flush=True)
time.sleep(60)
"""


def chat(running, **more):
    """Ask one question."""
    return httpx.post(f"{running.openai_url}/chat/completions", headers=KEY, json=CHAT, **more)


def test_a_standing_fault_meets_every_call_until_it_is_cleared(tmp_path):
    """As PROVIDER_FAULT says at the start; the log says where it listens."""
    with start(tmp_path, environment={"PROVIDER_FAULT": "429"}) as running:
        statuses = [chat(running).status_code for _ in range(3)]
        running.client.clear_faults()
        cleared = chat(running).status_code

    assert statuses == [429] * 3
    assert cleared == 200
    assert f"provider simulator on {running.base_url}\n" in (tmp_path / "simulator.log").read_text()


def test_a_wrong_standing_fault_is_refused_with_the_choices(tmp_path):
    """And the message reaches whoever started it."""
    with pytest.raises(StartError, match="PROVIDER_FAULT='418' is not one of 429, 529"):
        start(tmp_path, environment={"PROVIDER_FAULT": "418"})


def test_a_port_that_is_taken_is_named(tmp_path, simulator):
    """Instead of waiting for a server that will not come."""
    port = int(simulator.base_url.rsplit(":", 1)[1])

    with pytest.raises(StartError, match="in use"):
        start(tmp_path, port)


def test_stopping_is_clean_even_with_calls_in_hand(tmp_path):
    """Hanging calls are not waited for, the address is withdrawn, stopping twice is no error."""
    running = start(tmp_path)
    running.client.fault("hang")
    with pytest.raises(httpx.ReadTimeout):
        chat(running, timeout=0.1)

    running.stop()
    running.stop()

    assert running.process.returncode == 0
    assert not (tmp_path / "address.json").exists()
    assert "Error" not in (tmp_path / "simulator.log").read_text()


def test_no_simulator_outlives_its_starter(tmp_path):
    """Not even one whose starter was killed."""
    command = [sys.executable, "-c", STARTER, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as starter:
        watched = os.pidfd_open(int(starter.stdout.readline()))
        starter.send_signal(signal.SIGKILL)

    poller = select.poll()
    poller.register(watched)
    gone = poller.poll(15_000)
    os.close(watched)

    assert gone
