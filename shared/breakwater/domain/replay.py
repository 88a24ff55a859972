"""What must be said before dead work comes back? The terms of a replay, of a filter and of a batch.

Every replay names an owner, a reason from a closed list with words of its own, a route, that somebody looked at the
cost, and when it stops. A request id makes asking twice harmless.
"""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from breakwater.domain.errors import InvalidRequest
from breakwater.domain.job import Job
from breakwater.domain.states import Reason
from breakwater.domain.timing import HOUR, MINUTE

SAME_ROUTE = "same"  # the workflow's own route
MOST_ITEMS = 1_000

Short = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=128, pattern=r"^[^\x00-\x1f]+$")
]
# Names a batch in paths.
RequestId = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=128, pattern=r"^[A-Za-z0-9._:@-]+$")
]
Text = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=3, max_length=500, pattern=r"^[^\x00-\x1f]+$")
]


class ReplayReason(StrEnum):
    """Why work may come back."""

    PROVIDER_RECOVERY = "provider_recovery"
    PRODUCT_BUG = "product_bug"
    QUOTA_CHANGE = "quota_change"
    OWNER_OVERRIDE = "owner_override"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Stop(_Model):
    """When one replay gives up by itself: at least one of both."""

    max_attempts: Annotated[int, Field(strict=True, ge=1, le=100)] | None = None
    give_up_after_ms: Annotated[int, Field(strict=True, ge=MINUTE, le=14 * 24 * HOUR)] | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.max_attempts is None and self.give_up_after_ms is None:
            raise ValueError("say `max_attempts` or `give_up_after_ms`")
        return self


class Terms(_Model):
    """What an operator says with a replay. `proof`: why a repeat does no harm where the records can't tell."""

    owner: Short
    reason: ReplayReason
    text: Text
    route: Short = SAME_ROUTE
    cost_reviewed: Literal[True]
    stop: Stop
    request_id: RequestId
    proof: Text | None = None

    @property
    def fingerprint(self) -> str:
        """Tells two requests under one id apart."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]


class Filter(_Model):
    """Which dead letters are meant. Times are when they died."""

    workflow: Short | None = None
    route_key: Short | None = None
    reason: Reason | None = None
    owner_key: Short | None = None
    since: Annotated[int, Field(ge=0)] | None = None
    until: Annotated[int, Field(ge=0)] | None = None

    def matches(self, job: Job) -> bool:
        """Whether a job, read again, is still one of them."""
        died = job.completed_at or job.updated_at
        return (
            self.workflow in (None, job.workflow)
            and self.route_key in (None, job.route_key)
            and self.reason in (None, job.reason)
            and self.owner_key in (None, job.owner_key)
            and (self.since or 0) <= died <= (self.until or died)
        )

    @property
    def empty(self) -> bool:
        """Whether it means everything."""
        return self == Filter()


class BatchTerms(_Model):
    """A replay of many: the terms of each, which ones, and how fast, how many at once, and when it stops by itself."""

    terms: Terms
    filter: Filter
    size: Annotated[int, Field(strict=True, ge=1, le=MOST_ITEMS)] = 500
    rate_per_minute: Annotated[int, Field(strict=True, ge=1, le=6_000)] = 60
    at_once: Annotated[int, Field(strict=True, ge=1, le=50)] = 10
    error_threshold: Annotated[int, Field(strict=True, ge=1, le=MOST_ITEMS)]

    @model_validator(mode="after")
    def _selects(self) -> Self:
        if self.filter.empty:
            raise ValueError("name at least one of workflow, route_key, reason, owner_key, since, until")
        return self


class Why(_Model):
    """The words that go with an action."""

    why: Text


Kind = TypeVar("Kind", bound=BaseModel)


def read(kind: type[Kind], body: Any, within: str = "") -> Kind:
    """A body as one of these; raises `InvalidRequest` naming the first wrong field, the rule and the fix.

    `within`: where the body stands in what was sent, with the dot.
    """
    if not isinstance(body, dict):
        raise InvalidRequest("The body must be a JSON object.", field="body", rule="object", fix="send a JSON object")
    try:
        return kind.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
    field = within + ".".join(str(part) for part in first["loc"]) or "body"
    rule = str(first["type"])
    fixes = {"missing": f"add `{field}`", "extra_forbidden": f"remove `{field}`: it is not a field of this request"}
    fix = fixes.get(rule, str(first["msg"]).removeprefix("Value error, "))
    raise InvalidRequest(f"`{field}` breaks the rule `{rule}`.", field=field, rule=rule, fix=fix)
