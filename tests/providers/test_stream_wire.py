"""Real connections: hanging up in the middle, silence, a slow reader, bytes cut anywhere."""

from __future__ import annotations

import time

import pytest

from breakwater.domain.signals import ErrorClass
from breakwater.domain.stream_events import Done, Failed, TextDelta
from breakwater.providers.registry import build
from breakwater.providers.stream_wire import _WAITING, End, Line, Pump
from tests.providers.wire import KEY, call
from tools.simulator.process import start

CASES = {
    ("openai", "responses"): "openai_url",
    ("openai", "chat"): "openai_url",
    ("anthropic", "messages"): "anthropic_url",
    ("gemini", "generate_content"): "gemini_url",
    ("gateway", "chat"): "gateway_url",
}


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """One simulator for this file."""
    with start(tmp_path_factory.mktemp("simulator"), background_delay_ms=50) as simulator:
        yield simulator


@pytest.fixture
def sim(running):
    """The simulator, emptied."""
    running.client.reset()
    return running


def opened(sim, case, text, timeout_ms=10_000):
    """A stream that answers this text."""
    adapter = build(*case, getattr(sim, CASES[case]), KEY, "route-1", timeout_ms)
    payload = {"messages": [{"role": "user", "content": text}]}
    return adapter.stream(call(payload, endpoint=case[1], model="gpt-5-mini", timeout_ms=timeout_ms))


def first_text(stream):
    """Read until the first text."""
    while not isinstance(event := stream.next(5_000), TextDelta):
        assert event is not None
    return event


@pytest.mark.parametrize("case", list(CASES))
def test_hanging_up_on_a_silent_provider_is_felt_there_at_once(sim, case):
    """No time-out is waited for: the provider sees its caller leave."""
    sim.client.fault(kind="stream_stall", after_events=8)
    stream = opened(sim, case, "one two three four five six seven eight nine")
    first_text(stream)
    begun = time.monotonic()

    stream.close()
    stream.close()

    sim.client.wait_for(lambda: [one for one in sim.client.ledger() if one.outcome == "client_gone"])
    assert time.monotonic() - begun < 1


@pytest.mark.parametrize("case", list(CASES))
def test_silence_is_told_as_nothing_yet(sim, case):
    """A wait ends in time with nothing, and the stream goes on afterwards."""
    stream = opened(sim, case, "one two three [[sim:pace=120]]")
    first_text(stream)

    waits = []
    while not isinstance(event := stream.next(30), Done | Failed):
        waits.append(event is None)
    stream.close()

    assert any(waits)
    assert isinstance(event, Done)


@pytest.mark.parametrize("case", list(CASES))
def test_a_provider_that_says_nothing_for_too_long_is_left(sim, case):
    """The connection's own time-out is the last net under whoever reads."""
    sim.client.fault(kind="stream_stall", after_events=4)
    stream = opened(sim, case, "one two three four five", timeout_ms=400)

    while not isinstance(event := stream.next(5_000), Done | Failed):
        assert event is not None

    assert event.signal.error_class is ErrorClass.STREAM_INCOMPLETE
    stream.close()


def test_a_slow_reader_slows_the_provider():
    """No more than a short queue is ever read ahead, however much comes."""
    taken = []

    def chunks():
        for number in range(1_000):
            taken.append(number)
            yield b"x" * 1_000

    pump = Pump(lambda: Line(200, {}, chunks(), lambda: None, lambda: None))
    pump.take(1_000)
    time.sleep(0.3)

    assert len(taken) <= _WAITING + 2
    got = 0
    while not isinstance(item := pump.take(1_000), End):
        got += len(item) if isinstance(item, bytes) else 0
    assert (item.reply, got) == (None, 1_000_000)
    pump.stop()


def test_a_reader_that_leaves_is_not_waited_for():
    """The thread ends although nobody takes what it has."""
    pump = Pump(lambda: Line(200, {}, iter([b"x"] * 1_000), lambda: None, lambda: None))
    pump.take(1_000)

    begun = time.monotonic()
    pump.stop()

    assert time.monotonic() - begun < 1
    assert not pump._thread.is_alive()
