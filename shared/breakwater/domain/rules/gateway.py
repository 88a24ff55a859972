"""What do the gateways' own words mean?

OpenRouter says it with `error_type` and `limit_source`, LiteLLM with `type`, vLLM with a class name. What a gateway
only passes on is read by the rows of the provider it came from, which `classify.py` puts beneath these.
"""

from __future__ import annotations

from breakwater.domain.rules.facts import FLAGGED_INPUT
from breakwater.domain.rules.rows import ANY_CALLER_STATUS, Row, Rows, When
from breakwater.domain.signals import ErrorClass, LimitDimension

THROTTLED: Rows = (
    # LiteLLM puts this type beside whatever its upstream said: it means something where nothing else does.
    Row(
        name="gateway.throttled",
        when=When(words=("throttling_error",)),
        error_class=ErrorClass.PACING,
        implies=429,
    ),
)
_ERRORS = range(400, 600)  # outside them the text may be what a model wrote

GATEWAY: Rows = (
    Row(
        name="gateway.in_flight_budget",  # 402, and yet over as soon as running calls are
        when=When(words=("openrouter_in_flight_budget",)),
        error_class=ErrorClass.PACING,
        limit_dimension=LimitDimension.CONCURRENCY,
        implies=402,
    ),
    Row(
        name="gateway.budget",
        when=When(
            words=(
                "budget_exceeded",  # LiteLLM, 422 by default
                "openrouter_credits",
                "openrouter_guardrail_budget",
                "openrouter_key_limit",
                "openrouter_workspace_budget",
                "payment_required",
            )
        ),
        error_class=ErrorClass.SPEND,
        limit_dimension=LimitDimension.SPEND,
        implies=402,
    ),
    Row(
        name="gateway.spend_text",  # LiteLLM, 400: Anthropic's sentence without Anthropic's words
        when=When(status=_ERRORS, text=("credit balance is too low",)),
        error_class=ErrorClass.SPEND,
        limit_dimension=LimitDimension.SPEND,
        implies=400,
    ),
    Row(
        name="gateway.credential",
        when=When(words=("authentication", "token_not_found_in_db")),
        error_class=ErrorClass.CREDENTIAL,
        implies=401,
    ),
    Row(
        name="gateway.content",
        when=When(words=("content_policy_violation", "refusal", FLAGGED_INPUT)),
        error_class=ErrorClass.CONTENT_REFUSED,
        implies=403,
    ),
    Row(
        name="gateway.permission",
        when=When(words=("key_model_access_denied", "permission_denied")),
        error_class=ErrorClass.PERMISSION,
        implies=403,
    ),
    Row(
        name="gateway.boundary",  # no endpoint is left that keeps the promised data policy
        when=When(status=_ERRORS, text=("matching your data policy",)),
        error_class=ErrorClass.DATA_BOUNDARY,
        implies=404,
    ),
    Row(
        name="gateway.no_deployment",  # LiteLLM answers 429 while its deployments cool down
        when=When(status=_ERRORS, text=("no deployments available", "no healthy deployment", "no healthy/deployments")),
        error_class=ErrorClass.OVERLOAD,
        implies=429,
    ),
    Row(
        name="gateway.overloaded",
        when=When(words=("capacity_exhausted", "provider_overloaded", "temporarily_unavailable")),
        error_class=ErrorClass.OVERLOAD,
        implies=503,
    ),
    Row(
        name="gateway.unavailable",
        when=When(words=("provider_unavailable", "server")),
        error_class=ErrorClass.SERVER_FAULT,
        implies=502,
    ),
    Row(
        name="gateway.timeout",
        when=When(words=("timeout",)),
        error_class=ErrorClass.OUTCOME_UNKNOWN,
        implies=504,
    ),
    Row(
        name="gateway.gemini_text",  # Gemini says "current quota" of a minute's as well: that is no money
        when=When(status=(429,), text=("geminiexception", "vertexaiexception", "vertex_aiexception")),
        error_class=ErrorClass.PACING,
    ),
    Row(name="gateway.locked", when=When(status=(409,)), error_class=ErrorClass.LOCKED),
    Row(
        name="gateway.caller",
        when=When(
            status=ANY_CALLER_STATUS,
            words=(
                "badrequesterror",
                "context_length_exceeded",
                "invalid_prompt",
                "invalid_request",
                "max_tokens_exceeded",
                "not_found",
                "payload_too_large",
                "precondition_failed",
                "string_too_long",
                "token_limit_exceeded",
                "unprocessable",
            ),
        ),
        error_class=ErrorClass.CALLER_FAULT,
        implies=400,
    ),
)
