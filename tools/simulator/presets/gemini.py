"""What does Gemini answer when something is wrong?"""

from __future__ import annotations

from typing import Any

from .rows import Template, gemini_row

_TYPES = "type.googleapis.com/google.rpc."
_METRIC = "generativelanguage.googleapis.com/"
_FULL = "RESOURCE_EXHAUSTED"
_REQUESTS_MINUTE = "GenerateRequestsPerMinutePerProjectPerModel"
_REQUESTS_DAY = "GenerateRequestsPerDayPerProjectPerModel"
_TOKENS_MINUTE = "GenerateContentPaidTierInputTokensPerModelPerMinute"


def _quota(*violations: tuple[str, str, str]) -> dict[str, Any]:
    listed = [
        {
            "quotaMetric": f"{_METRIC}{metric}",
            "quotaId": quota_id,
            "quotaDimensions": {"location": "global", "model": "gemini-sim"},
            "quotaValue": value,
        }
        for metric, quota_id, value in violations
    ]
    return {"@type": f"{_TYPES}QuotaFailure", "violations": listed}


def _retry(delay: str) -> dict[str, Any]:
    return {"@type": f"{_TYPES}RetryInfo", "retryDelay": delay}


def _reason(reason: str, **metadata: str) -> dict[str, Any]:
    return {
        "@type": f"{_TYPES}ErrorInfo",
        "reason": reason,
        "domain": "googleapis.com",
        "metadata": metadata,
    }


_HELP = {
    "@type": f"{_TYPES}Help",
    "links": [{"description": "Learn more", "url": "https://ai.google.dev/gemini-api/docs"}],
}
_MINUTE = ("generate_content_requests", _REQUESTS_MINUTE, "60")
_DAY = ("generate_requests_per_model_per_day", _REQUESTS_DAY, "1000")
_TOKENS = ("generate_content_input_token_count", _TOKENS_MINUTE, "1000000")
_FREE_DAY = ("generate_content_free_tier_requests", f"{_REQUESTS_DAY}-FreeTier", "20")
_FREE_MINUTE = ("generate_content_free_tier_requests", f"{_REQUESTS_MINUTE}-FreeTier", "5")
_QUOTA_TEXT = "You exceeded your current quota, please check your plan and billing details."

ROWS: dict[str, Template] = {
    "gemini_400_invalid": gemini_row(400, "INVALID_ARGUMENT", "Invalid JSON payload received."),
    "gemini_400_key": gemini_row(
        400,
        "INVALID_ARGUMENT",
        "API key not valid. Please pass a valid API key.",
        _reason("API_KEY_INVALID", service="generativelanguage.googleapis.com"),
    ),
    "gemini_400_precondition": gemini_row(
        400, "FAILED_PRECONDITION", "User location is not supported for the API use."
    ),
    "gemini_402": gemini_row(402, _FULL, "Your prepayment credits are depleted."),
    "gemini_403": gemini_row(403, "PERMISSION_DENIED", "The caller does not have permission."),
    "gemini_404": gemini_row(404, "NOT_FOUND", "models/gemini-none is not found."),
    "gemini_429_minute": gemini_row(
        429,
        _FULL,
        f"{_QUOTA_TEXT} Please retry in 17.223932614s.",
        _quota(_MINUTE),
        _HELP,
        _retry("17s"),
    ),
    "gemini_429_tokens": gemini_row(429, _FULL, _QUOTA_TEXT, _quota(_TOKENS), _HELP, _retry("45.837906927s")),
    "gemini_429_day": gemini_row(429, _FULL, _QUOTA_TEXT, _quota(_DAY), _HELP, _retry("34s")),
    "gemini_429_day_long": gemini_row(429, _FULL, _QUOTA_TEXT, _quota(_FREE_DAY), _HELP, _retry("67202s")),
    "gemini_429_day_info": gemini_row(
        429,
        _FULL,
        _QUOTA_TEXT,
        _reason("RATE_LIMIT_EXCEEDED", quota_limit="Gemini25ProRequestsPerDay"),
        _retry("34s"),
    ),
    "gemini_429_day_and_minute": gemini_row(
        429, _FULL, _QUOTA_TEXT, _quota(_FREE_MINUTE, _FREE_DAY), _HELP, _retry("20s")
    ),
    "gemini_429_limit_zero": gemini_row(
        429,
        _FULL,
        f"{_QUOTA_TEXT} Quota exceeded for metric: requests, limit: 0",
        _quota(("generate_content_free_tier_requests", f"{_REQUESTS_DAY}-FreeTier", "0")),
        _retry("20s"),
    ),
    "gemini_429_prepay": gemini_row(429, _FULL, "Your prepayment credits are depleted."),
    "gemini_429_spend": gemini_row(
        429, _FULL, "The spend-based limit of the last 10 minutes is reached.", _retry("600s")
    ),
    "gemini_429_no_details": gemini_row(429, _FULL, "Resource has been exhausted."),
    "gemini_500": gemini_row(500, "INTERNAL", "An internal error has occurred."),
    "gemini_503": gemini_row(503, "UNAVAILABLE", "The model is overloaded. Try again later."),
    "gemini_504": gemini_row(504, "DEADLINE_EXCEEDED", "Deadline expired before completion."),
    "gemini_529": gemini_row(529, "UNAVAILABLE", "The site is overloaded."),
    "gemini_200_error": gemini_row(200, "INTERNAL", "An error inside a 200."),
}
ROWS["gemini_429_list"] = {
    **ROWS["gemini_429_minute"],
    "body": [ROWS["gemini_429_minute"]["body"]],
}
