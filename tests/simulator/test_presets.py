"""Is every named answer what its provider's error table says, in the eyes of the vendor's own client?"""

import anthropic
import httpx
import openai
import pytest
from google.genai import errors

from tools.simulator.presets import BY_PROVIDER, PRESETS, STANDING, template

MONEY = "insufficient_quota"
CALLER = "invalid_request_error"
OPENAI = [
    ("openai_429_rate", openai.RateLimitError, "rate_limit_exceeded", "requests", "2"),
    ("openai_429_tokens", openai.RateLimitError, "rate_limit_exceeded", "tokens", "2"),
    ("openai_429_no_hint", openai.RateLimitError, "rate_limit_exceeded", "requests", None),
    ("openai_slow_down", openai.RateLimitError, "slow_down", "rate_limit_error", "5"),
    ("openai_503_slow_down", openai.InternalServerError, "slow_down", "service_unavailable_error", None),
    ("openai_503_overloaded", openai.InternalServerError, "server_is_overloaded", "service_unavailable_error", None),
    ("openai_429_credit_balance", openai.RateLimitError, "credit_balance_exhausted", MONEY, None),
    ("openai_429_org_spend", openai.RateLimitError, "organization_spend_limit_exceeded", MONEY, None),
    ("openai_429_project_spend", openai.RateLimitError, "project_spend_limit_exceeded", MONEY, None),
    ("openai_429_org_usage", openai.RateLimitError, "organization_usage_limit_exceeded", MONEY, None),
    ("openai_429_insufficient_quota", openai.RateLimitError, MONEY, MONEY, None),
    ("openai_400_invalid", openai.BadRequestError, None, CALLER, None),
    ("openai_400_context_length", openai.BadRequestError, "context_length_exceeded", CALLER, None),
    ("openai_401_key", openai.AuthenticationError, "invalid_api_key", CALLER, None),
    (
        "openai_403_region",
        openai.PermissionDeniedError,
        "unsupported_country_region_territory",
        "request_forbidden",
        None,
    ),
    ("openai_404_model", openai.NotFoundError, "model_not_found", CALLER, None),
    ("openai_408_timeout", openai.APIStatusError, None, "timeout", None),
    ("openai_409_conflict", openai.ConflictError, None, "conflict", None),
    ("openai_413_too_large", openai.APIStatusError, None, CALLER, None),
    ("openai_422_invalid", openai.UnprocessableEntityError, None, CALLER, None),
    ("openai_500", openai.InternalServerError, None, "server_error", None),
    ("openai_502", openai.InternalServerError, None, "server_error", None),
    ("openai_529", openai.InternalServerError, None, "server_error", None),
]
RATE = "rate_limit_error"
ANTHROPIC = [
    ("anthropic_400_invalid", anthropic.BadRequestError, CALLER, None, None),
    ("anthropic_400_spend_limit", anthropic.BadRequestError, CALLER, None, None),
    ("anthropic_400_credit", anthropic.BadRequestError, CALLER, None, None),
    ("anthropic_400_on_hold", "OrganizationOnHoldError", CALLER, "organization_on_hold", None),
    ("anthropic_401", anthropic.AuthenticationError, "authentication_error", None, None),
    ("anthropic_402", "PaymentRequiredError", "billing_error", None, None),
    (
        "anthropic_402_linked_spend",
        "LinkedOrganizationSpendLimitReachedError",
        "billing_error",
        "linked_organization_spend_limit_reached",
        None,
    ),
    (
        "anthropic_402_linked_billing",
        "LinkedOrganizationBillingUnavailableError",
        "billing_error",
        "linked_organization_billing_unavailable",
        None,
    ),
    ("anthropic_403", anthropic.PermissionDeniedError, "permission_error", None, None),
    ("anthropic_404", anthropic.NotFoundError, "not_found_error", None, None),
    ("anthropic_408", "RequestTimeoutError", "timeout_error", None, None),
    ("anthropic_409", anthropic.ConflictError, "conflict_error", None, None),
    ("anthropic_412", "PreconditionFailedError", CALLER, None, None),
    ("anthropic_413", "ContentTooLargeError", "request_too_large", None, None),
    ("anthropic_422", anthropic.UnprocessableEntityError, CALLER, None, None),
    ("anthropic_429_rate", anthropic.RateLimitError, RATE, None, "3"),
    ("anthropic_429_ramp", "RampLimitExceededError", RATE, "ramp_limit_exceeded", "10"),
    ("anthropic_spend_limit", "EnforcedSpendLimitReachedError", RATE, "enforced_spend_limit_reached", None),
    ("anthropic_contract_spend_limit", "ContractSpendLimitReachedError", RATE, "contract_spend_limit_reached", None),
    ("anthropic_429_workspace", anthropic.RateLimitError, RATE, None, None),
    ("anthropic_431", "RequestHeaderFieldsTooLargeError", CALLER, None, None),
    ("anthropic_499", "ClientClosedRequestError", CALLER, None, None),
    ("anthropic_500", anthropic.InternalServerError, "api_error", None, None),
    ("anthropic_501", "HTTPNotImplementedError", "api_error", None, None),
    ("anthropic_503", "ServiceUnavailableError", "api_error", None, None),
    ("anthropic_503_cmek", "CMEKContextUnavailableError", "api_error", "cmek_context_unavailable", None),
    ("anthropic_504", "GatewayTimeoutError", "timeout_error", None, None),
    ("anthropic_529", "OverloadedError", "overloaded_error", None, None),
    ("anthropic_529_hint", "OverloadedError", "overloaded_error", None, "4"),
]
FULL = "RESOURCE_EXHAUSTED"
GEMINI = [
    ("gemini_400_invalid", 400, "INVALID_ARGUMENT", None, None),
    ("gemini_400_key", 400, "INVALID_ARGUMENT", None, None),
    ("gemini_400_precondition", 400, "FAILED_PRECONDITION", None, None),
    ("gemini_402", 402, FULL, None, None),
    ("gemini_403", 403, "PERMISSION_DENIED", None, None),
    ("gemini_404", 404, "NOT_FOUND", None, None),
    ("gemini_429_minute", 429, FULL, "17s", ["GenerateRequestsPerMinutePerProjectPerModel"]),
    ("gemini_429_list", 429, FULL, "17s", ["GenerateRequestsPerMinutePerProjectPerModel"]),
    ("gemini_429_tokens", 429, FULL, "45.837906927s", ["GenerateContentPaidTierInputTokensPerModelPerMinute"]),
    ("gemini_429_day", 429, FULL, "34s", ["GenerateRequestsPerDayPerProjectPerModel"]),
    ("gemini_429_day_long", 429, FULL, "67202s", ["GenerateRequestsPerDayPerProjectPerModel-FreeTier"]),
    ("gemini_429_day_info", 429, FULL, "34s", None),
    (
        "gemini_429_day_and_minute",
        429,
        FULL,
        "20s",
        [
            "GenerateRequestsPerMinutePerProjectPerModel-FreeTier",
            "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
        ],
    ),
    ("gemini_429_limit_zero", 429, FULL, "20s", ["GenerateRequestsPerDayPerProjectPerModel-FreeTier"]),
    ("gemini_429_prepay", 429, FULL, None, None),
    ("gemini_429_spend", 429, FULL, "600s", None),
    ("gemini_429_no_details", 429, FULL, None, None),
    ("gemini_500", 500, "INTERNAL", None, None),
    ("gemini_503", 503, "UNAVAILABLE", None, None),
    ("gemini_504", 504, "DEADLINE_EXCEEDED", None, None),
    ("gemini_529", 529, "UNAVAILABLE", None, None),
]
GATEWAY = [
    ("openrouter_400_context", 400, "context_length_exceeded", None, None),
    ("openrouter_401", 401, "authentication", None, None),
    ("openrouter_402_inflight", 402, "payment_required", "openrouter_in_flight_budget", "3"),
    ("openrouter_402_credits", 402, "payment_required", "openrouter_credits", None),
    ("openrouter_402_key_limit", 402, "payment_required", "openrouter_key_limit", None),
    ("openrouter_403_budget", 403, "permission_denied", "openrouter_guardrail_budget", None),
    ("openrouter_403_workspace", 403, "permission_denied", "openrouter_workspace_budget", None),
    ("openrouter_403_moderation", 403, "content_policy_violation", None, None),
    ("openrouter_404", 404, "not_found", None, None),
    ("openrouter_408", 408, "timeout", None, None),
    ("openrouter_413", 413, "payload_too_large", None, None),
    ("openrouter_429_rate", 429, "rate_limit_exceeded", None, "2"),
    ("openrouter_500", 500, "server", None, None),
    ("openrouter_502_unavailable", 502, "provider_unavailable", None, None),
    ("openrouter_503_overloaded", 503, "provider_overloaded", None, "2"),
    ("openrouter_504", 504, "timeout", None, None),
    ("gateway_529", 529, "provider_overloaded", None, None),
]
COMPATIBLE = [
    ("openrouter_503_availability", 503, None, None),
    ("litellm_422_budget", 422, "422", "budget_exceeded"),
    ("litellm_429_throttling", 429, "429", "throttling_error"),
    ("litellm_429_no_deployments", 429, "429", "None"),
    ("litellm_401_key", 401, "401", "token_not_found_in_db"),
    ("litellm_403_model", 403, "403", "key_model_access_denied"),
    ("litellm_503_detail", 503, None, None),
    ("gateway_402_quota", 402, "insufficient_quota", "insufficient_quota"),
    ("gateway_502_source", 502, "502", None),
    ("gateway_500_text", 500, None, None),
    ("gateway_500_list", 500, None, None),
    ("vllm_400", 400, "400", "BadRequestError"),
    ("vllm_400_flat", 400, "400", "BadRequestError"),
]
INSIDE_200 = [
    ("openai_200_error", "/openai/v1/chat/completions"),
    ("gateway_200_error", "/gateway/v1/chat/completions"),
    ("gateway_200_rate_limit", "/gateway/v1/chat/completions"),
    ("gateway_200_not_found", "/gateway/v1/chat/completions"),
    ("gateway_200_choice_error", "/gateway/v1/chat/completions"),
    ("anthropic_200_error", "/anthropic/v1/messages"),
    ("gemini_200_error", "/gemini/v1beta/models/gemini-2.5-flash:generateContent"),
]
PAGES = [("html_200", 200), ("html_502", 502), ("html_520", 520), ("html_522", 522), ("html_524", 524)]
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
