"""When is an answer a finished one?

Whoever reads an answer, an adapter or a webhook that carries it, is judged by the same rules: how it ended, what its
error means, and whether it is the JSON that was asked for.
"""

from __future__ import annotations

from breakwater.domain.classify import classify, succeeded
from breakwater.domain.reading import says_something, structured
from breakwater.domain.results import Completed, Refused, Result
from breakwater.domain.rules.facts import request_id
from breakwater.domain.signals import ErrorClass, Reply, Signal


def judged(
    reply: Reply,
    result: Result | None,
    *,
    provider: str,
    route_key: str,
    wants_json: bool,
    job_id: str | None = None,
    lookup: bool = False,
) -> Completed | Refused:
    """A finished answer, or why there is none; with what came of it where something did.

    `result`: what the reply holds, None where it is no answer at all. `lookup`: it answers a question about a job.
    """
    partial = result if result is not None and says_something(result) else None
    if result is None or not succeeded(reply):
        signal = classify(provider, reply, route_key=route_key, lookup=lookup)
        return Refused(signal=signal, partial=partial, provider_job_id=job_id)
    if not (result.text or result.tool_calls or result.media):  # it ended well, and there is nothing to show for it
        return Refused(
            signal=_own(reply, route_key, ErrorClass.SERVER_FAULT, "default.no_answer"),
            partial=partial,
            provider_job_id=job_id,
        )
    whole = structured(result) if wants_json else result
    if whole is None:
        signal = _own(reply, route_key, ErrorClass.UNKNOWN, "adapter.not_json")
        return Refused(signal=signal, partial=partial, provider_job_id=job_id)
    return Completed(result=whole)


def _own(reply: Reply, route_key: str, error_class: ErrorClass, rule: str) -> Signal:
    """What we find wrong with an answer that the provider calls a success."""
    return Signal(
        error_class=error_class,
        http_status=reply.status,
        route_key=route_key,
        provider_request_id=request_id(reply.headers, reply.body),
        rule=rule,
    )
