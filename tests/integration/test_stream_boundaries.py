"""Whatever happens at whatever place of a stream, what a reader saw is the beginning of exactly one answer.

The simulator breaks the stream of each protocol at every one of its events (counted by reading it once, not listed by
hand), and the worker dies at every one of its own. The store is in memory and the clock is ours, so that hours of
recovery pass at once; adapters, connections and the provider's own record of what it was asked are real.
"""

from __future__ import annotations

import functools
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import pytest

from breakwater.domain.states import Status
from breakwater.domain.stream_events import Done, Failed
from breakwater.providers.registry import build
from breakwater.providers.stream_dialects import DIALECTS
from breakwater.usecases.read import with_result
from breakwater.usecases.stream_read import StreamDeps
from tests.providers.wire import KEY, call
from tests.support.catalogue import catalogue, policy, route
from tests.support.reader import Reader
from tests.support.streams import LANES
from tests.support.world import World
from tools.simulator.process import start

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "required": ["n"]}}}
WHOLE = "Simulated answer to: Tell me."
FAULTS = ("stream_cut", "stream_stall", "stream_error", "stream_end")
SHORT_MS = 5_000  # the longest silence, on the world's clock


@dataclass(frozen=True)
class Protocol:
    """One way of streaming, and where the simulator speaks it."""

    provider: str
    endpoint: str
    url: str
    background: bool = False

    @property
    def name(self) -> str:
        """As tests are called."""
        return f"{self.provider}-{self.endpoint}{'-resumable' if self.background else ''}"


PROTOCOLS = [
    Protocol("openai", "responses", "openai_url"),
    Protocol("openai", "responses", "openai_url", background=True),
    Protocol("openai", "chat", "openai_url"),
    Protocol("gateway", "chat", "gateway_url"),
    Protocol("anthropic", "messages", "anthropic_url"),
    Protocol("gemini", "generate_content", "gemini_url"),
]


class Died(BaseException):
    """The process is gone; nothing catches it."""


@pytest.fixture(scope="module")
def sim(tmp_path_factory):
    """One simulator for this file."""
    with start(tmp_path_factory.mktemp("simulator"), background_delay_ms=30) as running:
        yield running


@dataclass
class Watched:
    """A stream over a real connection whose silence moves the world's clock, and that dies when told."""

    inner: Any
    harness: Harness

    def next(self, wait_ms: int) -> Any:
        harness = self.harness
        event = self.inner.next(min(wait_ms, harness.patience_ms))
        if event is None:
            harness.world.clock.advance(wait_ms)
            return None
        harness.events += 1
        if harness.events % 4 == 0:
            harness.reader.connect()
        dies_here = harness.events == harness.dies_at
        if dies_here or (harness.dies_at_failure and isinstance(event, Failed) and not harness.died):
            harness.died = True
            self.inner.close()
            raise Died
        harness.last = event
        return event

    def close(self) -> None:
        self.inner.close()
        self.harness.reader.connect()  # a page that looks at every change


@dataclass
class Harness:
    """One job in a world whose provider is the simulator."""

    sim: Any
    protocol: Protocol
    prompt: str = "Tell me."
    tools: bool = False
    dies_at: int | None = None
    dies_at_failure: bool = False
    patience_ms: int = 2_000
    events: int = 0
    died: bool = False
    last: Any = None
    world: World = field(init=False)
    reader: Reader = field(init=False)

    def __post_init__(self) -> None:
        one = self.protocol
        can = {"background": one.background, "streaming": True, "tools": True, "context_window": 400_000}
        where = {"gateway": "sim", "base_url": "https://gateway.test/v1"} if one.provider == "gateway" else {}
        about = {"provider": one.provider, "endpoint": one.endpoint, "model": "gpt-4.1", **where}
        made = route("sim", capabilities=can, timeout_ms=SHORT_MS, **about)
        base = catalogue()
        mode = "background" if one.background else "sync"
        chat = policy("chat", ai_api_queueing_strategy={"lanes": LANES}, route="sim", mode=mode)
        routes = replace(base, routes={**base.routes, "sim": made}, policies={**base.policies, "chat": chat})
        self.world = World(routes=routes)
        self.adapter = build(one.provider, one.endpoint, getattr(self.sim, one.url), KEY, "sim", SHORT_MS)
        fake = self.world.provider
        fake.stream = lambda asked, resume=None: Watched(self.adapter.stream(asked, resume), self)
        fake.fetch, fake.cancel = self.adapter.fetch, self.adapter.cancel
        more = {"tools": [TOOL]} if self.tools else {}
        content = {"messages": [{"role": "user", "content": self.prompt}], **more}
        self.job_id = self.world.submit("chat", stream=True, input=content).job.job_id
        self.page = _Page(self.world.clock)
        deps = StreamDeps(
            store=self.world.store,
            payloads=self.world.payloads,
            clock=self.page,
            log=self.world.log,
            pause=self.page.pause,
        )
        self.reader = Reader(deps, self.job_id)

    def run(self) -> Harness:
        """The worker once, dying where it should; then everything that recovers it."""
        with suppress(Died):
            self.world.pump()
        self.reader.connect()
        for _ in range(30):
            if not self.world.pending():
                break
            self.world.clock.advance(5_000)
            self.world.sweep()
            self.world.pump()
        self.world.settle()
        self.reader.read_all()
        return self


class _Page:
    """A page's own time: it waits without moving the world."""

    def __init__(self, clock: Any) -> None:
        self._clock, self._waited = clock, 0

    def now(self) -> int:
        return self._clock.now()

    def monotonic(self) -> int:
        return self._clock.monotonic() + self._waited

    def pause(self, ms: int) -> None:
        self._waited += ms


def creates(sim) -> int:
    """How often the provider was asked to generate."""
    return sum(entry.method == "POST" for entry in sim.client.ledger() if "cancel" not in entry.route)


def assert_honest(harness: Harness, whole: str = WHOLE) -> None:
    """What the reader saw, what it was told at the end, and what the record says are one story."""
    job, reader = harness.world.job(harness.job_id), harness.reader
    assert job.final
    name, end = reader.end
    assert whole.startswith(reader.text), "not the beginning of one answer"
    assert (end["status"], end["reason"]) == (job.status.value, job.reason.value)
    assert end["characters"] <= len(whole)
    shown = with_result(harness.world.deps, job)
    if job.status is Status.SUCCEEDED:
        assert (name, reader.text, shown["result"]["text"]) == ("done", whole, whole)
        assert shown["result"]["finish_reason"] in ("stop", "tool_calls")
    else:
        assert name == "failed"
        partial = (shown.get("partial_result") or {}).get("text", "")
        assert partial.startswith(reader.text)
        assert whole.startswith(partial)
    if reader.text or reader.calls:
        assert job.partial_output_committed
        assert job.usage_units > 0, "what was read was paid for"
    assert not harness.world.pending()


@functools.cache
def frames(url: str, protocol: Protocol, prompt: str, *, tools: bool) -> int:
    """How many events this protocol has for this prompt: read once, counted."""
    adapter = build(protocol.provider, protocol.endpoint, url, KEY, "r", SHORT_MS)
    payload = {"messages": [{"role": "user", "content": prompt}], **({"tools": [TOOL]} if tools else {})}
    asked = call(payload, endpoint=protocol.endpoint, background=protocol.background, model="gpt-4.1")
    request = DIALECTS[protocol.endpoint].ask(adapter.request(asked))
    headers = {
        "authorization": f"Bearer {KEY}",
        "x-api-key": KEY,
        "x-goog-api-key": KEY,
        "anthropic-version": "2023-06-01",
    }
    version = {"anthropic": "/v1", "gemini": "/v1beta"}.get(protocol.provider, "")
    body = httpx.post(url + version + request.path, content=request.content, headers=headers, trust_env=False).text
    assert "data: " in body
    return body.count("\n\n")


def every(sim, protocol: Protocol, prompt: str = "Tell me.", *, tools: bool = False) -> range:
    """Every place between two events, before the first and behind the last."""
    return range(frames(getattr(sim, protocol.url), protocol, prompt, tools=tools))


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda one: one.name)
def test_a_stream_that_breaks_at_any_event_is_told_honestly(sim, protocol, kind):
    """Cut, silent, failed or closed at every event of every protocol."""
    patience = 20 if kind == "stream_stall" else 2_000
    shown_then_broken = 0
    for place in every(sim, protocol):
        sim.client.reset()
        sim.client.fault(kind=kind, after_events=place)

        harness = Harness(sim, protocol, patience_ms=patience).run()

        assert_honest(harness)
        job = harness.world.job(harness.job_id)
        if not protocol.background and job.partial_output_committed and job.attempt == 1:
            assert creates(sim) == 1, "never asked again once something was seen"
            shown_then_broken += job.status is Status.DEAD_LETTER
        if protocol.background:
            assert (job.status, job.attempt > 1) == (Status.SUCCEEDED, not place)
    assert protocol.background or shown_then_broken


@pytest.mark.parametrize("kind", [None, *FAULTS])
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda one: one.name)
def test_a_worker_that_dies_at_any_event_is_told_honestly(sim, protocol, kind):
    """It dies at each event it reads; and, where the stream breaks, at each break."""
    patience = 20 if kind == "stream_stall" else 2_000
    places = every(sim, protocol) if kind else range(1, 1 + _events_of(sim, protocol))
    for place in places:
        sim.client.reset()
        if kind:
            sim.client.fault(kind=kind, after_events=place)
        dies = {"dies_at_failure": True} if kind else {"dies_at": place}

        harness = Harness(sim, protocol, patience_ms=patience, **dies).run()

        assert_honest(harness)
        job = harness.world.job(harness.job_id)
        if job.partial_output_committed and job.attempt == 1:
            assert creates(sim) == 1
        if protocol.background and kind is None and place > 1:
            assert (job.status, creates(sim)) == (Status.SUCCEEDED, 1), "the next holder goes on"


def _events_of(sim, protocol) -> int:
    sim.client.reset()
    harness = Harness(sim, protocol).run()
    assert isinstance(harness.last, Done)
    return harness.events


@pytest.mark.parametrize("kind", ["stream_cut", "stream_end"])
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda one: one.name)
def test_a_call_of_a_tool_is_as_visible_as_text(sim, protocol, kind):
    """Once it was begun nothing is asked again, and half of one is never a result."""
    prompt = "Look. [[sim:tool_call=look]]"
    for place in every(sim, protocol, prompt, tools=True):
        sim.client.reset()
        sim.client.fault(kind=kind, after_events=place)

        harness = Harness(sim, protocol, prompt=prompt, tools=True).run()

        assert_honest(harness, whole="")
        job = harness.world.job(harness.job_id)
        if job.status is Status.SUCCEEDED:
            (called,) = with_result(harness.world.deps, job)["result"]["tool_calls"]
            assert list(harness.reader.calls.values()) == [called["arguments"]]
        elif harness.reader.calls:
            assert creates(sim) == 1


@pytest.mark.parametrize("protocol", [one for one in PROTOCOLS if one.endpoint == "chat"], ids=lambda one: one.name)
def test_done_alone_ends_a_compatible_stream(sim, protocol):
    """PR-05: `[DONE]` with no finish reason is a stop, wherever it stands behind some text."""
    for place in every(sim, protocol):
        sim.client.reset()
        sim.client.fault(kind="stream_done", after_events=place)

        harness = Harness(sim, protocol).run()

        job, reader = harness.world.job(harness.job_id), harness.reader
        if job.attempt == 1:
            assert (job.status, reader.end[0]) == (Status.SUCCEEDED, "done")
        assert with_result(harness.world.deps, job)["result"]["text"] == reader.text
