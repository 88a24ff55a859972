"""Do the adapters and the provider simulator understand each other?

The simulator speaks each provider's wire shapes, and the vendors' own clients run against it in its own tests; here
our adapters do. Its ledger is the judge of how often a provider was really called.
"""

from __future__ import annotations

import json
import time

import pytest

from breakwater.domain.endpoints import endpoints_of, read
from breakwater.domain.results import Accepted, Completed, Refused, Running
from breakwater.domain.signals import ErrorClass
from breakwater.domain.told import outcome_of
from breakwater.providers.registry import build
from tests.providers.wire import KEY, call
from tests.support.catalogue import route
from tools.simulator.presets import PRESETS
from tools.simulator.process import start

URLS = {
    ("openai", "responses"): "openai_url",
    ("openai", "chat"): "openai_url",
    ("openai", "images"): "openai_url",
    ("anthropic", "messages"): "anthropic_url",
    ("gemini", "generate_content"): "gemini_url",
    ("gateway", "chat"): "gateway_url",
}
TALKING = [case for case in URLS if case != ("openai", "images")]
BY_PREFIX = {
    "openai": ("openai", "responses"),
    "anthropic": ("anthropic", "messages"),
    "gemini": ("gemini", "generate_content"),
    "openrouter": ("gateway", "chat"),
    "litellm": ("gateway", "chat"),
    "gateway": ("gateway", "chat"),
    "vllm": ("gateway", "chat"),
    "html": ("openai", "responses"),
}
CLASSES = {
    "pacing": """openai_429_rate openai_429_tokens openai_429_no_hint openai_slow_down openai_503_slow_down
        anthropic_429_rate anthropic_429_ramp gemini_429_minute gemini_429_tokens gemini_429_no_details gemini_429_list
        openrouter_402_inflight openrouter_429_rate litellm_429_throttling gateway_200_rate_limit
        gateway_200_choice_error""",
    "spend": """openai_429_credit_balance openai_429_org_spend openai_429_project_spend openai_429_insufficient_quota
        anthropic_400_spend_limit anthropic_400_credit anthropic_402 anthropic_402_linked_spend
        anthropic_402_linked_billing anthropic_spend_limit anthropic_contract_spend_limit anthropic_429_workspace
        gemini_402 gemini_429_prepay gemini_429_spend openrouter_402_credits openrouter_402_key_limit
        openrouter_403_budget openrouter_403_workspace litellm_422_budget gateway_402_quota""",
    "quota": """openai_429_org_usage gemini_429_day gemini_429_day_long gemini_429_day_info gemini_429_day_and_minute
        gemini_429_limit_zero""",
    "overload": """openai_503_overloaded openai_529 anthropic_503 anthropic_529 anthropic_529_hint anthropic_200_error
        gemini_503 gemini_529 openrouter_503_overloaded openrouter_503_availability litellm_429_no_deployments
        litellm_503_detail gateway_529""",
    "server_fault": """openai_500 openai_502 openai_200_error anthropic_500 anthropic_503_cmek gemini_500
        gemini_200_error openrouter_500 openrouter_502_unavailable gateway_200_error gateway_502_source
        gateway_500_text gateway_500_list html_502 html_520 html_522""",
    "caller_fault": """openai_400_invalid openai_400_context_length openai_404_model openai_413_too_large
        openai_422_invalid anthropic_400_invalid anthropic_404 anthropic_409 anthropic_412 anthropic_413 anthropic_422
        anthropic_431 anthropic_499 anthropic_501 gemini_400_invalid gemini_404 openrouter_400_context openrouter_404
        openrouter_413 vllm_400 vllm_400_flat gateway_200_not_found""",
    "credential": "openai_401_key anthropic_401 gemini_400_key openrouter_401 litellm_401_key",
    "permission": "anthropic_400_on_hold anthropic_403 gemini_403 litellm_403_model",
    "data_boundary": "openai_403_region gemini_400_precondition",
    "content_refused": "openrouter_403_moderation",
    "locked": "openai_409_conflict",
    "outcome_unknown": """openai_408_timeout anthropic_408 anthropic_504 gemini_504 openrouter_408 openrouter_504
        html_200 html_524""",
}
EXPECTED = {preset: error_class for error_class, presets in CLASSES.items() for preset in presets.split()}
HINTS = {
    "openai_429_rate": 2,
    "openai_429_tokens": 2,
    "openai_slow_down": 5,
    "anthropic_429_rate": 3,
    "anthropic_529_hint": 4,
    "gemini_429_minute": 17,
    "gemini_429_tokens": 46,
    "gemini_429_day_long": 67_202,
    "openrouter_402_inflight": 3,
    "openrouter_503_availability": 5,
    "litellm_429_no_deployments": 6,
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


def adapter(sim, case, timeout_ms=5_000):
    """An adapter that talks to the simulator."""
    return build(*case, getattr(sim, URLS[case]), KEY, "route-1", timeout_ms)


def said(text, **beside):
    """A call with one message."""
    return call({"messages": [{"role": "user", "content": text}], **beside}, model="gpt-5-mini", background=False)


@pytest.mark.parametrize("case", TALKING)
def test_an_answer_comes_back_whole(sim, case):
    """Text, usage, model and id, and one call that was charged."""
    outcome = adapter(sim, case).submit(said("Tell me. [[sim:cached=3]] [[sim:reasoning=5]]"))

    assert isinstance(outcome, Completed)
    result = outcome.result
    assert result.text == "Simulated answer to: Tell me."
    assert (result.finish_reason, result.served_model) == ("stop", "gpt-5-mini")
    assert (result.usage.cached_tokens, result.usage.reasoning_tokens) == (3, 5)
    assert result.usage.input_tokens > 3
    assert result.usage.output_tokens > 5
    (entry,) = sim.client.ledger(charged=True)
    assert (entry.input_tokens, entry.output_tokens) == (result.usage.input_tokens, result.usage.output_tokens)


@pytest.mark.parametrize("case", TALKING)
def test_json_and_tools_travel_both_ways(sim, case):
    """A schema is kept and parsed; a tool is called, answered, and the conversation goes on."""
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    tools = [{"type": "function", "function": {"name": "look", "parameters": schema}}]
    provider = adapter(sim, case)

    parsed = provider.submit(said("Count.", json_schema={"name": "count", "schema": schema})).result
    called = provider.submit(said("Look. [[sim:tool_call=look]]", tools=tools)).result
    (tool_call,) = called.tool_calls
    history = [
        {"role": "user", "content": "Look. [[sim:tool_call=look]]"},
        {"role": "assistant", "content": called.text, "tool_calls": [dict(tool_call)]},
        {"role": "tool", "tool_call_id": tool_call["id"], "content": '{"seen": 1}'},
    ]
    after = provider.submit(call({"messages": history, "tools": tools}))

    assert isinstance(parsed.structured["n"], int)
    assert (tool_call["name"], called.finish_reason) == ("look", "tool_calls")
    assert isinstance(json.loads(tool_call["arguments"])["n"], int)
    assert isinstance(after, Completed)


@pytest.mark.parametrize("case", TALKING)
def test_answers_that_are_no_success_keep_what_came(sim, case):
    """Cut, filtered, refused or broken JSON: refused, with its usage."""
    provider = adapter(sim, case)
    schema = {"name": "count", "schema": {"type": "object", "properties": {}}}

    cut = provider.submit(said("A long story about the sea. [[sim:truncate]]"))
    filtered = provider.submit(said("Hm. [[sim:filter]]"))
    refused = provider.submit(said("Hm. [[sim:refuse]]"))
    broken = provider.submit(said("Hm. [[sim:bad_json]]", json_schema=schema))

    assert cut.signal.error_class is ErrorClass.TRUNCATED
    assert cut.partial.text
    assert filtered.signal.error_class is ErrorClass.CONTENT_REFUSED
    assert refused.signal.error_class is ErrorClass.CONTENT_REFUSED
    assert broken.signal.rule == "adapter.not_json"
    assert all(outcome.partial.usage.input_tokens for outcome in (cut, refused, broken))


def test_images_are_made(sim):
    """As many as were asked for."""
    outcome = adapter(sim, ("openai", "images")).submit(call({"prompt": "A cat", "n": 2}, model="gpt-image-1"))

    assert len(outcome.result.media) == 2
    assert outcome.result.usage.images == 2


def test_background_work_is_accepted_polled_and_done(sim):
    """Accepted with an id, running, then done with our own ids; a second create is not made."""
    provider = adapter(sim, ("openai", "responses"))
    accepted = provider.submit(call({"prompt": "Tell me. [[sim:delay=200]]"}, background=True))

    assert isinstance(accepted, Accepted)
    assert provider.fetch(accepted.provider_job_id).outcome == Running(provider_job_id=accepted.provider_job_id)
    time.sleep(0.3)
    found = provider.fetch(accepted.provider_job_id)
    assert found.outcome.result.text == "Simulated answer to: Tell me."
    assert (found.job_id, found.execution_id) == ("job_1", "exec_1")
    assert provider.cancel(accepted.provider_job_id) is None
    assert len(sim.client.ledger(route="openai.responses")) == 1


def test_background_work_can_be_stopped(sim):
    """And is then cancelled, for good; a job nobody knows is over too."""
    provider = adapter(sim, ("openai", "responses"))
    accepted = provider.submit(call({"prompt": "Tell me. [[sim:delay=60000]]"}, background=True))

    assert provider.cancel(accepted.provider_job_id) is None
    assert provider.cancel(accepted.provider_job_id) is None
    assert provider.cancel("resp_unknown") is None
    assert provider.fetch(accepted.provider_job_id).outcome.signal.error_class is ErrorClass.CANCELLED
    assert provider.fetch("resp_unknown").outcome.signal.error_class is ErrorClass.NOT_FOUND


@pytest.mark.parametrize(
    ("preset", "error_class"),
    [
        ("background_failed", ErrorClass.SERVER_FAULT),
        ("background_rate_limited", ErrorClass.PACING),
        ("background_failed_silently", ErrorClass.UNKNOWN),
        ("background_incomplete", ErrorClass.TRUNCATED),
        ("background_filtered", ErrorClass.CONTENT_REFUSED),
        ("background_cancelled", ErrorClass.CANCELLED),
    ],
)
def test_background_work_ends_badly_in_its_own_way(sim, preset, error_class):
    """What a poll finds is classified like any answer."""
    provider = adapter(sim, ("openai", "responses"))
    sim.client.fault(preset)
    accepted = provider.submit(call({"prompt": "hi"}, background=True))
    outcome = sim.client.wait_for(lambda: _ended(provider.fetch(accepted.provider_job_id).outcome))

    assert outcome.signal.error_class is error_class
    assert outcome.provider_job_id == accepted.provider_job_id


TELLS = endpoints_of(
    [
        {
            "name": "tells",
            "provider": "openai",
            "secret": "tells",
            "event_type": "type",
            "state": "data.status",
            "provider_job_id": "data.id",
            "job_id": "data.metadata.breakwater_job_id",
            "execution_id": "data.metadata.breakwater_execution_id",
            "outcomes": {
                "completed": "completed",
                "failed": "failed",
                "cancelled": "cancelled",
                "incomplete": "incomplete",
                "*": "progress",
            },
            "fetch": False,
            "result": {
                "text": ["data.output.0.content.0.text", "data.output.1.content.0.text"],
                "model": "data.model",
                "finish_reason": "data.incomplete_details.reason",
                "input_tokens": "data.usage.input_tokens",
                "output_tokens": "data.usage.output_tokens",
                "error_code": "data.error.code",
                "error_message": "data.error.message",
            },
        }
    ]
)["tells"]


@pytest.mark.parametrize(
    "preset",
    [
        None, "background_failed", "background_rate_limited", "background_failed_silently", "background_incomplete",
        "background_filtered", "background_cancelled",
    ],
)  # fmt: skip
def test_what_a_webhook_carries_is_judged_as_a_poll_would_be(sim, preset):
    """The same job, told by a delivery and found by asking: one outcome, one class, one text, one bill."""
    provider = adapter(sim, ("openai", "responses"))
    if preset:
        sim.client.fault(preset)
    accepted = provider.submit(call({"prompt": "hi"}, background=True))
    polled = sim.client.wait_for(lambda: _ended(provider.fetch(accepted.provider_job_id).outcome))
    body = {"type": "job.updated", "data": sim.client.response(accepted.provider_job_id)["response"]}

    facts = read(TELLS, body)
    told = outcome_of(TELLS, facts, body, route("told"), 0, wants_json=False)

    assert (facts.job_id, facts.execution_id) == ("job_1", "exec_1")
    assert type(told) is type(polled)
    if isinstance(polled, Completed):
        assert (told.result.text, told.result.served_model) == (polled.result.text, polled.result.served_model)
        assert told.result.usage.units == polled.result.usage.units
    else:
        words = ("error_class", "provider_error_type", "provider_error_code", "rule", "limit_dimension")
        assert [getattr(told.signal, one) for one in words] == [getattr(polled.signal, one) for one in words]
        assert (told.partial and told.partial.text) == (polled.partial and polled.partial.text)


def _ended(outcome):
    return None if isinstance(outcome, Running) else outcome


@pytest.mark.parametrize("preset", sorted(EXPECTED))
def test_every_error_of_every_provider_has_its_class(sim, preset):
    """All named answers of the simulator, over the wire, with the hint they carry, in one call each."""
    sim.client.fault(preset)

    outcome = adapter(sim, BY_PREFIX[preset.partition("_")[0]]).submit(said("hi"))

    assert isinstance(outcome, Refused)
    assert outcome.signal.error_class == EXPECTED[preset]
    assert outcome.partial is None
    if preset in HINTS:
        assert outcome.signal.retry_after_ms == HINTS[preset] * 1000
    assert len(sim.client.ledger()) == 1


def test_no_named_error_is_left_out():
    """A new answer of the simulator needs its class here."""
    prefixes = tuple(f"{prefix}_" for prefix in BY_PREFIX)

    assert {preset for preset in PRESETS if preset.startswith(prefixes)} == set(EXPECTED)


@pytest.mark.parametrize("case", list(URLS))
@pytest.mark.parametrize("preset", ["hang_accepted", "cut", "cut_accepted", "cut_body", "empty_body", "truncated_json"])
def test_a_lost_answer_is_an_unknown_outcome(sim, case, preset):
    """Whether the provider did the work is only in its ledger, and nothing is called twice."""
    sim.client.fault(preset)

    outcome = adapter(sim, case, timeout_ms=700).submit(said("hi"))

    assert outcome.signal.error_class is ErrorClass.OUTCOME_UNKNOWN
    assert len(sim.client.ledger()) == 1


@pytest.mark.parametrize("case", list(URLS))
def test_four_attempts_under_a_standing_fault_are_four_calls(sim, case):
    """Hidden retries would show in the ledger."""
    sim.client.fault("rate_limited", count=None)
    provider = adapter(sim, case)

    for _ in range(4):
        assert provider.submit(said("hi")).signal.error_class is ErrorClass.PACING

    assert len(sim.client.ledger()) == 4


def test_a_gateways_own_account_is_kept(sim):
    """Who served, what it cost, and that another model did."""
    result = adapter(sim, ("gateway", "chat")).submit(said("hi [[sim:served=other/model]]")).result

    assert result.served_model == "other/model"
    assert result.evidence["route_result"] == "other_model"
    assert result.evidence["served_by"] == "SimProvider"
    assert result.reported_cost_micros is not None


@pytest.mark.parametrize("case", list(URLS))
def test_a_wrong_key_is_a_credential_fault(sim, case):
    """And the key is nowhere in what is told about it."""
    provider = build(*case, getattr(sim, URLS[case]), "sk-invalid", "route-1", 5_000)

    outcome = provider.submit(said("hi"))

    assert outcome.signal.error_class is ErrorClass.CREDENTIAL
    assert "sk-invalid" not in repr(outcome)
