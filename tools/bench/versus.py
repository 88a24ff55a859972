"""How fast is the whole, against what people would build instead? The same work on the same local cloud.

Contestants ask the same simulated provider one question a job: our stack over its HTTP API, in the provider's
background mode, and where the answer comes at once also in one synchronous call, as a product would then ask; SQS +
Lambda + Powertools (idempotency, partial batches), waiting inside the function, handed in through a function that
answers the caller, as a product needs it; a durable function of the public SDK, waiting inside as well, invoked
asynchronously. Once the provider answers at once, which shows what each design costs by itself; once it takes
`SLOW_MS`, as such answers do. What counts is read at the provider: from the moment a job is handed in to the moment its
call arrives, and how many calls arrive a second. In turns, so that all meet the same machine; only the ratios mean
anything.
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
from functools import partial
from pathlib import Path

import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, ClientError

from tests.bench.outage.plain import NAME, Plain, any_role
from tools.localcloud import LocalCloud
from tools.localcloud.emulator import REGION
from tools.localcloud.seed import put_api_key, stand_up
from tools.simulator.client import SimulatorClient

ROOT = Path(__file__).resolve().parents[2]
BACKGROUND, SYNCHRONOUS, PLAIN = "Breakwater", "Breakwater, synchronous", "SQS + Lambda"
DURABLE = "durable"
SLOW_MS = 5_000
_WAIT_SECONDS = 90.0
_AT_ONCE = 10  # functions of a queue, as in our template
_ROUNDS = 4  # of warming up, at most
Send = Callable[[str], Callable[[], None] | None]  # hands a job in; what it returns waits until the job is over


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
    stand_up(cloud)
    _lift_limits(cloud)
    contestants = {
        BACKGROUND: _ours(cloud, "support_summary"),
        SYNCHRONOUS: _ours(cloud, "support_chat"),
        PLAIN: _plain(cloud),
        "durable function": _durable(cloud),
    }
    races = []
    with SimulatorClient(cloud.simulator.url) as simulator:
        for answer_ms in (0, SLOW_MS):
            _take(simulator, answer_ms)
            _feed(cloud, 1 if answer_ms else 5)
            if answer_ms:
                contestants.pop(SYNCHRONOUS)  # nobody would hold a worker that long
            for number in submitters:
                for name, send in contestants.items():
                    race = partial(_race, name, send, simulator=simulator, answer_ms=answer_ms)
                    _warm_up(cloud, race, number, jobs)
                    races.append(race(number, jobs))
        simulator.clear_faults()
    return races


def _take(simulator: SimulatorClient, answer_ms: int) -> None:
    """So long from now on for every answer, in the function that waits or in the background."""
    simulator.clear_faults()
    if answer_ms:
        for model in (DURABLE, "baseline"):
            simulator.fault(kind="slow", ms=answer_ms, model=model, count=None)
        simulator.fault(kind="background", delay_ms=answer_ms, outcome="completed", count=None)


def _lift_limits(cloud: LocalCloud) -> None:
    """Our stack without its examples' limits: the others have none, and what is measured is no number of a policy."""
    lambdas = cloud.client("lambda")
    content = {"ZipFile": _unlimited(cloud.build() / "CodeLayer")}
    lifted = lambdas.publish_layer_version(LayerName="unlimited-code", Content=content)["LayerVersionArn"]
    for function in lambdas.list_functions()["Functions"]:
        arns = [one["Arn"] for one in function.get("Layers", ())]
        wanted = [lifted if "-code:" in arn else arn for arn in arns]
        if wanted != arns:
            lambdas.update_function_configuration(FunctionName=function["FunctionName"], Layers=wanted)


def _unlimited(layer: Path) -> bytes:
    """The code layer as it was built, but for the limits in its policies."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(one for one in layer.rglob("*") if one.is_file()):
            content = file.read_bytes()
            if file.name == "policies.json":
                compiled = json.loads(content)
                for one in (*compiled["routes"].values(), *compiled["policies"].values()):
                    one.pop("limits", None)
                content = json.dumps(compiled).encode()
            archive.writestr(str(file.relative_to(layer)), content)
    return packed.getvalue()


def _warm_up(cloud: LocalCloud, race: Callable[[int, int], Race], submitters: int, jobs: int) -> None:
    """Start-up is not what is measured, and many starts at once starve all: twice as many submitters each time.

    Then the race as it will be, until no function needs one more process for it. Right before it counts: what idled
    while the others raced has left the machine's memory.
    """
    for width in (1, 2, 4, 8, 16):
        if width < submitters:
            race(width, 2 * width)
    for _ in range(_ROUNDS):
        before = cloud.emulator.processes
        race(submitters, jobs)
        if cloud.emulator.processes <= before:
            return


def _race(name: str, send: Send, submitters: int, jobs: int, simulator: SimulatorClient, answer_ms: int) -> Race:
    run, handed = uuid.uuid4().hex[:10], {}

    def one(n: int) -> Callable[[], None] | None:
        key = f"race-{run}-{n:04d}"
        handed[key] = time.time() * 1000
        with suppress(httpx.HTTPError, BotoCoreError, ClientError):  # not taken: its call will be missing
            return send(key)
        return None

    with ThreadPoolExecutor(submitters) as pool:
        rest = list(pool.map(one, range(jobs)))
    called = _calls(simulator, run, jobs)
    for over in rest:  # what a job still does after its call must not weigh on the next contestant
        if over is not None:
            over()
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


def _ours(cloud: LocalCloud, workflow: str) -> Send:
    key = f"bw_{uuid.uuid4().hex}"
    put_api_key(cloud, key, owner="bench", scopes=frozenset({"submit", "read"}))
    client = _http(cloud.api_url, authorization=f"Bearer {key}")

    def send(name: str) -> Callable[[], None]:
        content = [{"role": "user", "content": f"{name} please"}]
        body = {"workflow": workflow, "input": {"messages": content}}
        taken = client.post("/v1/jobs", json=body, headers={"idempotency-key": name}).raise_for_status()
        return partial(_until_over, client, taken.headers["location"])

    return send


def _until_over(client: httpx.Client, location: str) -> None:
    until = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < until:
        job = client.get(location).json()  # or, where all wait, that the gateway gave up
        if job.get("final") and not job.get("owed"):
            return
        time.sleep(0.5)


def _plain(cloud: LocalCloud) -> Send:
    """A function puts a message and answers, over an HTTP API as ours is asked."""
    plain = Plain(cloud, f"{cloud.simulator.url}/openai/v1")
    plain.deploy()
    url, client = plain.over_http(), _http()

    def send(name: str) -> None:
        client.post(url, json={"key": name, "text": "please"}).raise_for_status()

    return send


def _http(base_url: str = "", **headers: str) -> httpx.Client:
    limits = httpx.Limits(max_connections=64)
    return httpx.Client(base_url=base_url, headers=headers, timeout=180, limits=limits, trust_env=False)


def _feed(cloud: LocalCloud, batch: int) -> None:
    """The queue's function in its best form: as many at once as ours, and no message behind another that waits."""
    lambdas = cloud.client("lambda")
    mapping = lambdas.list_event_source_mappings(FunctionName=f"{NAME}-background")["EventSourceMappings"][0]
    lambdas.update_event_source_mapping(
        UUID=mapping["UUID"], BatchSize=batch, ScalingConfig={"MaximumConcurrency": _AT_ONCE}
    )


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
