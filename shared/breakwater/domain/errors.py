"""What can go wrong, grouped by who has to act.

Four groups, so that an entry point needs one table of four rows:
`Rejected` (the caller changes something), `Conflict` (someone else won), `Unavailable` (try again later)
and `Defect` (our mistake). The docstring of a class is its default message.
"""

from __future__ import annotations

from typing import Any


class BreakwaterError(Exception):
    """Something went wrong in Breakwater."""

    def __init__(self, message: str | None = None, **ids: object) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip().splitlines()[0])
        self.ids = ids


class Rejected(BreakwaterError):  # noqa: N818 - the group's name is its meaning
    """The request can't be accepted as it is."""

    status = 400
    slug = "rejected"

    def __init__(
        self,
        message: str | None = None,
        *,
        field: str | None = None,
        rule: str | None = None,
        fix: str | None = None,
        **ids: object,
    ) -> None:
        super().__init__(message, **ids)
        self.field, self.rule, self.fix = field, rule, fix


class InvalidRequest(Rejected):
    """The request breaks a rule."""

    slug = "invalid-request"


class InvalidPolicy(Rejected):
    """A policy file breaks a rule."""

    slug = "invalid-policy"


class BadSignature(Rejected):
    """The signature doesn't match."""

    status = 401
    slug = "bad-signature"


class NotAuthorised(Rejected):
    """The key doesn't carry the scope this needs."""

    status = 403
    slug = "not-authorised"


class NotFound(Rejected):
    """There is nothing under this id."""

    status = 404
    slug = "not-found"


class TooLate(Rejected):
    """The job is settled and can't be changed this way."""

    status = 409
    slug = "too-late"


class TooLarge(Rejected):
    """The request is larger than the limit."""

    status = 413
    slug = "too-large"


class KeyReused(Rejected):
    """The idempotency key was used with another payload."""

    status = 422
    slug = "idempotency-key-reused"


class Later(Rejected):
    """Not now; the time to come again is known."""

    def __init__(self, message: str | None = None, *, retry_after_ms: int | None = None, **more: Any) -> None:
        super().__init__(message, **more)
        self.retry_after_ms = retry_after_ms


class TooMany(Later):
    """A limit is reached; try again after the time given."""

    status = 429
    slug = "too-many"


class Overloaded(Later):
    """New work is turned away for now, so that accepted work keeps its promise."""

    status = 503
    slug = "overloaded"


class FailedClosed(Later):
    """No further call is made for this request."""

    slug = "failed-closed"

    def __init__(self, message: str | None = None, *, status: int, **more: Any) -> None:
        super().__init__(message, **more)
        self.status = status


class Conflict(BreakwaterError):  # noqa: N818
    """Someone else won; there is nothing to do."""


class LeaseLost(Conflict):
    """The lease is no longer ours."""


class StaleVersion(Conflict):
    """The item changed between the read and the write, too many times in a row."""


class Unavailable(BreakwaterError):  # noqa: N818
    """A service we depend on did not answer; try again later."""


class StoreUnavailable(Unavailable):
    """The table or the object store did not answer."""


class QueueUnavailable(Unavailable):
    """The queue did not take the message."""


class SecretUnavailable(Unavailable):
    """The secret could not be read, or it is empty."""


class Defect(BreakwaterError):  # noqa: N818
    """Our own mistake."""


class IllegalTransition(Defect):
    """This event may not happen in this state."""

    def __init__(self, state: str, event: str, **ids: object) -> None:
        super().__init__(f"{event} may not happen in {state}", **ids)
        self.state, self.event = state, event


class CorruptItem(Defect):
    """A stored item doesn't read back as what it should be."""
