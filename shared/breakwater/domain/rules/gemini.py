"""What do Gemini's statuses, reasons and quotas mean?

The name of the quota comes before the retry advice: a day's quota is used up whatever a short `retryDelay` says.
Where several quotas are reported together the longest scope counts, so per-day stands above per-minute.
"""

from __future__ import annotations

from breakwater.domain.rules.facts import ZERO_QUOTA
from breakwater.domain.rules.rows import ANY_CALLER_STATUS, Row, Rows, When
from breakwater.domain.signals import ErrorClass, LimitDimension

_LIMITED = ("resource_exhausted", "rate_limit_exceeded", "quota_exceeded", "too_many_requests")

GEMINI: Rows = (
    Row(
        name="gemini.credits",
        when=When(words=(*_LIMITED, "payment_required"), text=("credits are depleted", "prepaid credit")),
        error_class=ErrorClass.SPEND,
        limit_dimension=LimitDimension.SPEND,
        implies=402,
    ),
    Row(
        name="gemini.payment",  # the status says it all: the words beside it are still those of a rate
        when=When(status=(402,)),
        error_class=ErrorClass.SPEND,
        limit_dimension=LimitDimension.SPEND,
        implies=402,
    ),
    Row(
        name="gemini.payment_word",
        when=When(words=("payment_required",)),
        error_class=ErrorClass.SPEND,
        limit_dimension=LimitDimension.SPEND,
        implies=402,
    ),
    Row(
        name="gemini.no_quota",  # not offered on this tier: waiting can't help
        when=When(words=(ZERO_QUOTA,)),
        error_class=ErrorClass.QUOTA,
        implies=429,
    ),
    Row(
        name="gemini.no_quota_text",
        when=When(words=_LIMITED, text=("limit: 0,", "limit: 0\n", "limit: 0 ")),
        error_class=ErrorClass.QUOTA,
        implies=429,
    ),
    Row(
        name="gemini.spend_quota",
        when=When(words=_LIMITED, quotas=("spend",)),
        error_class=ErrorClass.SPEND,
        limit_dimension=LimitDimension.SPEND,
        implies=429,
    ),
    Row(
        name="gemini.spend_text",  # a limit of money over a short window
        when=When(words=_LIMITED, text=("spend-based", "spend limit", "spending limit")),
        error_class=ErrorClass.SPEND,
        limit_dimension=LimitDimension.SPEND,
        implies=429,
    ),
    Row(
        name="gemini.daily_quota",
        when=When(words=_LIMITED, quotas=("perday",)),
        error_class=ErrorClass.QUOTA,
        implies=429,
    ),
    Row(
        name="gemini.daily_quota_text",  # the metric's name in the sentence, where no details came
        when=When(words=_LIMITED, text=("_per_day", "perday")),
        error_class=ErrorClass.QUOTA,
        limit_dimension=LimitDimension.DAILY_REQUESTS,
        implies=429,
    ),
    Row(
        name="gemini.daily_quota_word",
        when=When(words=("quota_exceeded",)),
        error_class=ErrorClass.QUOTA,
        limit_dimension=LimitDimension.DAILY_REQUESTS,
        implies=429,
    ),
    Row(name="gemini.rate_limit", when=When(words=_LIMITED), error_class=ErrorClass.PACING, implies=429),
    Row(
        name="gemini.credential",
        when=When(words=("api_key_invalid", "unauthenticated")),
        error_class=ErrorClass.CREDENTIAL,
        implies=401,
    ),
    Row(
        name="gemini.boundary",
        when=When(words=("failed_precondition",), text=("location is not supported", "in your country")),
        error_class=ErrorClass.DATA_BOUNDARY,
        implies=400,
    ),
    Row(
        name="gemini.billing_off",
        when=When(words=("failed_precondition",), text=("billing",)),
        error_class=ErrorClass.SPEND,
        limit_dimension=LimitDimension.SPEND,
        implies=400,
    ),
    Row(
        name="gemini.permission",
        when=When(words=("permission_denied",)),
        error_class=ErrorClass.PERMISSION,
        implies=403,
    ),
    Row(
        name="gemini.overloaded",
        when=When(words=("unavailable",)),
        error_class=ErrorClass.OVERLOAD,
        implies=503,
    ),
    Row(
        name="gemini.timeout",
        when=When(words=("deadline_exceeded",)),
        error_class=ErrorClass.OUTCOME_UNKNOWN,
        implies=504,
    ),
    Row(
        name="gemini.internal",
        when=When(words=("internal",)),
        error_class=ErrorClass.SERVER_FAULT,
        implies=500,
    ),
    Row(
        name="gemini.caller",
        when=When(
            status=ANY_CALLER_STATUS - {409},
            words=("failed_precondition", "invalid_argument", "invalid_request", "not_found"),
        ),
        error_class=ErrorClass.CALLER_FAULT,
        implies=400,
    ),
)
