"""What becomes of everything that is no success?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from breakwater.domain.classify import CHAINS
from breakwater.domain.results import Refused
from breakwater.domain.signals import ErrorClass
from tests.providers.wire import ALL, Wire, library_of

REPLIES = Path(__file__).parents[1] / "replies"
ENDPOINTS = {"openai": "responses", "anthropic": "messages", "gemini": "generate_content", "gateway": "chat"}
FILES = [
    path
    for path in sorted(REPLIES.glob("*/*.json"))
    if not {"transport", "in_stream"} & json.loads(path.read_text())["reply"].keys()
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_recorded_failure_comes_out_of_the_adapter_as_refused(path):
    """Over the wire and through the library the signal is the same as from the recording alone."""
    case = json.loads(path.read_text())
    reply, provider = case["reply"], case["provider"]
    body = reply.get("body", "")
    wire = Wire(
        provider,
        ENDPOINTS[provider],
        answer=body if isinstance(body, str) else json.dumps(body),
        status=reply["status"],
        headers=reply.get("headers", {}),
    )
    outcome = wire.adapter.fetch("resp_x").outcome if case.get("lookup") else wire.submit()

    assert isinstance(outcome, Refused)
    assert outcome.signal.rule == f"{path.parent.name}.{path.stem.split('--')[0]}"
    assert outcome.signal.route_key == "route-1"
    expected = {name: value for name, value in case["expect"].items() if name != "retry_after_ms"}
    assert {name: getattr(outcome.signal, name) for name in expected} == expected
    assert len(wire.sent) == 1


@pytest.mark.parametrize("status", [200, 429, 500])
@pytest.mark.parametrize(("provider", "endpoint"), ALL)
@pytest.mark.parametrize(
    "body",
    [
        *("", " ", "<html>hi</html>", '{"id":"x","choi', "[]", "null", "5", '"text"', "[1]", "{}", "\xff\xfe"),
        *('{"error":"m"}', '{"error":{"code":429}}', '{"choices":[]}', '{"choices":[{}]}', '{"output":5}'),
        *('{"status":"completed","id":"r","output":null}', '{"candidates":[{}]}', '{"data":[{}]}', "[" * 5_000),
    ],
)
def test_no_broken_answer_is_a_success_or_an_exception(provider, endpoint, status, body):
    """Whatever a proxy, a crash or a cut puts there, the call ends as refused."""
    wire = Wire(provider, endpoint, answer=body.encode("latin-1"), status=status)

    assert isinstance(wire.submit(), Refused)


@pytest.mark.parametrize(("provider", "endpoint"), ALL)
def test_four_attempts_are_four_requests(provider, endpoint):
    """Always 429 and no advice: no library repeats anything behind our back."""
    wire = Wire(provider, endpoint, answer={"error": {"message": "m"}}, status=429)

    outcomes = [wire.submit() for _ in range(4)]

    assert len(wire.sent) == 4
    assert all(outcome.signal.error_class is ErrorClass.PACING for outcome in outcomes)


@pytest.mark.parametrize("status", [408, 409, 500, 503])
@pytest.mark.parametrize(("provider", "endpoint"), ALL)
def test_what_a_library_would_repeat_goes_out_once(provider, endpoint, status):
    """Not even when the answer itself asks for it."""
    wire = Wire(provider, endpoint, answer={}, status=status, headers={"x-should-retry": "true", "retry-after": "0"})
    wire.submit()

    assert len(wire.sent) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize(("provider", "endpoint"), ALL)
def test_a_redirect_is_not_followed(provider, endpoint, status):
    """It would carry key and prompt to somebody else."""
    wire = Wire(provider, endpoint, answer=b"", status=status, headers={"location": "https://elsewhere.example.com/"})

    assert wire.submit().signal.rule == "default.redirected"
    assert len(wire.sent) == 1


@pytest.mark.parametrize(
    ("name", "error_class"),
    [
        *(("ConnectError", ErrorClass.NOT_SENT), ("ConnectTimeout", ErrorClass.NOT_SENT)),
        *(("PoolTimeout", ErrorClass.NOT_SENT), ("ProxyError", ErrorClass.NOT_SENT)),
        *(("UnsupportedProtocol", ErrorClass.NOT_SENT), ("LocalProtocolError", ErrorClass.NOT_SENT)),
        *(("WriteError", ErrorClass.OUTCOME_UNKNOWN), ("WriteTimeout", ErrorClass.OUTCOME_UNKNOWN)),
        *(("ReadError", ErrorClass.OUTCOME_UNKNOWN), ("ReadTimeout", ErrorClass.OUTCOME_UNKNOWN)),
        *(("RemoteProtocolError", ErrorClass.OUTCOME_UNKNOWN), ("DecodingError", ErrorClass.OUTCOME_UNKNOWN)),
    ],
)
@pytest.mark.parametrize(("provider", "endpoint"), ALL)
def test_a_broken_connection_says_whether_it_was_sent(provider, endpoint, name, error_class):
    """What failed before sending is an ordinary retry, everything after it is an unknown outcome."""
    wire = Wire(provider, endpoint, answer=getattr(library_of(provider), name)("made up"))

    assert wire.submit().signal.error_class is error_class
    assert len(wire.sent) == 1


@pytest.mark.parametrize(("provider", "endpoint"), ALL)
@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"messages": []},
        {"messages": "hi"},
        {"messages": [5]},
        {"messages": [{"role": 5}]},
        {"messages": [{"role": "user", "content": 5}]},
        {"messages": [{"role": "user", "content": [5]}]},
        {"messages": [{"role": "assistant", "tool_calls": 5}]},
        {"messages": [{"role": "assistant", "tool_calls": [5]}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"id": 5}]}]},
    ],
)
def test_an_input_that_cant_be_written_is_the_callers_fault(provider, endpoint, payload):
    """It is refused before anything is sent."""
    wire = Wire(provider, endpoint, answer={})

    signal = wire.submit(payload).signal

    assert (signal.error_class, signal.rule) == (ErrorClass.CALLER_FAULT, "adapter.unsendable")
    assert wire.sent == []


def test_an_image_without_a_prompt_is_the_callers_fault():
    """What an assistant said is no wish for a picture."""
    wire = Wire("openai", "images", answer={})

    assert wire.submit({"messages": [{"role": "assistant", "content": "x"}]}).signal.rule == "adapter.unsendable"


@pytest.mark.parametrize(("provider", "endpoint"), [case for case in ALL if case != ("openai", "images")])
@pytest.mark.parametrize(
    "beside",
    [
        {"instructions": 5},
        {"json_schema": 5},
        {"json_schema": {"schema": "x"}},
        {"tools": 5},
        {"tools": [5]},
        {"tools": [{"type": "function", "function": {}}]},
    ],
)
def test_wrong_companions_of_a_message_are_the_callers_fault(provider, endpoint, beside):
    """Instructions, schema and tools have their shapes."""
    wire = Wire(provider, endpoint, answer={})

    assert wire.submit({"prompt": "hi", **beside}).signal.rule == "adapter.unsendable"


@pytest.mark.parametrize(("provider", "endpoint"), ALL)
@pytest.mark.parametrize("parameters", [5, {"temperature": float("nan")}])
def test_parameters_that_are_no_json_are_the_callers_fault(provider, endpoint, parameters):
    """Numbers that JSON does not have are not sent."""
    wire = Wire(provider, endpoint, answer={})

    assert wire.submit({"prompt": "hi", "parameters": parameters}).signal.rule == "adapter.unsendable"


@pytest.mark.parametrize(("provider", "endpoint"), [("anthropic", "messages"), ("gemini", "generate_content")])
def test_a_conversation_of_instructions_alone_is_the_callers_fault(provider, endpoint):
    """These APIs need somebody to answer."""
    wire = Wire(provider, endpoint, answer={})
    broken = [{"id": "c", "name": "f", "arguments": "{"}]

    assert wire.submit({"messages": [{"role": "system", "content": "x"}]}).signal.rule == "adapter.unsendable"
    assert wire.submit({"messages": [{"role": "assistant", "tool_calls": broken}]}).signal.rule == "adapter.unsendable"


def test_half_a_character_is_sent_as_json_writes_it():
    """A lone surrogate is legal in JSON and kills an encoder that isn't ready for it."""
    wire = Wire("anthropic", "messages", answer={})
    wire.submit({"prompt": "\ud83d"})

    assert b"\\ud83d" in wire.sent[0].content


def test_every_chain_is_spoken_by_an_adapter():
    """Rows without an adapter would be dead letters."""
    assert {provider for provider, _ in ALL} == set(CHAINS)
