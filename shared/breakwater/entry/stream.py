"""How is a stream served through a gateway that buffers? In short answers that an `EventSource` puts together.

`GET /v1/jobs/{id}/stream?token=…` answers at once with what is new, or holds the request for at most 2 s. `retry:`
paces the reconnect, `Last-Event-ID` says where the reader stands, and 204 after the terminal event stops it for good.
An `EventSource` gives up at any other status, so a table that does not answer is told as "nothing new yet".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from breakwater.domain.errors import BadSignature, NotFound, Unavailable
from breakwater.domain.sse import frame
from breakwater.domain.stream_ids import place_of
from breakwater.domain.stream_token import opened_by, secrets_of
from breakwater.entry.http import answered, header, response
from breakwater.usecases.stream_read import Answered, StreamDeps, read

_PATH = re.compile(r"/v1/jobs/(?P<job_id>job_[a-z2-7]{1,60})/stream")
_HEADERS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store"}
_TROUBLE_MS = 2_000
Secrets = Callable[[], Mapping[str, Any]]


def stream(deps: StreamDeps, secrets: Secrets, event: Mapping[str, Any]) -> dict[str, Any]:
    """Answer one request of a reader."""
    return answered(event, deps.log, lambda: _serve(deps, secrets, event))


def _serve(deps: StreamDeps, secrets: Secrets, event: Mapping[str, Any]) -> dict[str, Any]:
    http = event["requestContext"]["http"]
    found = _PATH.fullmatch(http["path"])
    if found is None or http["method"] != "GET":
        raise NotFound("There is nothing at this path.", field="path", rule="route", fix="see the API reference")
    query = event.get("queryStringParameters") or {}
    last = header(event, "last-event-id") or query.get("last_event_id")
    try:
        owner = opened_by(secrets_of(secrets()), _token(event, query), found["job_id"], deps.clock.now())
        if owner is None:
            raise BadSignature(
                "The stream token does not open this stream.",
                field="token",
                rule="signed, for this job, not over",
                fix=f"POST /v1/jobs/{found['job_id']}/stream-token gives a new one",
            )
        answer = read(deps, found["job_id"], owner, place_of(last))
    except Unavailable as error:
        deps.log.note("stream_unavailable", job_id=found["job_id"], error=type(error).__name__)
        answer = Answered(retry_ms=_TROUBLE_MS)
    if answer is None:
        return response(204)
    return {"statusCode": 200, "headers": dict(_HEADERS), "body": body_of(answer)}


def _token(event: Mapping[str, Any], query: Mapping[str, Any]) -> str:
    """From the URL, which is all an `EventSource` has; or as a bearer."""
    scheme, _, token = (header(event, "authorization") or "").strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else str(query.get("token") or "")


def body_of(answer: Answered) -> str:
    """An answer as the text of an event stream."""
    events = [frame(one.data, name=one.name, event_id=one.place.id) for one in answer.events]
    return "".join((f"retry: {answer.retry_ms}\n\n", *(events or [": nothing new yet\n\n"])))
