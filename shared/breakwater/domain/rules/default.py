"""What does a reply mean when its provider's own rows say nothing?

`FIRST` stands above every provider's rows: whether a request can have arrived outranks what was said about it.
`LOOKUP` applies when a provider's job was asked for. `DEFAULT` stands beneath; its last row matches everything.
"""

from __future__ import annotations

from breakwater.domain.rules.endings import End
from breakwater.domain.rules.facts import Shape
from breakwater.domain.rules.rows import Row, Rows, When
from breakwater.domain.signals import NOT_SENT, ErrorClass, LimitDimension, TransportFailure

_ANY_TRANSPORT = frozenset(TransportFailure)
_SUCCESS = range(200, 300)

FIRST: Rows = (
    Row(name="default.not_sent", when=When(transport=NOT_SENT), error_class=ErrorClass.NOT_SENT),
    Row(
        name="default.stream_cut",
        when=When(transport=_ANY_TRANSPORT, in_stream=True),
        error_class=ErrorClass.STREAM_INCOMPLETE,
    ),
    # A refusal whose body was cut is still a refusal: its status and headers came whole.
    Row(
        name="default.answer_lost",
        when=When(transport=_ANY_TRANSPORT, refused=False),
        error_class=ErrorClass.OUTCOME_UNKNOWN,
    ),
    # The request arrived, and nobody knows what became of it.
    Row(name="default.timed_out", when=When(status=(408, 504, 524)), error_class=ErrorClass.OUTCOME_UNKNOWN),
)

LOOKUP: Rows = (Row(name="default.unknown_job", when=When(status=(404, 410)), error_class=ErrorClass.NOT_FOUND),)

DEFAULT: Rows = (
    Row(name="default.truncated", when=When(ending=(End.TRUNCATED,)), error_class=ErrorClass.TRUNCATED),
    Row(name="default.refused", when=When(ending=(End.REFUSED,)), error_class=ErrorClass.CONTENT_REFUSED),
    Row(name="default.cancelled", when=When(ending=(End.CANCELLED,)), error_class=ErrorClass.CANCELLED),
    Row(
        name="default.stream_incomplete",
        when=When(ending=(End.INCOMPLETE,)),
        error_class=ErrorClass.STREAM_INCOMPLETE,
    ),
    # The provider gave up and doesn't say why: no reason to believe that the same again would fare better.
    Row(name="default.failed", when=When(ending=(End.FAILED,)), error_class=ErrorClass.UNKNOWN),
    Row(name="default.broken", when=When(ending=(End.BROKEN,)), error_class=ErrorClass.SERVER_FAULT),
    Row(name="default.still_running", when=When(ending=(End.RUNNING,)), error_class=ErrorClass.OUTCOME_UNKNOWN),
    Row(
        name="default.payment",
        when=When(status=(402,)),
        error_class=ErrorClass.SPEND,
        limit_dimension=LimitDimension.SPEND,
    ),
    Row(name="default.pacing", when=When(status=(429,)), error_class=ErrorClass.PACING),
    Row(name="default.credential", when=When(status=(401,)), error_class=ErrorClass.CREDENTIAL),
    Row(name="default.permission", when=When(status=(403,)), error_class=ErrorClass.PERMISSION),
    Row(name="default.boundary", when=When(status=(451,)), error_class=ErrorClass.DATA_BOUNDARY),
    Row(name="default.too_early", when=When(status=(425,)), error_class=ErrorClass.NOT_SENT),  # RFC 8470: not processed
    Row(name="default.locked", when=When(status=(409,)), error_class=ErrorClass.LOCKED),
    Row(name="default.overload", when=When(status=(503, 529)), error_class=ErrorClass.OVERLOAD),
    Row(name="default.never_served", when=When(status=(501, 505)), error_class=ErrorClass.CALLER_FAULT),
    # Redirects are never followed: they would be a second request, perhaps to somebody else.
    Row(name="default.redirected", when=When(status=range(300, 400)), error_class=ErrorClass.CALLER_FAULT),
    Row(name="default.caller", when=When(status=range(400, 500)), error_class=ErrorClass.CALLER_FAULT),
    Row(name="default.server", when=When(status=range(500, 600)), error_class=ErrorClass.SERVER_FAULT),
    # A success whose answer can't be read: the work may well have been done, and paid.
    Row(
        name="default.html_page",
        when=When(status=_SUCCESS, shape=(Shape.HTML,)),
        error_class=ErrorClass.OUTCOME_UNKNOWN,
    ),
    Row(
        name="default.empty_body",
        when=When(status=_SUCCESS, shape=(Shape.EMPTY,)),
        error_class=ErrorClass.OUTCOME_UNKNOWN,
    ),
    Row(
        name="default.cut_body",
        when=When(status=_SUCCESS, shape=(Shape.TEXT,)),
        error_class=ErrorClass.OUTCOME_UNKNOWN,
    ),
    Row(name="default.no_answer", when=When(ending=(End.EMPTY,)), error_class=ErrorClass.SERVER_FAULT),
    Row(name="default.unknown", when=When(), error_class=ErrorClass.UNKNOWN),
)
