"""Which providers tell their results themselves, and which are asked?

Read from the compiled endpoints as they are: a worker asks this of every job it hands over, and needs nothing else of
an endpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from breakwater.domain.routes import Catalogue, Route


def entry_of(catalogue: Catalogue, name: str) -> Mapping[str, Any] | None:
    """The compiled endpoint of this name."""
    return next((one for one in catalogue.endpoints if one["name"] == name), None)


def carries_result(entry: Mapping[str, Any] | None) -> bool:
    """Whether a delivery at this endpoint carries the outcome itself: `fetch: false`."""
    return entry is not None and entry.get("fetch") is False


def tells(catalogue: Catalogue, route: Route | None) -> bool:
    """Whether a job on this route is heard of by its webhook only; asking its provider would say nothing."""
    name = route.capabilities.webhook if route is not None else None
    return name is not None and carries_result(entry_of(catalogue, name))


def returns_no_metadata(entry: Mapping[str, Any] | None) -> bool:
    """Whether this endpoint's deliveries name a job by its provider's id only."""
    return entry is not None and not (entry.get("job_id") and entry.get("execution_id"))
