"""The functions as AWS calls them, in this process, over the emulator: real handlers, real clients, a clock that moves.

Events come from `events/*.json`; words in capitals in them (`JOB_ID`, `ITEM_ID`, `API_KEY` …) are filled in.
"""

from __future__ import annotations

import importlib.util
import json
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from breakwater import policy_yaml, wiring
from breakwater.domain.job import Job
from breakwater.domain.obligations import Queue
from breakwater.store.wire import to_wire
from tests.fakes.clock import FakeClock
from tests.support.cloud import ROOT, Tables

SCHEDULE = {
    "name": "nightly",
    "workflow": "support_summary",
    "owner_key": "acme",
    "every": "10m",
    "input": {"messages": [{"role": "user", "content": "Summarise ${window_start}."}]},
}


@dataclass(frozen=True)
class Context:
    """What Lambda tells a function about itself."""

    aws_request_id: str = "lambda-request-1"
    remaining: int = 30_000

    def get_remaining_time_in_millis(self) -> int:
        """As if the function had just started."""
        return self.remaining


class Installation:
    """One installation in the emulator, and its functions in this process."""

    def __init__(self, tables: Tables, clock: FakeClock) -> None:
        self.tables, self.clock = tables, clock
        self.urls: dict[str, str] = {}
        self._modules: dict[str, ModuleType] = {}
        self._loading = threading.Lock()

    def call(self, function: str, event: Mapping[str, Any]) -> Any:
        """What a function answers to an event."""
        with self._loading:
            if function not in self._modules:
                self._modules[function] = _loaded(function)
        return self._modules[function].handler(event, Context())

    def http(self, function: str, event: Mapping[str, Any]) -> tuple[int, Any]:
        """Status and body of an answer over HTTP."""
        answer = self.call(function, event)
        return answer["statusCode"], json.loads(answer["body"])

    def job(self, job_id: str) -> Job:
        """A job as it stands in the table."""
        found = wiring.store().get(job_id)
        assert found is not None
        return found

    def owner(self, settings: Mapping[str, Any]) -> None:
        """Give the owner acme these settings."""
        item = to_wire({"pk": "OWNER#acme", "sk": "CONFIG", **settings})
        self.tables.client("dynamodb").put_item(TableName=self.tables.control, Item=item)

    def secret(self, name: str, value: Mapping[str, Any]) -> None:
        """Put a new value into a secret, as an operator does."""
        self.tables.client("secretsmanager").put_secret_value(SecretId=self.urls[name], SecretString=json.dumps(value))

    def received(self, queue: Queue) -> list[dict[str, str]]:
        """Every nudge that waits in a queue, taken off it."""
        sqs, url, found = self.tables.client("sqs"), self.urls[f"{queue.name}_QUEUE_URL"], []
        while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
            for one in messages:
                found.append(json.loads(one["Body"]))
                sqs.delete_message(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])
        return found


def _loaded(function: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"handler_{function}", ROOT / "functions" / function / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sample(name: str, **values: str) -> dict[str, Any]:
    """An event of `events/`, with its words in capitals filled in."""
    text = (ROOT / "events" / f"{name}.json").read_text(encoding="utf-8")
    for word, value in values.items():
        text = text.replace(word.upper(), value)
    event: dict[str, Any] = json.loads(text)
    return event


def forget() -> None:
    """Let the next call build everything anew, as a cold start does."""
    for one in vars(wiring).values():
        if hasattr(one, "cache_clear"):
            one.cache_clear()


def installed(
    tables: Tables, monkeypatch: pytest.MonkeyPatch, folder: Path, schedules: Sequence[Mapping[str, Any]] = (SCHEDULE,)
) -> Iterator[Installation]:
    """Make queues, secrets and a bus, and point the functions at them."""
    made = Installation(tables, FakeClock(time.time_ns() // 1_000_000))
    made.urls = _resources(tables)
    loaded = policy_yaml.load(ROOT / "shared" / "policies")
    loaded.schedules = [dict(one) for one in schedules]
    (folder / "policies.json").write_bytes(loaded.dump())
    forget()
    monkeypatch.setattr(wiring, "POLICIES", folder / "policies.json")
    monkeypatch.setattr(wiring, "clock", lambda: made.clock)
    for name, value in {**made.urls, **_environment(tables)}.items():
        monkeypatch.setenv(name, value)
    yield made
    forget()


def _environment(tables: Tables) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": tables.cloud.endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "JOBS_TABLE": tables.jobs,
        "CONTROL_TABLE": tables.control,
        "PAYLOAD_BUCKET": tables.bucket,
    }


def _resources(tables: Tables) -> dict[str, str]:
    mark = uuid.uuid4().hex[:8]
    sqs, secrets = tables.client("sqs"), tables.client("secretsmanager")
    found = {"EVENT_BUS_NAME": f"bus-{mark}"}
    tables.client("events").create_event_bus(Name=found["EVENT_BUS_NAME"])
    queues = [f"{one.name}_{end}" for one in Queue for end in ("QUEUE", "DLQ")]
    for name in (*queues, "DEAD_LETTERS_QUEUE"):
        found[f"{name}_URL"] = sqs.create_queue(QueueName=f"{name.lower()}-{mark}")["QueueUrl"]
    for name in ("PROVIDER_KEYS", "WEBHOOK_SECRETS", "NOTIFY_SECRETS", "CRON_SECRETS"):
        made = secrets.create_secret(Name=f"{name.lower()}-{mark}", SecretString="{}")
        found[f"{name}_SECRET"] = made["ARN"]
    return found
