"""How does HTTP come in and go out? Bodies with a limit, owners from the authorizer, errors as problem+json (RFC 9457).

Event shape: API Gateway HTTP API, payload version 2.0. No error text repeats what the caller sent.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any

from breakwater.domain.errors import (
    BreakwaterError,
    Conflict,
    InvalidRequest,
    NotAuthorised,
    Rejected,
    TooLarge,
    Unavailable,
)
from breakwater.domain.sizes import MAX_BODY_BYTES
from breakwater.ports import Log
from breakwater.usecases.principal import Principal

PROBLEM = "application/problem+json"
TYPE = "urn:breakwater:problem:"  # names the kind; there is nothing to fetch
_RETRY_SECONDS = 2


def response(status: int, body: Any = None, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """An answer in the gateway's shape; no body where there is none."""
    answer: dict[str, Any] = {"statusCode": status, "headers": {"cache-control": "no-store", **(headers or {})}}
    if body is not None:
        answer["headers"].setdefault("content-type", "application/json")
        answer["body"] = json.dumps(body, separators=(",", ":"))
    return answer


def stale(latest: Mapping[str, Any]) -> dict[str, str]:
    """The headers of an answer that carries a last result: how old it is (s), and that it is not live."""
    return {"age": str(int(latest.get("age_ms", 0)) // 1000), "warning": '110 - "Response is Stale"'}


def principal_of(event: Mapping[str, Any]) -> Principal:
    """Who the authorizer says is calling; raises `NotAuthorised` when the route stands without one."""
    found = ((event.get("requestContext") or {}).get("authorizer") or {}).get("lambda") or {}
    owner = found.get("owner_key")
    if not owner:
        raise NotAuthorised("No key came with the request.", field="Authorization", rule="key", fix="send a bearer key")
    scopes = frozenset(str(found.get("scopes") or "").split())
    return Principal(owner_key=str(owner), key_id=str(found.get("key_id") or ""), scopes=scopes)


def header(event: Mapping[str, Any], name: str) -> str | None:
    """A header by its lower-case name, whatever case the gateway kept."""
    for key, value in (event.get("headers") or {}).items():
        if key.lower() == name:
            return str(value)
    return None


def raw_body(event: Mapping[str, Any]) -> bytes:
    """The body's own bytes; raises `InvalidRequest` for broken base64 and `TooLarge` above 4 MiB."""
    body = event.get("body")
    if body is None:
        return b""
    raw = _decoded(body) if event.get("isBase64Encoded") else str(body).encode("utf-8", "surrogatepass")
    if len(raw) > MAX_BODY_BYTES:
        raise TooLarge(
            f"The body has {len(raw)} bytes.",
            field="body",
            rule=f"at most {MAX_BODY_BYTES} bytes",
            fix="send less, or a reference to a file the provider can read",
        )
    return raw


def _decoded(body: Any) -> bytes:
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise InvalidRequest(
            "The body is no base64.",
            field="body",
            rule="base64",
            fix="send the body as it is",
        ) from error


def json_body(event: Mapping[str, Any]) -> Any:
    """The JSON value of the body; raises `InvalidRequest` naming the place where it stops being JSON."""
    raw = raw_body(event)
    try:
        return json.loads(raw, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise InvalidRequest(
            f"The body is no JSON (line {error.lineno}, column {error.colno}).",
            field="body",
            rule="json",
            fix="send one JSON object in UTF-8",
        ) from None
    except (UnicodeDecodeError, RecursionError, ValueError) as error:
        raise InvalidRequest(
            f"The body is no JSON ({type(error).__name__}).",
            field="body",
            rule="json",
            fix="send one JSON object in UTF-8, not nested too deeply",
        ) from None


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _finite(text: str) -> float:
    """`1e400` is JSON, and no number that could be stored or sent on."""
    value = float(text)
    if value - value != 0:
        raise ValueError(text)
    return value


def answered(event: Mapping[str, Any], log: Log, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Run one request; every failure becomes an answer a caller can act on, never a bare 500."""
    request_id = (event.get("requestContext") or {}).get("requestId")
    try:
        return work()
    except BreakwaterError as error:
        status, slug, headers = _row(error)
        if status >= 500:  # noqa: PLR2004 - server side
            log.note("request_failed", request_id=request_id, error=type(error).__name__, why=str(error))
        return problem(status, slug, error, request_id, headers)
    except Exception as error:  # noqa: BLE001 - the last line: told by class and place, never by message
        log.note("request_crashed", request_id=request_id, error=type(error).__name__, where=_where(error))
        return problem(
            500, "internal", BreakwaterError("Our own mistake; it is logged under the request id."), request_id
        )


def _row(error: BreakwaterError) -> tuple[int, str, dict[str, str]]:
    """One table of four rows: who has to act decides the status."""
    if isinstance(error, Rejected):
        wait = getattr(error, "retry_after_ms", None)
        return error.status, error.slug, {} if wait is None else {"retry-after": str(max(1, -(-wait // 1000)))}
    if isinstance(error, Conflict):
        return 409, "conflict", {"retry-after": "1"}
    if isinstance(error, Unavailable):
        return 503, "unavailable", {"retry-after": str(_RETRY_SECONDS)}
    return 500, "internal", {}


def problem(
    status: int,
    slug: str,
    error: BreakwaterError,
    request_id: Any,
    headers: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """RFC 9457: type, title, status, detail, and our members: field, rule, fix, request_id, and the ids involved."""
    title = (type(error).__doc__ or "").strip().splitlines()[0]
    body: dict[str, Any] = {"type": TYPE + slug, "title": title, "status": status, "detail": str(error)}
    for name in ("field", "rule", "fix"):
        if (value := getattr(error, name, None)) is not None:
            body[name] = value
    body |= {{"job": "job_id"}.get(name, name): value for name, value in error.ids.items() if value is not None}
    if status < 500 or isinstance(error, Rejected):  # noqa: PLR2004 - ids of a defect stay in the log
        body["request_id"] = request_id
    else:
        body = {name: body[name] for name in ("type", "title", "status")} | {"request_id": request_id}
        body["detail"] = "Try again after the time given." if status == 503 else "It is logged under the request id."  # noqa: PLR2004
    return response(status, body, {"content-type": PROBLEM, **(headers or {})})


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return f"{trace.tb_frame.f_code.co_filename.rsplit('/', 1)[-1]}:{trace.tb_lineno}"
