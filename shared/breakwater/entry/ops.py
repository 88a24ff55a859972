"""The operators' API: which request is which action? Routes under `/v1/ops`, all behind the scope `operate`.

Handlers stand in `ops_jobs.py` (jobs, dead letters, reviews, batches) and `ops_desk.py` (keys, switches, routes…).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from breakwater.domain.errors import NotFound
from breakwater.entry import ops_desk, ops_jobs
from breakwater.entry.http import answered, principal_of
from breakwater.entry.ops_request import Row
from breakwater.usecases.audit import Desk

ROUTES: tuple[Row, ...] = (*ops_jobs.ROUTES, *ops_desk.ROUTES)


def ops(desk: Callable[[], Desk], event: Mapping[str, Any]) -> dict[str, Any]:
    """Answer one request. `desk` is built for nobody; each request puts its own caller in."""
    built = desk()
    return answered(event, built.deps.log, lambda: _dispatch(built, event))


def _dispatch(desk: Desk, event: Mapping[str, Any]) -> dict[str, Any]:
    caller = principal_of(event)
    caller.need("operate")
    http = event["requestContext"]["http"]
    for method, pattern, call in ROUTES:
        found = pattern.fullmatch(http["path"])
        if found and method == http["method"]:
            return call(replace(desk, who=caller), event, **found.groupdict())
    raise NotFound("There is nothing at this path.", field="path", rule="route", fix="see the API reference")
