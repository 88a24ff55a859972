"""What does Anthropic answer when something is wrong?"""

from __future__ import annotations

from .rows import Template, anthropic_row

_CALLER = "invalid_request_error"
_RATE = "rate_limit_error"
_BILLING = "billing_error"

ROWS: dict[str, Template] = {
    "anthropic_400_invalid": anthropic_row(400, _CALLER, "messages: field required"),
    "anthropic_400_spend_limit": anthropic_row(
        400,
        _CALLER,
        "You have reached your specified API usage limits. You will regain access on 2027-01-01.",
    ),
    "anthropic_400_credit": anthropic_row(400, _CALLER, "Your credit balance is too low to access the API."),
    "anthropic_400_on_hold": anthropic_row(400, _CALLER, "The organization is on hold.", "organization_on_hold"),
    "anthropic_401": anthropic_row(401, "authentication_error", "invalid x-api-key"),
    "anthropic_402": anthropic_row(402, _BILLING, "There is a problem with your billing."),
    "anthropic_402_linked_spend": anthropic_row(
        402,
        _BILLING,
        "The linked organization's spend limit is reached.",
        "linked_organization_spend_limit_reached",
    ),
    "anthropic_402_linked_billing": anthropic_row(
        402,
        _BILLING,
        "The linked organization's billing is unavailable.",
        "linked_organization_billing_unavailable",
    ),
    "anthropic_403": anthropic_row(403, "permission_error", "The key lacks this permission."),
    "anthropic_404": anthropic_row(404, "not_found_error", "model: claude-none"),
    "anthropic_408": anthropic_row(408, "timeout_error", "The request timed out."),
    "anthropic_409": anthropic_row(409, "conflict_error", "The object changed meanwhile."),
    "anthropic_412": anthropic_row(412, _CALLER, "A precondition failed."),
    "anthropic_413": anthropic_row(413, "request_too_large", "Request exceeds the maximum size."),
    "anthropic_422": anthropic_row(422, _CALLER, "The request cannot be processed."),
    "anthropic_429_rate": anthropic_row(
        429,
        _RATE,
        "This request would exceed your organization's rate limit of 50 requests per minute.",
        retry_after="3",
        anthropic_ratelimit_requests_remaining="0",
    ),
    "anthropic_429_ramp": anthropic_row(
        429, _RATE, "Your usage grew too fast.", "ramp_limit_exceeded", retry_after="10"
    ),
    "anthropic_spend_limit": anthropic_row(
        429, _RATE, "The monthly limit of your tier is reached.", "enforced_spend_limit_reached"
    ),
    "anthropic_contract_spend_limit": anthropic_row(
        429, _RATE, "The limit of your contract is reached.", "contract_spend_limit_reached"
    ),
    "anthropic_429_workspace": anthropic_row(429, _RATE, "The Claude Code workspace has reached its spend limit."),
    "anthropic_431": anthropic_row(431, _CALLER, "The request headers are too large."),
    "anthropic_499": anthropic_row(499, _CALLER, "The client closed the request."),
    "anthropic_500": anthropic_row(500, "api_error", "Internal server error"),
    "anthropic_501": anthropic_row(501, "api_error", "Not implemented."),
    "anthropic_503": anthropic_row(503, "api_error", "Service unavailable."),
    "anthropic_503_cmek": anthropic_row(
        503, "api_error", "The key context is unavailable.", "cmek_context_unavailable"
    ),
    "anthropic_504": anthropic_row(504, "timeout_error", "The request took too long."),
    "anthropic_529": anthropic_row(529, "overloaded_error", "Overloaded"),
    "anthropic_529_hint": anthropic_row(529, "overloaded_error", "Overloaded", retry_after="4"),
    "anthropic_200_error": anthropic_row(200, "overloaded_error", "An error inside a 200."),
}
