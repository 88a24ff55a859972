"""What does a reply say, before anybody decides what it means?

`Facts` is the one normal form that rows match against: the status that counts, every word the provider used as an
identifier, the quotas it named, how the answer ended. Message text is kept here for matching only; nothing but
identifiers may leave for a `Signal`, since a message can quote the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from breakwater.domain.rules.bodies import error_objects
from breakwater.domain.rules.endings import End, Ending, ending_of
from breakwater.domain.rules.streams import event_ending, is_stream, read_stream
from breakwater.domain.signals import Reply, TransportFailure
from breakwater.domain.values import dataclass


class Shape(StrEnum):
    """How a body reads."""

    JSON = "json"
    EMPTY = "empty"
    HTML = "html"
    STREAM = "stream"  # the text of an event stream
    TEXT = "text"  # plain text, or JSON that was cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One reply in normal form. `words`, `quotas` and `text` are lower case."""

    transport: TransportFailure | None
    status: int | None
    in_stream: bool
    shape: Shape
    ending: Ending
    words: frozenset[str]
    quotas: tuple[str, ...]
    text: str
    error_type: str | None
    error_code: str | None
    request_id: str | None


_WORD_KEYS = ("code", "type", "status", "error_type", "error_code", "reason", "limit_source")
_TYPE_KEYS = ("type", "error_type", "status")
_CODE_KEYS = ("error_code", "code", "reason", "limit_source", "quotaId")
_STATUS_KEYS = ("code", "http_status", "status_code", "status")
_QUOTA_KEYS = ("quotaId", "quotaMetric", "quota_limit", "quota_metric")
_TEXT_KEYS = ("message", "detail", "msg", "raw")
_REQUEST_ID_HEADERS = ("x-request-id", "request-id", "x-litellm-call-id", "x-goog-request-id")

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}", re.ASCII)
_REQUEST_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}", re.ASCII)
_STATUS = re.compile(r"[3-5]\d\d", re.ASCII)
_NO_WORDS = frozenset({"error", "none", "null"})  # what an envelope calls itself, and how some gateways write null
_HTML = re.compile(r"\s*<(?:!doctype|html|head|body|center|title|h\d)", re.ASCII | re.IGNORECASE)
_FIRST_ERROR = 300
_LONGEST_TEXT = 8_000

ZERO_QUOTA = "quota is zero"
FLAGGED_INPUT = "flagged input"
"""Words of our own, for what providers say without one. They have blanks, so no provider can use them."""


def facts_of(reply: Reply) -> Facts:
    """The normal form of a reply. Never fails, whatever the body holds."""
    shape = _shape(reply.body)
    ending, body = _read(reply, shape)
    in_stream = reply.in_stream or shape is Shape.STREAM
    errors = error_objects(body)
    status = _effective_status(reply.status, errors, in_stream=in_stream)
    return Facts(
        transport=reply.transport,
        status=status,
        in_stream=in_stream,
        shape=shape,
        ending=_ending(ending, reply, in_stream=in_stream, answered=_is_success(reply.status)),
        words=frozenset(_words(errors)),
        quotas=tuple(_quotas(errors)),
        text=_text(errors, reply.body),
        error_type=_identifier(errors, _TYPE_KEYS),
        error_code=_daily_quota(errors) or _identifier(errors, _CODE_KEYS),
        request_id=request_id(reply.headers, body),
    )


def is_identifier(text: str) -> bool:
    """Whether a text reads as an identifier and so may be kept; free text never does."""
    return _IDENTIFIER.fullmatch(text) is not None


def _is_success(status: int | None) -> bool:
    return status is not None and status < _FIRST_ERROR


def _shape(body: Any) -> Shape:
    if body is None:
        return Shape.EMPTY
    if not isinstance(body, str):
        return Shape.JSON
    if _HTML.match(body):
        return Shape.HTML
    if is_stream(body):
        return Shape.STREAM
    return Shape.TEXT if body.strip() else Shape.EMPTY


def _read(reply: Reply, shape: Shape) -> tuple[Ending, Any]:
    """How the body ended, and the object that says so: the body itself, or an event of the stream it is."""
    if shape is Shape.STREAM:
        return read_stream(reply.body)
    if reply.in_stream:
        return event_ending(reply.body) or Ending(End.NONE), reply.body
    return ending_of(reply.body), reply.body


def _ending(ending: Ending, reply: Reply, *, in_stream: bool, answered: bool) -> Ending:
    """Only an answer has an ending; a stream that gave us nothing, or no terminal event, is incomplete."""
    if reply.transport is not None or not (answered or in_stream):
        return Ending(End.NONE)
    silent = in_stream and ending.end is End.NONE and not isinstance(reply.body, Mapping)
    return Ending(End.INCOMPLETE) if silent else ending


def _effective_status(status: int | None, errors: Sequence[Mapping[str, Any]], *, in_stream: bool) -> int | None:
    """The status inside a body counts where the outer one says success: gateways commit to 200 before they know."""
    if not in_stream and not _is_success(status):
        return status
    return next((int(text) for text in _texts(errors, _STATUS_KEYS) if _STATUS.fullmatch(text)), status)


def _words(errors: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from (text.lower() for text in _texts(errors, _WORD_KEYS))
    if any("flagged_input" in error for error in errors):
        yield FLAGGED_INPUT
    if any(error.get("quotaValue") in {"0", 0} for error in errors if isinstance(error.get("quotaValue"), str | int)):
        yield ZERO_QUOTA


def _quotas(errors: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Names of quotas without their separators: `..._per_day` and `...PerDay...` are written both ways."""
    return (text.lower().replace("_", "").replace("-", "") for text in _texts(errors, _QUOTA_KEYS))


def _daily_quota(errors: Sequence[Mapping[str, Any]]) -> str | None:
    """Of several quotas the day's is the one that matters."""
    return next((text for text in _texts(errors, ("quotaId",)) if "PerDay" in text and is_identifier(text)), None)


def _text(errors: Sequence[Mapping[str, Any]], body: Any) -> str:
    messages = [*_texts(errors, _TEXT_KEYS), *([body] if isinstance(body, str) else [])]
    return "\n".join(message[:_LONGEST_TEXT] for message in messages).lower() + "\n"


def _identifier(errors: Sequence[Mapping[str, Any]], keys: tuple[str, ...]) -> str | None:
    found = (text for text in _texts(errors, keys) if is_identifier(text))
    return next((text for text in found if text.lower() not in _NO_WORDS), None)


def _texts(errors: Sequence[Mapping[str, Any]], keys: Iterable[str]) -> Iterator[str]:
    for error in errors:
        for key in keys:
            value = error.get(key)
            if isinstance(value, str | int) and not isinstance(value, bool):
                yield str(value)


def request_id(headers: Mapping[str, str], body: Any) -> str | None:
    """The provider's own id of the request, from the headers or the body."""
    inside = body.get("request_id") if isinstance(body, Mapping) else None
    candidates = (*(headers.get(name) for name in _REQUEST_ID_HEADERS), inside)
    return next((text for text in candidates if isinstance(text, str) and _REQUEST_ID.fullmatch(text)), None)
