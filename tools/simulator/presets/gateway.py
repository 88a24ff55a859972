"""What do OpenAI-compatible gateways answer when something is wrong?"""

from __future__ import annotations

import json
from typing import Any

from .rows import Template, gateway_row, openai_row


def _ok(body: Any) -> Template:
    return {"status": 200, "body": body}


def _choice_error(code: int) -> dict[str, Any]:
    return {
        "id": "gen-simulated",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": "sim/model",
        "choices": [
            {
                "index": 0,
                "finish_reason": "error",
                "error": {"code": code, "message": "The upstream failed."},
                "message": {"role": "assistant", "content": ""},
            }
        ],
    }


_OPENROUTER: dict[str, Template] = {
    "openrouter_400_context": gateway_row(
        400, "context_length_exceeded", "This endpoint's maximum context length is 8192 tokens."
    ),
    "openrouter_401": gateway_row(401, "authentication", "No auth credentials found"),
    "openrouter_402_inflight": gateway_row(
        402,
        "payment_required",
        "Requests in flight already use the remaining budget.",
        limit_source="openrouter_in_flight_budget",
        retry_after="3",
    ),
    "openrouter_402_credits": gateway_row(
        402, "payment_required", "Insufficient credits.", limit_source="openrouter_credits"
    ),
    "openrouter_402_key_limit": gateway_row(
        402, "payment_required", "Key limit exceeded.", limit_source="openrouter_key_limit"
    ),
    "openrouter_403_budget": gateway_row(
        403,
        "permission_denied",
        "The budget of the guardrail is used up.",
        limit_source="openrouter_guardrail_budget",
        resets_at="2027-01-01T00:00:00Z",
    ),
    "openrouter_403_workspace": gateway_row(
        403,
        "permission_denied",
        "The budget of the workspace is used up.",
        limit_source="openrouter_workspace_budget",
        resets_at="2027-01-01T00:00:00Z",
    ),
    "openrouter_403_moderation": gateway_row(
        403,
        "content_policy_violation",
        "Your chosen model requires moderation and your input was flagged.",
        reasons=["violence"],
        flagged_input="simulated",
        provider_name="SimProvider",
    ),
    "openrouter_404": gateway_row(404, "not_found", "No endpoints found that support images."),
    "openrouter_408": gateway_row(408, "timeout", "The request timed out."),
    "openrouter_413": gateway_row(413, "payload_too_large", "The request is too large."),
    "openrouter_429_rate": gateway_row(429, "rate_limit_exceeded", "Rate limit exceeded.", retry_after="2"),
    "openrouter_500": gateway_row(500, "server", "Internal Server Error"),
    "openrouter_502_unavailable": gateway_row(
        502,
        "provider_unavailable",
        "Provider returned error",
        provider_name="SimProvider",
        raw=json.dumps({"error": {"message": "upstream down"}}),
        previous_errors=[{"code": 503, "message": "upstream busy"}],
    ),
    "openrouter_503_overloaded": gateway_row(
        503, "provider_overloaded", "The provider is overloaded.", retry_after="2"
    ),
    "openrouter_504": gateway_row(504, "timeout", "The provider took too long."),
    "openrouter_503_availability": {
        "status": 503,
        "body": {
            "error": {
                "message": "The model is out of capacity.",
                "http_status": 503,
                "error_type": "provider_overloaded",
                "availability": {
                    "code": "capacity_exhausted",
                    "retryable": True,
                    "retry_after": 5,
                    "fallback_models": ["sim/other"],
                },
            }
        },
    },
}
_LITELLM: dict[str, Template] = {
    "litellm_422_budget": openai_row(
        422, "422", "budget_exceeded", "Budget has been exceeded! Current cost: 11, Max budget: 10"
    ),
    "litellm_429_throttling": openai_row(
        429,
        "429",
        "throttling_error",
        "litellm.RateLimitError: RateLimitError: OpenAIException - Rate limit reached.",
    ),
    "litellm_429_no_deployments": openai_row(
        429, "429", "None", "No deployments available for selected model.", retry_after="6"
    ),
    "litellm_401_key": openai_row(
        401, "401", "token_not_found_in_db", "Authentication Error, Invalid proxy server token."
    ),
    "litellm_403_model": openai_row(403, "403", "key_model_access_denied", "The key may not use this model."),
    "litellm_503_detail": {"status": 503, "body": {"detail": "Service not ready."}},
}
_OTHERS: dict[str, Template] = {
    "gateway_200_error": _ok({"error": {"message": "The upstream failed.", "code": 502}}),
    "gateway_200_rate_limit": _ok({"error": {"message": "Limited upstream.", "code": 429}}),
    "gateway_200_not_found": _ok({"error": {"message": "No endpoint supports it.", "code": 404}}),
    "gateway_200_choice_error": _ok(_choice_error(429)),
    "gateway_529": gateway_row(529, "provider_overloaded", "The site is overloaded."),
    "gateway_402_quota": openai_row(402, "insufficient_quota", "insufficient_quota", "The plan's credits are used up."),
    "gateway_502_source": {
        "status": 502,
        "body": {"error": {"message": "Upstream failed.", "code": 502, "source": "provider"}},
    },
    "gateway_500_text": {"status": 500, "body": {"error": "something broke"}},
    "gateway_500_list": {"status": 500, "body": [{"error": {"message": "broke", "code": 500}}]},
    "vllm_400": {
        "status": 400,
        "body": {"error": {"message": "Bad.", "type": "BadRequestError", "param": None, "code": 400}},
    },
    "vllm_400_flat": {
        "status": 400,
        "body": {
            "object": "error",
            "message": "Bad.",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
    },
}
ROWS: dict[str, Template] = {**_OPENROUTER, **_LITELLM, **_OTHERS}
