"""The same load for both sides: people who wait, and background work, of three owners, at a steady rate."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import boto3
import httpx
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tests.bench.outage.plain import NAME, Plain
from tools.localcloud import LocalCloud
from tools.localcloud.emulator import REGION

OWNERS = 3
PATIENCE = 40


@dataclass
class Asked:
    """One request: when, by whom, how it was answered and how fast."""

    side: str
    kind: str
    key: str
    at: float
    took: float = 0.0
    status: int = 0
    outcome: str = ""
    job_id: str | None = None


class Ours:
    """The deployed stack, over its HTTP API, one key an owner."""

    def __init__(self, cloud: LocalCloud, keys: list[str]) -> None:
        self._clients = [
            httpx.Client(
                base_url=cloud.api_url,
                headers={"authorization": f"Bearer {key}"},
                timeout=PATIENCE,
                limits=httpx.Limits(max_connections=100),
                trust_env=False,
            )
            for key in keys
        ]

    def interactive(self, asked: Asked, n: int) -> None:
        """Wait for an answer."""
        answer = self._post(n, "/v1/run", "support_chat", asked.key)
        body = answer.json()
        asked.status, asked.job_id = answer.status_code, body.get("job_id")
        asked.outcome = {200: "result", 202: "queued"}.get(answer.status_code, "problem")

    def background(self, asked: Asked, n: int) -> None:
        """Hand in work."""
        answer = self._post(n, "/v1/jobs", "support_summary", asked.key)
        asked.status, asked.job_id = answer.status_code, answer.json().get("job_id")
        asked.outcome = "accepted" if asked.job_id else "refused"

    def _post(self, n: int, path: str, workflow: str, key: str) -> httpx.Response:
        body = {"workflow": workflow, "input": {"messages": [{"role": "user", "content": f"{key} please"}]}}
        return self._clients[n % OWNERS].post(path, json=body, headers={"idempotency-key": key})


class Baseline:
    """The plain functions: invoked for people, a queue for the rest."""

    def __init__(self, cloud: LocalCloud, plain: Plain) -> None:
        self._plain, self._sqs = plain, cloud.client("sqs")
        patient = Config(read_timeout=PATIENCE, retries={"total_max_attempts": 1}, max_pool_connections=100, proxies={})
        session = boto3.session.Session("test", "any secret will do", region_name=REGION)
        self._lambda = session.client("lambda", endpoint_url=cloud.endpoint, config=patient)

    def interactive(self, asked: Asked, _n: int) -> None:
        """Wait for an answer."""
        payload = json.dumps({"key": asked.key, "text": "please"}).encode()
        answer = self._lambda.invoke(FunctionName=f"{NAME}-interactive", Payload=payload)
        told = json.loads(answer["Payload"].read() or b"{}")
        asked.status = 504 if "FunctionError" in answer else told.get("statusCode", 500)
        asked.outcome = "result" if asked.status == 200 else "error"

    def background(self, asked: Asked, _n: int) -> None:
        """Put a message."""
        body = json.dumps({"key": asked.key, "text": "please"})
        self._sqs.send_message(QueueUrl=self._plain.queue_url, MessageBody=body)
        asked.status, asked.outcome = 202, "accepted"


def widen(sides: dict[str, Any], widest: int) -> None:
    """One more at a time, round after round: start-up is not what is measured, and many starts at once starve all."""
    with ThreadPoolExecutor(2 * widest) as pool:
        for width in range(1, widest + 1):
            for kind in ("interactive", "background"):
                rounds = [(name, n) for name in sides for n in range(width)]
                keys = [f"{name}-warm-{kind}-{width}-{n}" for name, n in rounds]
                asked = [
                    Asked(side=name, kind=kind, key=key, at=0) for (name, _), key in zip(rounds, keys, strict=True)
                ]
                calls = [getattr(sides[name], kind) for name, _ in rounds]
                list(pool.map(attempt, calls, asked, [n for _, n in rounds]))


def attempt(call: Callable[[Asked, int], None], asked: Asked, n: int) -> None:
    """One request, answered or not."""
    begun = time.monotonic()
    try:
        call(asked, n)
    except (httpx.HTTPError, BotoCoreError, ClientError, ValueError) as error:
        asked.outcome = f"none: {type(error).__name__}"
    asked.took = time.monotonic() - begun


class Load:
    """Sends at a steady rate until stopped; every request on a thread of its own."""

    def __init__(self, sides: dict[str, Any], rates: dict[str, float]) -> None:
        self._sides, self._rates = sides, rates
        self._pool = ThreadPoolExecutor(160)
        self._over = threading.Event()
        self.asked: list[Asked] = []
        self._threads = [threading.Thread(target=self._send, args=(kind,)) for kind in rates]

    def start(self) -> None:
        """Begin."""
        for one in self._threads:
            one.start()

    def stop(self) -> list[dict[str, Any]]:
        """Send no more, wait for what is on its way; every request as plain data."""
        self._over.set()
        for one in self._threads:
            one.join()
        self._pool.shutdown(wait=True)
        return [asdict(one) for one in self.asked]

    def _send(self, kind: str) -> None:
        n, following = 0, time.monotonic()
        while not self._over.is_set():
            for name, side in self._sides.items():
                asked = Asked(side=name, kind=kind, key=f"{name}-{kind}-{n:05d}", at=time.time())
                self.asked.append(asked)
                self._pool.submit(attempt, getattr(side, kind), asked, n)
            n, following = n + 1, following + 1 / self._rates[kind]
            self._over.wait(max(0.0, following - time.monotonic()))
