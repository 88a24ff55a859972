"""What does OpenAI answer when something is wrong?"""

from __future__ import annotations

from .rows import Template, openai_row

_CALLER = "invalid_request_error"
_NO_MONEY = "insufficient_quota"
_BUSY = "service_unavailable_error"

ROWS: dict[str, Template] = {
    "openai_429_rate": openai_row(
        429,
        "rate_limit_exceeded",
        "requests",
        "Rate limit reached for requests per min (RPM): Limit 500, Used 500, Requested 1.",
        retry_after="2",
        x_ratelimit_limit_requests="500",
        x_ratelimit_remaining_requests="0",
        x_ratelimit_reset_requests="6m0s",
    ),
    "openai_429_tokens": openai_row(
        429,
        "rate_limit_exceeded",
        "tokens",
        "Rate limit reached on tokens per min (TPM): Limit 30000, Used 29900, Requested 200.",
        retry_after_ms="1500",
        retry_after="2",
        x_ratelimit_limit_tokens="30000",
        x_ratelimit_remaining_tokens="100",
        x_ratelimit_reset_tokens="8.64s",
    ),
    "openai_429_no_hint": openai_row(429, "rate_limit_exceeded", "requests", "Rate limit reached for requests."),
    "openai_slow_down": openai_row(
        429,
        "slow_down",
        "rate_limit_error",
        "Your traffic grew too fast. Slow down and raise it gradually.",
        retry_after="5",
    ),
    "openai_503_slow_down": openai_row(503, "slow_down", _BUSY, "Your traffic grew too fast. Slow down."),
    "openai_503_overloaded": openai_row(
        503, "server_is_overloaded", _BUSY, "The server is overloaded. Try again later."
    ),
    "openai_429_credit_balance": openai_row(
        429, "credit_balance_exhausted", _NO_MONEY, "The prepaid credit balance is used up."
    ),
    "openai_429_org_spend": openai_row(
        429, "organization_spend_limit_exceeded", _NO_MONEY, "The organization limit is reached."
    ),
    "openai_429_project_spend": openai_row(
        429, "project_spend_limit_exceeded", _NO_MONEY, "The project limit is reached."
    ),
    "openai_429_org_usage": openai_row(
        429, "organization_usage_limit_exceeded", _NO_MONEY, "The assigned limit is reached."
    ),
    "openai_429_insufficient_quota": openai_row(
        429, _NO_MONEY, _NO_MONEY, "You exceeded your current quota, please check your plan."
    ),
    "openai_400_invalid": openai_row(400, None, _CALLER, "The request is not valid."),
    "openai_400_context_length": openai_row(
        400, "context_length_exceeded", _CALLER, "The input exceeds the model's context window."
    ),
    "openai_401_key": openai_row(401, "invalid_api_key", _CALLER, "Incorrect API key provided: sk-sim."),
    "openai_403_region": openai_row(
        403,
        "unsupported_country_region_territory",
        "request_forbidden",
        "Country, region, or territory not supported.",
    ),
    "openai_404_model": openai_row(
        404, "model_not_found", _CALLER, "The model does not exist or you do not have access."
    ),
    "openai_408_timeout": openai_row(408, None, "timeout", "The request timed out."),
    "openai_409_conflict": openai_row(409, None, "conflict", "The object is locked."),
    "openai_413_too_large": openai_row(413, None, _CALLER, "The request is too large."),
    "openai_422_invalid": openai_row(422, None, _CALLER, "The request cannot be processed."),
    "openai_500": openai_row(500, None, "server_error", "The server had an error while processing your request."),
    "openai_502": openai_row(502, None, "server_error", "Bad gateway."),
    "openai_529": openai_row(529, None, "server_error", "The site is overloaded."),
    "openai_200_error": openai_row(200, "server_error", "server_error", "An error inside a 200."),
}
