"""What became of a job, as the delivery itself says it?

For senders that are never asked. The body is read through the endpoint's paths and put into the shape of a polled
response, so that one set of rules judges both: what counts as finished, what an error means, which JSON will do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from breakwater.domain.answers import judged
from breakwater.domain.endpoints import DeliveryFacts, Endpoint, Outcome, ResultPaths
from breakwater.domain.paths import first, first_word
from breakwater.domain.reading import count, micros
from breakwater.domain.results import Completed, Refused, Result, Running, Usage
from breakwater.domain.routes import Route
from breakwater.domain.rules.endings import finish_reason
from breakwater.domain.signals import Reply

_STATUS: Mapping[Outcome, str] = {
    Outcome.COMPLETED: "completed",
    Outcome.FAILED: "failed",
    Outcome.CANCELLED: "cancelled",
    Outcome.INCOMPLETE: "incomplete",
}
_ENDED_AS: Mapping[str, str] = {"length": "incomplete", "content_filter": "incomplete", "error": "failed"}
"""A job may be called a success and say, in its finish word, that it was cut."""
_ADDRESSES = ("https://", "http://", "data:")
_OK = 200


def outcome_of(
    endpoint: Endpoint, facts: DeliveryFacts, body: Any, route: Route, received_at: int, *, wants_json: bool
) -> Completed | Refused | Running:
    """The outcome that a delivery carries. Total: a body of another shape is an answer with nothing in it.

    `wants_json`: the job asked for JSON, so a text that is none does not count.
    """
    paths, status = endpoint.result, _STATUS.get(facts.outcome)
    if status is None or paths is None:
        return Running(provider_job_id=facts.provider_job_id or "")
    result = _result(paths, facts, body)
    reply = Reply(status=_OK, body=_as_polled(paths, result, body, status), received_at=received_at)
    return judged(
        reply,
        result,
        provider=route.provider,
        route_key=route.route_key,
        wants_json=wants_json,
        job_id=facts.provider_job_id,
    )


def _as_polled(paths: ResultPaths, result: Result, body: Any, status: str) -> dict[str, Any]:
    """The body in the one shape that every rule knows. Its error's text is matched there, and never kept."""
    if status == "completed":
        status = _ENDED_AS.get(result.finish_reason, status)
    made = [{"type": "told"}] if result.text or result.media else []
    polled: dict[str, Any] = {"id": "told", "status": status, "output": made}
    if status == "completed":
        return polled
    if status == "incomplete":
        filtered = result.finish_reason == "content_filter"
        return {**polled, "incomplete_details": {"reason": "content_filter" if filtered else "max_output_tokens"}}
    error = dict(_error(paths, body)) if status == "failed" else {}
    if "http_status" in error:
        return {"error": error}  # an error in place of an answer: its status counts
    return {**polled, "error": error}


def _error(paths: ResultPaths, body: Any) -> Iterator[tuple[str, Any]]:
    for name, found in (
        ("type", first_word(body, paths.error_type)),
        ("code", first_word(body, paths.error_code)),
        ("http_status", first_word(body, paths.error_status)),
        ("message", first(body, paths.error_message)),
    ):
        if isinstance(found, str):
            yield name, found


def _result(paths: ResultPaths, facts: DeliveryFacts, body: Any) -> Result:
    media = tuple(_media(paths, first(body, paths.media)))
    return Result(
        text=_text(first(body, paths.text)),
        media=media,
        finish_reason=finish_reason(first(body, paths.finish_reason)),
        usage=Usage(
            input_tokens=count(first(body, paths.input_tokens)),
            cached_tokens=count(first(body, paths.cached_tokens)),
            output_tokens=count(first(body, paths.output_tokens)),
            reasoning_tokens=count(first(body, paths.reasoning_tokens)),
            images=count(first(body, paths.images)) or len(media),
        ),
        reported_cost_micros=micros(first(body, paths.cost)),
        served_model=first_word(body, paths.model),
        provider_job_id=facts.provider_job_id,
    )


def _text(value: Any) -> str:
    """A text, or the parts of one in a list."""
    parts = value if isinstance(value, list) else [value]
    return "".join(part for part in parts if isinstance(part, str))


def _media(paths: ResultPaths, value: Any) -> Iterator[dict[str, str]]:
    """Every URL or object that reads as one."""
    for one in value if isinstance(value, list) else [value]:
        link = one if isinstance(one, str) else first(one, paths.media_url)
        mime = first_word(one, paths.media_mime) or paths.mime
        if isinstance(link, str) and link.startswith(_ADDRESSES):
            yield {"url": link, "mime": mime}
        elif isinstance(data := first(one, paths.media_b64), str) and data:
            yield {"b64": data, "mime": mime}
