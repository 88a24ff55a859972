"""What do Anthropic's error types and codes mean?

Type and `details.error_code` are stable, messages are not: text is looked at in one row only, for the empty balance
and the user's own spend limit, which arrive as an ordinary `invalid_request_error`.
"""

from __future__ import annotations

from breakwater.domain.rules.rows import ANY_CALLER_STATUS, Row, Rows, When
from breakwater.domain.signals import ErrorClass, LimitDimension

ANTHROPIC: Rows = (
    Row(
        name="anthropic.spend",
        when=When(
            words=(
                "billing_error",
                "contract_spend_limit_reached",
                "enforced_spend_limit_reached",
                "linked_organization_billing_unavailable",
                "linked_organization_spend_limit_reached",
            )
        ),
        error_class=ErrorClass.SPEND,
        limit_dimension=LimitDimension.SPEND,
        implies=429,
    ),
    Row(
        name="anthropic.spend_text",
        when=When(
            status=(200, 400, 429),
            words=("invalid_request_error", "rate_limit_error"),
            text=("credit balance is too low", "spend limit", "spending limit", "api usage limits"),
        ),
        error_class=ErrorClass.SPEND,
        limit_dimension=LimitDimension.SPEND,
        implies=400,
    ),
    Row(
        name="anthropic.on_hold",
        when=When(words=("organization_on_hold", "cmek_key_disabled", "cmek_key_network_blocked")),
        error_class=ErrorClass.PERMISSION,
        implies=400,
    ),
    Row(
        name="anthropic.boundary",
        when=When(words=("region_not_supported", "unsupported_region")),
        error_class=ErrorClass.DATA_BOUNDARY,
        implies=400,
    ),
    Row(
        name="anthropic.body_timeout",  # our request did not arrive whole, and nothing was done
        when=When(words=("request_body_timeout",)),
        error_class=ErrorClass.NOT_SENT,
        implies=400,
    ),
    Row(
        name="anthropic.rate_limit",  # ramp_limit_exceeded is a code of this type
        when=When(words=("rate_limit_error", "ramp_limit_exceeded")),
        error_class=ErrorClass.PACING,
        implies=429,
    ),
    Row(
        name="anthropic.overloaded",
        when=When(words=("overloaded_error",)),
        error_class=ErrorClass.OVERLOAD,
        implies=529,
    ),
    Row(
        name="anthropic.timeout",
        when=When(words=("timeout_error",)),
        error_class=ErrorClass.OUTCOME_UNKNOWN,
        implies=504,
    ),
    Row(
        name="anthropic.key_unreachable",  # back in minutes
        when=When(words=("cmek_context_unavailable", "cmek_key_unreachable")),
        error_class=ErrorClass.SERVER_FAULT,
        implies=503,
    ),
    Row(
        name="anthropic.api_error",
        when=When(status=(200, 500, 502), words=("api_error",)),
        error_class=ErrorClass.SERVER_FAULT,
        implies=500,
    ),
    Row(
        name="anthropic.credential",
        when=When(words=("authentication_error",)),
        error_class=ErrorClass.CREDENTIAL,
        implies=401,
    ),
    Row(
        name="anthropic.permission",
        when=When(words=("permission_error",)),
        error_class=ErrorClass.PERMISSION,
        implies=403,
    ),
    Row(
        name="anthropic.conflict",  # no lock: something has to be resolved first
        when=When(status=(409,)),
        error_class=ErrorClass.CALLER_FAULT,
    ),
    Row(
        name="anthropic.caller",
        when=When(
            status=ANY_CALLER_STATUS,
            words=("conflict_error", "invalid_request_error", "not_found_error", "request_too_large"),
        ),
        error_class=ErrorClass.CALLER_FAULT,
        implies=400,
    ),
)
