"""Which jobs does the clock ask for, and which of them are due now?

A window is one planned run. Its planned time, not the time somebody noticed it, names the job: the same window always
gives the same idempotency key, so two schedulers, late ticks and repeated deliveries make one job.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import Field, StrictBool, StringConstraints, field_validator, model_validator

from breakwater.domain.calendar import Ambiguous, Nonexistent, Rate, Rhythm, cron
from breakwater.domain.entries import Entry, load_entries
from breakwater.domain.errors import InvalidPolicy
from breakwater.domain.timing import DAY, HOUR, MINUTE
from breakwater.domain.zones import zone_of

PLACEHOLDERS = frozenset({"schedule", "window_start", "window_end", "previous_window_start"})
_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")
_UNITS = {"m": MINUTE, "h": HOUR, "d": DAY}

Text = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Length = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,4}[mhd]$")]


class Overlap(StrEnum):
    """What becomes of a window while the job of an earlier one is still at it."""

    SKIP = "skip"  # it is passed over
    QUEUE = "queue"  # one waits: the latest, or the next of a backfill
    ALLOW = "allow"  # they run side by side


class Missed(StrEnum):
    """What becomes of windows that nobody ticked in time."""

    SKIP = "skip"  # only what is on time runs
    RUN_ONCE = "run_once"  # the latest runs, for all of them
    BACKFILL = "backfill"  # the latest `max_backfill` run, oldest first


class Schedule(Entry):
    """One entry of `policies/schedules.yaml`. See `calendar.py` for the two rules about clocks that jump."""

    workflow: Text
    owner_key: Text
    user_ref: Text | None = None
    input: dict[str, Any]  # `${schedule}`, `${window_start}` … in its texts are filled in
    cron: str | None = None
    every: Length | None = None
    timezone: str | None = None
    nonexistent: Nonexistent | None = None
    ambiguous: Ambiguous | None = None
    overlap: Overlap = Overlap.SKIP
    overlap_limit: Length = "1d"  # a job that is not final after this long blocks no longer
    missed: Missed = Missed.RUN_ONCE
    max_backfill: Annotated[int, Field(strict=True, ge=1, le=100)] | None = None
    enabled: StrictBool = True
    description: str = ""

    @field_validator("cron")
    @classmethod
    def _calendar(cls, expression: str | None) -> str | None:
        if expression is not None:
            cron(expression, "UTC")
        return expression

    @field_validator("timezone")
    @classmethod
    def _known(cls, name: str | None) -> str | None:
        if name is not None:
            zone_of(name)
        return name

    @field_validator("input")
    @classmethod
    def _filled(cls, template: dict[str, Any]) -> dict[str, Any]:
        unknown = sorted({name for text in _texts(template) for name in _PLACEHOLDER.findall(text)} - PLACEHOLDERS)
        if unknown:
            raise ValueError(f"${{{unknown[0]}}} is not known; known are {', '.join(sorted(PLACEHOLDERS))}")
        return template

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for wrong, text in _CONFLICTS:
            if wrong(self):
                raise ValueError(text)
        _ = self.rhythm
        return self

    @cached_property
    def rhythm(self) -> Rhythm:
        """The calendar or the rate behind it."""
        if self.cron is None:
            return Rate(length_ms(self.every or "1d"))
        return cron(self.cron, self.zone, self.nonexistent, self.ambiguous)

    @property
    def zone(self) -> str:
        """The zone its local times are in."""
        return self.timezone or "UTC"


_CONFLICTS: tuple[tuple[Callable[[Schedule], object], str], ...] = (
    (lambda one: (one.cron is None) == (one.every is None), "needs either cron or every"),
    (lambda one: one.cron and one.timezone is None, "cron needs a timezone, UTC if that is meant"),
    (
        lambda one: one.every and (one.nonexistent or one.ambiguous),
        "nonexistent and ambiguous are about local times; every counts elapsed time",
    ),
    (
        lambda one: (one.missed is Missed.BACKFILL) == (one.max_backfill is None),
        "max_backfill belongs to missed: backfill, which needs it",
    ),
    (
        lambda one: one.missed is Missed.BACKFILL and one.overlap is Overlap.SKIP,
        "missed: backfill needs overlap: queue or allow; skip would drop what it makes up for",
    ),
    (
        lambda one: one.missed is Missed.SKIP and one.overlap is Overlap.QUEUE,
        "overlap: queue needs missed: run_once or backfill; skip would drop what has waited",
    ),
)


def length_ms(text: str) -> int:
    """`15m`, `2h` and `1d` in ms."""
    return int(text[:-1]) * _UNITS[text[-1]]


def load_schedules(raw: Mapping[str, Any] | list[Any], workflows: Collection[str] | None = None) -> dict[str, Schedule]:
    """The schedules by name, from `{"schedules": [...]}` or the list alone.

    Raises `InvalidPolicy` with the path of what is wrong, also for a workflow that is not among those given.
    """
    schedules = load_entries(Schedule, raw, "schedules")
    for number, one in enumerate(schedules.values()):
        if workflows is not None and one.workflow not in workflows:
            field = f"schedules[{number}].workflow"
            raise InvalidPolicy(f"{field}: there is no workflow {one.workflow}", field=field)
    return schedules


def filled(template: Any, values: Mapping[str, str]) -> Any:
    """The input with its placeholders replaced, in texts at any depth."""
    if isinstance(template, str):
        return _PLACEHOLDER.sub(lambda found: values[found[1]], template)
    if isinstance(template, Mapping):
        return {key: filled(value, values) for key, value in template.items()}
    return [filled(value, values) for value in template] if isinstance(template, list) else template


def _texts(template: Any) -> Iterator[str]:
    if isinstance(template, str):
        yield template
    inner: Iterable[Any] = ()
    if isinstance(template, Mapping):
        inner = template.values()
    elif isinstance(template, list):
        inner = template
    for value in inner:
        yield from _texts(value)
