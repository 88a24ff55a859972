"""One simulator for all tests of this folder, emptied before each; the vendors' own clients around it."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anthropic
import httpx
import openai
import pytest
from google import genai

from tools.simulator.client import SimulatorClient
from tools.simulator.process import RunningSimulator, start

BACKGROUND_MS = 30


@pytest.fixture(scope="session")
def simulator(tmp_path_factory) -> Iterator[RunningSimulator]:
    """A process that serves all tests of the session."""
    with start(tmp_path_factory.mktemp("simulator"), background_delay_ms=BACKGROUND_MS) as running:
        yield running


@pytest.fixture(autouse=True)
def _emptied(request) -> None:
    """Reset the simulator before every test that has to do with it."""
    if "simulator" in request.fixturenames:
        request.getfixturevalue("simulator").client.reset()


@pytest.fixture
def sim(simulator) -> SimulatorClient:
    """Script the simulator and read it back."""
    return simulator.client


@pytest.fixture(scope="session")
def http():
    """A bare client, for what no vendor's client would send or read."""
    with httpx.Client(trust_env=False) as client:
        yield client


@pytest.fixture(scope="session")
def openai_client(simulator):
    """OpenAI's own client, its hidden retries off."""
    with openai.OpenAI(base_url=simulator.openai_url, api_key="sk-test", max_retries=0) as client:
        yield client


@pytest.fixture(scope="session")
def gateway_client(simulator):
    """OpenAI's client at a gateway."""
    with openai.OpenAI(base_url=simulator.gateway_url, api_key="sk-or-test", max_retries=0) as client:
        yield client


@pytest.fixture(scope="session")
def anthropic_client(simulator):
    """Anthropic's own client, its hidden retries off."""
    with anthropic.Anthropic(base_url=simulator.anthropic_url, api_key="sk-ant-test", max_retries=0) as client:
        yield client


@pytest.fixture(scope="session")
def gemini_client(simulator):
    """Google's own client."""
    options = genai.types.HttpOptions(base_url=simulator.gemini_url)
    client = genai.Client(api_key="AIza-test", http_options=options)
    yield client
    client.close()


@dataclass
class Receiver:
    """A webhook endpoint: keeps what it gets, answers the statuses it was given and then 200."""

    statuses: list[int] = field(default_factory=list)
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""

    def take(self, headers: dict[str, str], body: bytes) -> int:
        self.got.append((headers, body))
        return self.statuses.pop(0) if self.statuses else 200


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Listen for webhooks."""
    endpoint = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(endpoint.take(headers, body))
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            """Keep the test output quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    endpoint.url = f"http://127.0.0.1:{server.server_port}/webhooks/openai"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield endpoint
    server.shutdown()
    thread.join()
    server.server_close()
