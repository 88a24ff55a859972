"""How is an operator's request read? Query values with their limits, and rows of the route table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from breakwater.domain.errors import InvalidRequest
from breakwater.domain.replay import Filter, read

Row = tuple[str, re.Pattern[str], Callable[..., dict[str, Any]]]
MAX_PAGE = 100
_MS = "[0-9]{1,15}"
_FILTER = ("workflow", "route_key", "reason", "owner_key", "since", "until")


def rows(*table: tuple[str, str, Callable[..., dict[str, Any]]]) -> tuple[Row, ...]:
    """Route rows with compiled paths under `/v1/ops`."""
    return tuple((method, re.compile(f"/v1/ops{path}"), call) for method, path, call in table)


def query(event: Mapping[str, Any]) -> Mapping[str, str]:
    """The query's values; blank ones count as absent."""
    found = event.get("queryStringParameters") or {}
    return {name: value for name, value in found.items() if value}


def limit(event: Mapping[str, Any], most: int = MAX_PAGE, default: int = 25) -> int:
    """The page size asked for."""
    text = query(event).get("limit")
    if text is None:
        return default
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= most:
        fix = f"send a number from 1 to {most}"
        raise InvalidRequest("`limit` can't be used.", field="limit", rule=f"1..{most}", fix=fix)
    return int(text)


def cursor(event: Mapping[str, Any], pattern: str) -> str | None:
    """The place to go on, as a page before gave it."""
    text = query(event).get("cursor")
    if text is not None and not re.fullmatch(pattern, text):
        fix = "send `next_cursor` as it came"
        raise InvalidRequest("`cursor` can't be used.", field="cursor", rule="from_previous_page", fix=fix)
    return text


def filter_of(event: Mapping[str, Any]) -> Filter:
    """The filter in the query."""
    found = {name: value for name, value in query(event).items() if name in _FILTER}
    times = {name: int(found[name]) for name in ("since", "until") if re.fullmatch(_MS, found.get(name, ""))}
    return read(Filter, {**found, **times})


def page(name: str, found: list[dict[str, Any]], following: str | None) -> dict[str, Any]:
    """A list and where to go on."""
    return {name: found, **({"next_cursor": following} if following else {})}
