"""Does the local cloud start, stop, feed alarms, and say what is wrong?"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.template import ROOT
from tools.localcloud import LocalCloud, LocalCloudError, local_template, ports
from tools.localcloud.processes import Processes
from tools.localcloud.pump import Pump, metric_points

SLEEPY = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
time.sleep(60)
"""
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); time.sleep(60)"


@pytest.fixture
def processes(tmp_path):
    """The background programs of a cloud that has none yet."""
    return Processes(tmp_path / "processes.json")


def start(processes: Processes, folder: Path, code: str):
    """Start a little program in the background."""
    env = {"PATH": os.environ["PATH"]}
    return processes.start("it", [sys.executable, "-c", code], cwd=folder, env=env, log=folder / "it.log")


def wait_until_gone(processes: Processes) -> None:
    """Wait until the program is seen to have ended."""
    assert not processes.wait_until("it", lambda: False, 10)
    assert processes.get("it") is None


def members(group: int) -> list[str]:
    """Processes of a group, as ps shows them."""
    shown = subprocess.run(["ps", "-eo", "pgid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    lines = [line.split(maxsplit=2) for line in shown.splitlines()]
    return [line[2] for line in lines if line[0] == str(group) and not line[1].startswith("Z")]


def test_stopping_a_program_ends_what_it_started_too(processes, tmp_path):
    """Nothing of its process group is left."""
    running = start(processes, tmp_path, SLEEPY)
    until = time.monotonic() + 10
    while len(members(running.pid)) < 2 and time.monotonic() < until:
        time.sleep(0.05)

    processes.stop("it")

    assert members(running.pid) == []
    assert processes.all() == {}


def test_a_dead_program_leaves_children_that_a_later_stop_ends(processes, tmp_path):
    """As after a crash: the leader is gone, its children are not, and another process cleans up."""
    running = start(processes, tmp_path, SLEEPY)
    until = time.monotonic() + 10
    while len(members(running.pid)) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    os.kill(running.pid, signal.SIGKILL)
    wait_until_gone(processes)
    assert len(members(running.pid)) == 1

    Processes(tmp_path / "processes.json").stop("it")

    assert members(running.pid) == []


def test_a_program_that_ignores_a_polite_stop_is_killed(processes, tmp_path, monkeypatch):
    """After the grace period."""
    monkeypatch.setattr("tools.localcloud.processes.GRACE_SECONDS", 0.5)
    running = start(processes, tmp_path, STUBBORN)
    processes.wait_until("it", lambda: "on" in (tmp_path / "it.log").read_text(), 10)

    processes.stop("it")

    assert members(running.pid) == []


def test_a_number_that_now_belongs_to_another_program_is_not_killed(processes, tmp_path):
    """The start time tells our program from one that got its number later."""
    running = start(processes, tmp_path, SLEEPY)
    file = tmp_path / "processes.json"
    file.write_text(file.read_text().replace(running.started, "1"))

    Processes(file).stop("it")

    assert members(running.pid)
    os.killpg(running.pid, signal.SIGKILL)


def test_a_demanded_port_that_is_taken_is_named_with_a_way_out(monkeypatch):
    """The message names the port, the variable and another choice."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = str(other.getsockname()[1])
        monkeypatch.setenv("SOME_PORT", taken)

        with pytest.raises(LocalCloudError, match=rf"Port {taken} \(SOME_PORT\) is taken.*\n.*SOME_PORT=\d+ make run"):
            ports.choose(4566, "SOME_PORT")


def test_a_preferred_port_that_is_taken_gives_way_to_a_free_one():
    """Nobody asked for that very port."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]

        chosen = ports.choose(taken)

    assert chosen != taken
    assert ports.free(chosen)


def test_an_old_python_is_told_which_one_is_needed(tmp_path):
    """Instead of a syntax error or a failing install."""
    text = (ROOT / "locks" / "sync.py").read_text().replace("sys.version_info < (3, 11)", "sys.version_info < (9, 0)")
    script = tmp_path / "sync.py"
    script.write_text(text)

    done = subprocess.run([sys.executable, script, "dev"], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "Breakwater needs Python 3.11 or newer" in done.stderr


def test_a_template_of_another_form_is_refused(tmp_path):
    """Rather than building for the wrong machine in silence."""
    (tmp_path / "template.yaml").write_text("Resources: {}\n")

    with pytest.raises(LocalCloudError, match="changed its form"):
        local_template.write(tmp_path, tmp_path / "out")


def test_the_local_template_differs_only_in_platform_and_places(tmp_path):
    """One source: the derived template keeps every other line, and adds only the emulator's own name of a right."""
    local_template.write(ROOT, tmp_path)

    before = (ROOT / "template.yaml").read_text().splitlines()
    text = (tmp_path / "template.yaml").read_text()
    added = re.compile(r' +- Effect: Allow\n +Action: \["dynamodb:BatchExecuteStatement"\]\n +Resource: "\*"\n')
    assert len(added.findall(text)) == (ROOT / "template.yaml").read_text().count('"dynamodb:PartiQLDelete"')
    after = added.sub("", text).splitlines()

    assert len(before) == len(after)
    changed = {old.split(":")[0].strip() for old, new in zip(before, after, strict=True) if old != new}
    assert changed <= {
        "Runtime",
        "Architectures",
        "CompatibleRuntimes",
        "CompatibleArchitectures",
        "CodeUri",
        "ContentUri",
    }
    assert {"CodeUri", "ContentUri"} <= changed


def test_an_emulator_without_a_stack_answers_and_keeps_functions_from_our_environment(dynamo_cloud):
    """It is healthy, and what a developer has set did not reach it."""
    name = "a-table"
    client = dynamo_cloud.client("dynamodb", account="111122223333")
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )

    assert client.list_tables()["TableNames"] == [name]
    running = dynamo_cloud.emulator.running
    if Path(f"/proc/{running.pid}/environ").exists():
        environment = Path(f"/proc/{running.pid}/environ").read_text()
        assert "PYTEST" not in environment
        assert "AUTH=true" in environment


def test_fresh_tables_have_the_indexes_of_the_template(tables):
    """So that contract tests run against the real keys."""
    table = tables.client("dynamodb").describe_table(TableName=tables.jobs)["Table"]

    names = {one["IndexName"] for one in table["GlobalSecondaryIndexes"]}
    assert names == {"due", "ready", "turns", "standing", "owner", "attention"}


def test_the_pump_turns_a_message_in_a_dead_letter_queue_into_an_alarm(dynamo_cloud):
    """The emulator knows no queue metrics; the template's alarm fires all the same."""
    sqs, cloudwatch = dynamo_cloud.client("sqs"), dynamo_cloud.client("cloudwatch")
    queue = sqs.create_queue(QueueName="breakwater-pumped-dlq")["QueueUrl"]
    cloudwatch.put_metric_alarm(
        AlarmName="pumped",
        Namespace="AWS/SQS",
        MetricName="ApproximateNumberOfMessagesVisible",
        Dimensions=[{"Name": "QueueName", "Value": "breakwater-pumped-dlq"}],
        Statistic="Maximum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=0,
        ComparisonOperator="GreaterThanThreshold",
        TreatMissingData="notBreaching",
    )
    pump = Pump(dynamo_cloud.endpoint)

    pump.once()
    before = state(cloudwatch)
    sqs.send_message(QueueUrl=queue, MessageBody="{}")
    pump.once()

    assert before != "ALARM"
    assert state(cloudwatch) == "ALARM"


def state(cloudwatch) -> str:
    """The state of the one alarm."""
    return cloudwatch.describe_alarms(AlarmNames=["pumped"])["MetricAlarms"][0]["StateValue"]


def test_the_pump_reads_metric_lines_from_logs_once(dynamo_cloud):
    """A line in the embedded metric format becomes a data point, and is not counted again."""
    logs = dynamo_cloud.client("logs")
    group = {"logGroupName": "/aws/lambda/breakwater-pumped"}
    logs.create_log_group(**group)
    logs.create_log_stream(**group, logStreamName="one")
    now = int(time.time() * 1000)
    line = {
        "_aws": {
            "Timestamp": now,
            "CloudWatchMetrics": [
                {"Namespace": "Pumped", "Dimensions": [["lane"]], "Metrics": [{"Name": "Waited", "Unit": "Count"}]},
            ],
        },
        "lane": "interactive",
        "Waited": [1, 2],
    }
    events = [{"timestamp": now, "message": "plain"}, {"timestamp": now, "message": json.dumps(line)}]
    logs.put_log_events(**group, logStreamName="one", logEvents=events)
    pump = Pump(dynamo_cloud.endpoint)

    first, second = pump.once(), pump.once()

    assert first == second + 1
    metrics = dynamo_cloud.client("cloudwatch").list_metrics(Namespace="Pumped")["Metrics"]
    assert [(one["MetricName"], one["Dimensions"]) for one in metrics] == [
        ("Waited", [{"Name": "lane", "Value": "interactive"}]),
    ]


@pytest.mark.parametrize("line", ["plain text", '{"a": 1}', '{"_aws": 1}', '{"_aws": {"CloudWatchMetrics": [', "{}"])
def test_a_line_that_is_no_metric_is_passed_over(line):
    """Functions log many things."""
    assert list(metric_points(line)) == []


def test_a_cloud_that_does_not_run_says_how_to_start_it(tmp_path):
    """No stack trace about a refused connection."""
    with pytest.raises(LocalCloudError, match="make run"):
        LocalCloud(tmp_path, "none").client("sqs")
