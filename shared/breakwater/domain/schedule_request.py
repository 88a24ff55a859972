"""What does a window's job ask for? The request as a caller would send it, checked before the schedule is shipped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from breakwater.domain.errors import InvalidRequest
from breakwater.domain.identity import encode
from breakwater.domain.request import JobRequest, parse
from breakwater.domain.schedules import Schedule
from breakwater.domain.sizes import INLINE_BYTES
from breakwater.domain.windows import Window, job_input, planned_window
from breakwater.domain.zones import instant

_ROOM = 256  # what one window's times may be longer than another's
_SAMPLE = instant("2026-01-01T00:00:00Z")


def request_of(schedule: Schedule, window: Window) -> JobRequest:
    """The request behind a window; raises `InvalidRequest` where the filled-in input is none."""
    body: dict[str, Any] = {"workflow": schedule.workflow, "input": job_input(schedule, window)}
    if schedule.user_ref is not None:
        body["user_ref"] = schedule.user_ref
    return parse(body)


def unfit(schedules: Iterable[Schedule]) -> Iterator[str]:
    """Schedules whose input could never become a job, each with the path of what is wrong."""
    for number, schedule in enumerate(schedules):
        window = planned_window(schedule, _SAMPLE) or Window(_SAMPLE, "")
        try:
            payload = request_of(schedule, window).payload
        except InvalidRequest as error:
            yield f"schedules[{number}].{error.field}: {error.fix}"
            continue
        if (size := len(encode(payload))) > INLINE_BYTES - _ROOM:
            yield (
                f"schedules[{number}].input: {size} bytes, and the scheduler keeps no more than {INLINE_BYTES - _ROOM}"
                " in the table; shorten it, or refer to what is long by a URL"
            )
