"""What do OpenAI's error codes mean?

Money-type 429s share one type (`insufficient_quota`) and are never a matter of waiting. The codes of a failed
background response stand in the same list: they arrive inside a 200.
"""

from __future__ import annotations

from breakwater.domain.rules.rows import ANY_CALLER_STATUS, Row, Rows, When
from breakwater.domain.signals import ErrorClass, LimitDimension

OPENAI: Rows = (
    Row(
        name="openai.usage_limit",
        when=When(words=("organization_usage_limit_exceeded",)),
        error_class=ErrorClass.QUOTA,
        limit_dimension=LimitDimension.SPEND,
        implies=429,
    ),
    Row(
        name="openai.spend",
        when=When(
            words=(
                "credit_balance_exhausted",
                "organization_spend_limit_exceeded",
                "project_spend_limit_exceeded",
                "billing_hard_limit_reached",
                "insufficient_quota",  # the one code of old for all of them
            )
        ),
        error_class=ErrorClass.SPEND,
        limit_dimension=LimitDimension.SPEND,
        implies=429,
    ),
    Row(
        name="openai.slow_down",  # 429 today, 503 on older endpoints
        when=When(words=("slow_down",)),
        error_class=ErrorClass.PACING,
        implies=429,
    ),
    Row(
        name="openai.overloaded",
        when=When(words=("server_is_overloaded", "service_unavailable_error")),
        error_class=ErrorClass.OVERLOAD,
        implies=503,
    ),
    Row(
        name="openai.boundary",
        when=When(words=("data_residency_mismatch", "unsupported_country_region_territory")),
        error_class=ErrorClass.DATA_BOUNDARY,
        implies=403,
    ),
    Row(
        name="openai.content",
        when=When(
            words=(
                "bio_policy",
                "content_filter",
                "content_policy_violation",
                "image_content_policy_violation",
                "invalid_prompt",  # of a response: flagged by a usage policy
                "misalignment_policy_violation",
                "moderation_blocked",
            )
        ),
        error_class=ErrorClass.CONTENT_REFUSED,
        implies=400,
    ),
    Row(
        name="openai.credential",
        when=When(words=("account_deactivated", "invalid_api_key", "invalid_organization")),
        error_class=ErrorClass.CREDENTIAL,
        implies=401,
    ),
    Row(
        name="openai.quota_text",  # only where the codes above are missing
        when=When(status=(429,), text=("you exceeded your current quota",)),
        error_class=ErrorClass.SPEND,
        limit_dimension=LimitDimension.SPEND,
    ),
    Row(
        name="openai.rate_limit",
        when=When(words=("rate_limit_error", "rate_limit_exceeded")),
        error_class=ErrorClass.PACING,
        implies=429,
    ),
    Row(
        name="openai.server_error",
        when=When(status=(200, 500, 502), words=("server_error", "vector_store_timeout")),
        error_class=ErrorClass.SERVER_FAULT,
        implies=500,
    ),
    Row(
        name="openai.conversation_locked",  # said with 400 as well: another response is still writing to it
        when=When(words=("conversation_locked",)),
        error_class=ErrorClass.LOCKED,
        implies=409,
    ),
    Row(
        name="openai.locked",  # in its envelope, which calls everything an invalid request
        when=When(status=(409,), words=("invalid_request_error",)),
        error_class=ErrorClass.LOCKED,
    ),
    Row(
        name="openai.caller",
        when=When(
            status=ANY_CALLER_STATUS,
            words=(
                "context_length_exceeded",
                "empty_image_file",
                "failed_to_download_image",
                "image_file_not_found",
                "image_file_too_large",
                "image_parse_error",
                "image_too_large",
                "image_too_small",
                "invalid_base64_image",
                "invalid_image",
                "invalid_image_format",
                "invalid_image_mode",
                "invalid_image_url",
                "invalid_request_error",
                "model_not_found",
                "unsupported_image_media_type",
            ),
        ),
        error_class=ErrorClass.CALLER_FAULT,
        implies=400,
    ),
)
