"""What may stand in an owner's settings? Limits, budgets and hosts; everything else is refused by name.

Whoever reads them on the way of a job (`limits.py`, `usecases/budgets.py`, `usecases/notify.py`) takes what is no
number for no limit, so a slip must be found here, when it is written. The settings of everybody (owner `*`) have fields
of their own: they bind the account as a whole.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from breakwater.domain.limits import EVERYBODY
from breakwater.domain.replay import read


def _nobody_else(owner_key: str) -> str:
    if owner_key == EVERYBODY:
        raise ValueError("`*` is everybody, and nobody in particular")
    return owner_key


# Stands in paths, keys and scope names: none of their separators, and nothing that can't be seen.
OwnerKey = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f#/]+$"),
    AfterValidator(_nobody_else),
]
AtOnce = Annotated[int, Field(strict=True, ge=1, le=100_000)]  # provider calls at the same time
MicroDollars = Annotated[int, Field(strict=True, ge=0, le=10**15)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Host = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[A-Za-z0-9.\-:\[\]*]+$")]


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class WorkflowBudget(_Settings):
    """What one workflow may spend in a month."""

    soft_micros: MicroDollars | None = None
    hard_micros: MicroDollars | None = None


class Budgets(WorkflowBudget):
    """What may be spent in a month, in all and by workflow."""

    workflows: dict[Name, WorkflowBudget] = Field(default_factory=dict)


class OwnerSettings(_Settings):
    """One owner's."""

    callback_hosts: list[Host] | None = Field(default=None, max_length=100)
    budgets: Budgets | None = None
    budget_micros: MicroDollars | None = None
    concurrency: AtOnce | None = None
    per_user: AtOnce | None = None
    per_route: dict[Name, AtOnce] = Field(default_factory=dict)


class EverybodysSettings(_Settings):
    """The account's, owner `*`."""

    concurrency: AtOnce | None = None
    per_endpoint: dict[Name, AtOnce] = Field(default_factory=dict)
    per_model: dict[Name, AtOnce] = Field(default_factory=dict)
    per_provider: dict[Name, AtOnce] = Field(default_factory=dict)


def checked(owner_key: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings as they are stored; raises `InvalidRequest` naming the first wrong field, the rule and the fix."""
    kind = EverybodysSettings if owner_key == EVERYBODY else OwnerSettings
    return read(kind, settings, within="settings.").model_dump(mode="json", exclude_unset=True, exclude_none=True)
