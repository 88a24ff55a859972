"""How fast is the whole, against what people would build instead? The same work on the same local cloud.

Contestants ask the same simulated provider one question a job: our stack over its HTTP API, in the provider's
background mode; SQS + Lambda + Powertools (idempotency, partial batches), waiting inside the function, handed in
through a function that answers the caller (as a product needs it) and as a bare message; a durable function of the
public SDK, waiting inside as well, invoked asynchronously. Once the provider answers at once, which shows what each
design costs by itself; once it takes `SLOW_MS`, as such answers do. What counts is read at the provider: from the
moment a job is handed in to the moment its call arrives, and how many calls arrive a second. In turns, so that all
meet the same machine; only the ratios mean anything.
"""

from __future__ import annotations

import io
import json
import statistics
import time
import uuid
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, ClientError

from tests.bench.outage.plain import NAME, Plain, any_role
from tools.localcloud import LocalCloud
from tools.localcloud.emulator import REGION
from tools.localcloud.seed import provider_base_urls, put_api_key, seed
from tools.simulator.client import SimulatorClient

ROOT = Path(__file__).resolve().parents[2]
DURABLE = "durable"
SLOW_MS = 5_000
_WAIT_SECONDS = 90.0
Send = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Race:
    """One contestant at one number of submitters, and a provider that takes so long for an answer."""

    contestant: str
    answer_ms: int
    submitters: int
    jobs: int
    to_call_ms: float  # median, handed in to the call at the provider
    jobs_a_second: float
    lost: int


def measure(cloud: LocalCloud, submitters: tuple[int, ...], jobs: int) -> list[Race]:
    """Deploy all, warm up, then race."""
    deploy(cloud)
    message, function = _plain(cloud)
    contestants = {
        "Breakwater": _ours(cloud),
        "SQS + Lambda": function,
        "SQS + Lambda, message only": message,
        "durable function": _durable(cloud),
    }
    races = []
    with SimulatorClient(cloud.simulator.url) as simulator:
        for name, send in contestants.items():
            for width in _widening(max(submitters)):
                _race(name, send, width, 2 * width, simulator)
        for answer_ms in (0, SLOW_MS):
            _take(simulator, answer_ms)
            for number in submitters:
                races += [_race(name, send, number, jobs, simulator, answer_ms) for name, send in contestants.items()]
        simulator.clear_faults()
    return races


def _take(simulator: SimulatorClient, answer_ms: int) -> None:
    """So long from now on for every answer, in the function that waits or in the background."""
    simulator.clear_faults()
    if answer_ms:
        for model in (DURABLE, "baseline"):
            simulator.fault(kind="slow", ms=answer_ms, model=model, count=None)
        simulator.fault(kind="background", delay_ms=answer_ms, outcome="completed", count=None)


def deploy(cloud: LocalCloud) -> None:
    """Our stack beside a simulated provider."""
    cloud.start(simulator=True)
    cloud.deploy(ProviderBaseUrls=provider_base_urls(cloud.simulator.url, {}))
    seed(cloud)


def _widening(most: int) -> list[int]:
    """Start-up is not what is measured, and many starts at once starve all: twice as many submitters each time."""
    return [width for width in (1, 2, 4, 8, 16) if width < most] + [most]


def _race(name: str, send: Send, submitters: int, jobs: int, simulator: SimulatorClient, answer_ms: int = 0) -> Race:
    run, handed = uuid.uuid4().hex[:10], {}

    def one(n: int) -> None:
        key = f"race-{run}-{n:04d}"
        handed[key] = time.time() * 1000
        with suppress(httpx.HTTPError, BotoCoreError, ClientError):  # not taken: its call will be missing
            send(key)

    with ThreadPoolExecutor(submitters) as pool:
        list(pool.map(one, range(jobs)))
    called = _calls(simulator, run, jobs)
    waits = [called[key] - at for key, at in handed.items() if key in called]
    seconds = (max(called.values()) - min(handed.values())) / 1000 if called else float("inf")
    median = statistics.median(waits) if waits else float("inf")
    return Race(name, answer_ms, submitters, jobs, median, len(called) / seconds, jobs - len(called))


def _calls(simulator: SimulatorClient, run: str, jobs: int) -> dict[str, float]:
    """When each job's call arrived; waits until all did, or long enough."""
    until, found = time.monotonic() + _WAIT_SECONDS, dict[str, float]()
    while time.monotonic() < until and len(found) < jobs:
        time.sleep(0.3)
        for entry in simulator.ledger(method="POST", contains=f"race-{run}"):
            key = next((word for word in entry.excerpt.split() if word.startswith(f"race-{run}")), None)
            if key is not None:
                found.setdefault(key, entry.at_ms)
    return found


def _ours(cloud: LocalCloud) -> Send:
    key = f"bw_{uuid.uuid4().hex}"
    put_api_key(cloud, key, owner="bench", scopes=frozenset({"submit", "read"}))
    limits = httpx.Limits(max_connections=64)
    headers = {"authorization": f"Bearer {key}"}
    client = httpx.Client(base_url=cloud.api_url, headers=headers, timeout=180, limits=limits, trust_env=False)

    def send(name: str) -> None:
        content = [{"role": "user", "content": f"{name} please"}]
        body = {"workflow": "support_summary", "input": {"messages": content}}
        client.post("/v1/jobs", json=body, headers={"idempotency-key": name}).raise_for_status()

    return send


def _plain(cloud: LocalCloud) -> tuple[Send, Send]:
    """A bare message, and a function that puts it and answers."""
    plain = Plain(cloud, f"{cloud.simulator.url}/openai/v1")
    plain.deploy()
    lambdas, sqs = cloud.client("lambda"), cloud.client("sqs")
    mapping = lambdas.list_event_source_mappings(FunctionName=f"{NAME}-background")["EventSourceMappings"][0]
    lambdas.update_event_source_mapping(UUID=mapping["UUID"], ScalingConfig={"MaximumConcurrency": 10})  # as ours

    def send(name: str) -> None:
        sqs.send_message(QueueUrl=plain.queue_url, MessageBody=json.dumps({"key": name, "text": "please"}))

    def ask(name: str) -> None:
        lambdas.invoke(FunctionName=f"{NAME}-admit", Payload=json.dumps({"key": name, "text": "please"}).encode())

    return send, ask


def _durable(cloud: LocalCloud) -> Send:
    lambdas = cloud.client("lambda")
    ours = lambdas.get_function_configuration(FunctionName="breakwater-local-run")
    lambdas.create_function(
        FunctionName=DURABLE,
        Runtime=ours["Runtime"],
        Role=any_role(cloud),
        Handler="app.handler",
        Code={"ZipFile": _with_sdk()},
        Timeout=29,
        MemorySize=1024,
        Layers=[one["Arn"] for one in ours["Layers"]],
        Environment={
            "Variables": {
                "PROVIDER_URL": f"{cloud.simulator.url}/openai/v1",
                "AWS_ACCESS_KEY_ID": "test",
                "AWS_SECRET_ACCESS_KEY": "test",
            }
        },
    )
    _switch_on(cloud)

    def send(name: str) -> None:
        payload = json.dumps({"key": name, "text": "please"}).encode()
        lambdas.invoke(FunctionName=DURABLE, InvocationType="Event", Payload=payload)

    return send


def _switch_on(cloud: LocalCloud) -> None:
    """The emulator's own switch for durable functions, which the SDK does not know."""
    url = f"{cloud.endpoint}/2015-03-31/functions/{DURABLE}/configuration"
    body = json.dumps({"DurableConfig": {"Enabled": True, "ExecutionTimeout": 3600}}).encode()
    request = AWSRequest("PUT", url, {"content-type": "application/json"}, body)
    SigV4Auth(Credentials("test", "any secret will do"), "lambda", REGION).add_auth(request)
    httpx.put(url, content=body, headers=dict(request.headers), timeout=10, trust_env=False).raise_for_status()


def _with_sdk() -> bytes:
    """The function and the public SDK in one package."""
    packages = next((ROOT / ".local" / "venvs" / "bench" / "lib").glob("python3*/site-packages"))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(ROOT / "tests" / "bench" / "durable" / "app.py", "app.py")
        for file in (packages / "aws_durable_execution_sdk_python").rglob("*.py"):
            archive.write(file, str(file.relative_to(packages)))
    return packed.getvalue()
