"""Is every named answer what its provider's error table says, in the eyes of the vendor's own client?"""

import anthropic
import httpx
import openai
import pytest
from google.genai import errors

from tests.simulator.preset_rows import ANTHROPIC, COMPATIBLE, GATEWAY, GEMINI, INSIDE_200, OPENAI, PAGES
from tools.simulator.presets import BY_PROVIDER, PRESETS, STANDING, template

ELSEWHERE = {name for name, row in PRESETS.items() if row.get("kind", "status") != "status"}
PATHS = [
    "/openai/v1/responses",
    "/anthropic/v1/messages",
    "/gemini/v1beta/models/gemini-2.5-flash:generateContent",
    "/flatkey/v1/chat/completions",
]
CHAT = {"model": "sim", "messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize(("preset", "error", "code", "kind", "after"), OPENAI)
def test_openai_rows(sim, openai_client, preset, error, code, kind, after):
    """Class, code, type and Retry-After as in the table; nothing is charged."""
    sim.fault(preset, route="openai.responses")

    with pytest.raises(openai.APIStatusError) as raised:
        openai_client.responses.create(model="gpt-4.1", input="hi")

    assert type(raised.value) is error
    assert (raised.value.code, raised.value.type) == (code, kind)
    assert raised.value.response.headers.get("retry-after") == after
    assert sim.summary()["charged"] == 0


@pytest.mark.parametrize(("preset", "error", "kind", "code", "after"), ANTHROPIC)
def test_anthropic_rows(sim, anthropic_client, preset, error, kind, code, after):
    """Class, type, error_code and Retry-After as in the table."""
    sim.fault(preset)

    with pytest.raises(anthropic.APIStatusError) as raised:
        anthropic_client.messages.create(model="claude-sonnet-5", max_tokens=9, messages=CHAT["messages"])

    assert type(raised.value).__name__ == (error if isinstance(error, str) else error.__name__)
    said = raised.value.body["error"]
    assert (said["type"], said.get("details", {}).get("error_code")) == (kind, code)
    assert raised.value.response.headers.get("retry-after") == after


@pytest.mark.parametrize(("preset", "status", "name", "delay", "quotas"), GEMINI)
def test_gemini_rows(sim, gemini_client, preset, status, name, delay, quotas):
    """Status, name, RetryInfo and quota ids as in the table."""
    sim.fault(preset)

    with pytest.raises(errors.APIError) as raised:
        gemini_client.models.generate_content(model="gemini-2.5-flash", contents="hi")

    details = raised.value.details["error"].get("details", [])
    by_type = {each["@type"].rpartition(".")[2]: each for each in details}
    assert (raised.value.code, raised.value.status) == (status, name)
    assert by_type.get("RetryInfo", {}).get("retryDelay") == delay
    violations = by_type.get("QuotaFailure", {}).get("violations")
    assert (violations and [each["quotaId"] for each in violations]) == quotas


@pytest.mark.parametrize(("preset", "status", "kind", "source", "after"), GATEWAY)
def test_openrouter_rows(sim, gateway_client, preset, status, kind, source, after):
    """Status, code, error_type, limit_source and Retry-After as in the table."""
    sim.fault(preset)

    with pytest.raises(openai.APIStatusError) as raised:
        gateway_client.chat.completions.create(**CHAT)

    metadata = raised.value.body["metadata"]
    assert (raised.value.status_code, raised.value.code) == (status, str(status))
    assert (metadata["error_type"], metadata.get("limit_source")) == (kind, source)
    assert raised.value.response.headers.get("retry-after") == after


@pytest.mark.parametrize(("preset", "status", "code", "kind"), COMPATIBLE)
def test_other_gateways_rows(sim, gateway_client, preset, status, code, kind):
    """LiteLLM, vLLM and odd bodies, as the client reads them."""
    sim.fault(preset)

    with pytest.raises(openai.APIStatusError) as raised:
        gateway_client.chat.completions.create(**CHAT)

    assert (raised.value.status_code, raised.value.code, raised.value.type) == (status, code, kind)


@pytest.mark.parametrize(("preset", "path"), INSIDE_200)
def test_errors_inside_a_200(sim, simulator, http, preset, path):
    """The status says yes, the body says no."""
    sim.fault(preset)

    answer = post(http, simulator, path)

    said = answer.json()
    assert answer.status_code == 200
    assert said.get("error") or said["choices"][0]["error"]


@pytest.mark.parametrize(("preset", "status"), PAGES)
def test_html_pages(sim, simulator, http, preset, status):
    """What stands in front of a provider answers in HTML."""
    sim.fault(preset)

    answer = post(http, simulator, PATHS[0])

    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.text.startswith("<!DOCTYPE html>")


def test_every_preset_has_a_row_in_these_tests():
    """A preset nobody checks is a preset nobody can trust."""
    tables = (OPENAI, ANTHROPIC, GEMINI, GATEWAY, COMPATIBLE, INSIDE_200, PAGES)
    checked = {row[0] for table in tables for row in table}

    assert checked | ELSEWHERE == set(PRESETS)


@pytest.mark.parametrize("name", BY_PROVIDER)
@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "gateway"])
def test_presets_in_the_words_of_whoever_is_called(name, provider):
    """Each provider has its own version of it."""
    status = {"rate_limited": 429, "overloaded_529": 529, "unavailable_503": 503, "ok_with_error": 200}

    assert template(name, provider)["status"] == status[name]


@pytest.mark.parametrize(("value", "status"), [("429", 429), ("529", 529), ("503", 503), ("html", 524)])
@pytest.mark.parametrize("path", PATHS)
def test_a_standing_fault_answers_for_every_provider(sim, simulator, http, value, status, path):
    """Each value of PROVIDER_FAULT that has a status."""
    sim.fault(STANDING[value], count=None)

    assert [post(http, simulator, path).status_code for _ in range(2)] == [status] * 2


def test_standing_faults_can_also_break_or_lie(sim, simulator, http):
    """Those are all values there are."""
    assert set(STANDING) == {"429", "529", "503", "html", "cut", "hang", "200-error"}
    assert STANDING["hang"] == "hang"
    sim.fault(STANDING["cut"])
    with pytest.raises(httpx.RemoteProtocolError):
        post(http, simulator, PATHS[0])
    sim.fault(STANDING["200-error"])
    assert "error" in post(http, simulator, PATHS[0]).json()


def post(http, simulator, path):
    """Post one body that every provider can read."""
    headers = {"authorization": "Bearer k", "x-goog-api-key": "k", "anthropic-version": "2023-06-01"}
    body = {**CHAT, "max_tokens": 9, "input": "hi", "contents": [{"parts": [{"text": "hi"}]}]}
    return http.post(f"{simulator.base_url}{path}", headers=headers, json=body)
