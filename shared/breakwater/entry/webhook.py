"""How does a provider's webhook come in? Verified over its raw bytes, recorded, nudged, answered; nothing more.

Whatever the sender put into headers and body ends in a 4xx or a 2xx, never in a 500. Only the endpoint's name, the
event type, the delivery's id and the result are told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from breakwater.domain.endpoints import DeliveryFacts, Endpoint, Outcome, read, secrets_of, unusable_of
from breakwater.domain.errors import BreakwaterError, SecretUnavailable
from breakwater.domain.signature import Because, Refusal, Verified, parse, raw_body, verify
from breakwater.usecases.intake import Facts, IntakeDeps, take

Secrets = Callable[[], Mapping[str, Any]]
_OF_SECRETS = (Because.NO_USABLE_SECRET, Because.WRONG_SIGNATURE)


def webhook(
    deps: IntakeDeps,
    endpoints: Mapping[str, Endpoint],
    secrets: Secrets,
    event: Mapping[str, Any],
) -> dict[str, Any]:
    """Answer one delivery in the gateway's shape."""
    name = str((event.get("pathParameters") or {}).get("endpoint") or "")
    endpoint = endpoints.get(name)
    if endpoint is None:
        return _answer(404, "unknown_endpoint")
    try:
        return _take(deps, endpoint, secrets, event)
    except SecretUnavailable:
        return _refuse(deps, endpoint, Refusal(Because.NO_USABLE_SECRET))
    except BreakwaterError as error:  # not recorded: the sender delivers again
        deps.log.note("delivery_failed", endpoint=name, error=type(error).__name__)
        return _answer(503, "try_again")


def _take(deps: IntakeDeps, endpoint: Endpoint, secrets: Secrets, event: Mapping[str, Any]) -> dict[str, Any]:
    body = raw_body(event.get("body"), event.get("isBase64Encoded") is True)
    if isinstance(body, Refusal):
        return _refuse(deps, endpoint, body)
    secret = secrets()
    verdict = verify(
        body,
        event.get("headers"),
        secrets_of(endpoint, secret),
        deps.clock.now(),
        tolerance_s=endpoint.tolerance_s,
        names=endpoint.names,
    )
    if isinstance(verdict, Refusal):
        return _refuse(deps, endpoint, verdict, secret if verdict.because in _OF_SECRETS else None)
    parsed = parse(body)
    if isinstance(parsed, Refusal):
        return _refuse(deps, endpoint, parsed)
    return _record(deps, endpoint, verdict, body, read(endpoint, parsed.value))


def _record(
    deps: IntakeDeps,
    endpoint: Endpoint,
    verified: Verified,
    body: bytes,
    facts: DeliveryFacts,
) -> dict[str, Any]:
    if facts.outcome in (Outcome.IGNORE, Outcome.PROGRESS):
        deps.log.note(
            "delivery_ignored",
            endpoint=endpoint.name,
            webhook_id=verified.webhook_id,
            event_type=facts.event_type,
        )
        return _answer(200, "ignored")
    told = Facts(
        event_type=facts.event_type,
        provider_job_id=facts.provider_job_id,
        job_id=facts.job_id,
        execution_id=facts.execution_id,
        outcome=facts.outcome.value,
        carries_result=not endpoint.fetch,
    )
    return _answer(200, take(deps, endpoint.name, verified.webhook_id, body, told))


def _refuse(
    deps: IntakeDeps, endpoint: Endpoint, refusal: Refusal, secret: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Say why; where our secret may be the cause, also which of its entries are no keys."""
    unusable = [] if secret is None else unusable_of(endpoint, secret)
    more = {"unusable_secrets": unusable} if unusable else {}
    deps.log.note("delivery_refused", endpoint=endpoint.name, why=refusal.reason, **more)
    return _answer(refusal.status, refusal.reason)


def _answer(status: int, result: str) -> dict[str, Any]:
    return {"statusCode": status, "headers": {"content-type": "application/json"}, "body": f'{{"result":"{result}"}}'}
