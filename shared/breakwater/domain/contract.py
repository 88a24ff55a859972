"""May another route answer for this workflow? Checked clause by clause against the route table.

A clause is True (kept), False (broken) or None (nobody has checked). Only what holds in every clause may be used:
a broken clause ends the matter, an unknown one is a person's to decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from breakwater.domain.policy import QUALITY_RANK, Policy
from breakwater.domain.pricing import Prices, cost_micros
from breakwater.domain.results import Usage
from breakwater.domain.routes import Route
from breakwater.domain.values import dataclass

Clauses = dict[str, bool | None]


class Verdict(StrEnum):
    """What the clauses come to."""

    HOLDS = "holds"
    MISMATCH = "mismatch"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What one job needs of a route. Token numbers are upper bounds."""

    tools: bool = False
    json_schema: bool = False
    streaming: bool = False
    media: Literal["image", "video"] | None = None
    safety: tuple[str, ...] = ()
    context_window: int | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    images: int = 0


def needs_of(policy: Policy, *, stream: bool = False) -> Needs:
    """What a workflow's jobs need, as its policy says."""
    contract = policy.output_contract
    tokens = contract.media is None
    return Needs(
        tools=contract.tools,
        json_schema=contract.json_schema,
        streaming=contract.streaming or stream,
        media=contract.media,
        safety=contract.safety,
        context_window=contract.context_window,
        input_tokens=contract.max_input_tokens if tokens else 0,
        output_tokens=contract.max_output_tokens if tokens else 0,
        images=0 if tokens else max(1, contract.images),
    )


def check(policy: Policy, route_from: Route, route_to: Route, needs: Needs) -> Clauses:
    """Every clause that this policy asks for, in the order people read them."""
    rules = policy.ai_api_queueing_strategy.fallback
    clauses: Clauses = {"endpoint_shape": _shape(route_to, needs)}
    clauses.update(_output(policy, route_to, needs))
    clauses["quality_tier"] = _quality(policy, route_to)
    if rules.require_cost_cap:
        clauses["cost_ceiling"] = _cost(policy, route_from, route_to, needs)
    if rules.require_data_boundary_match:
        clauses.update(boundary(policy, route_from, route_to))
    clauses.update(_observability(route_to))
    return clauses


def verdict(clauses: Mapping[str, bool | None]) -> Verdict:
    """One broken clause breaks the contract; one unknown clause leaves it unknown."""
    if any(kept is False for kept in clauses.values()):
        return Verdict.MISMATCH
    return Verdict.UNKNOWN if any(kept is None for kept in clauses.values()) else Verdict.HOLDS


def not_kept(clauses: Mapping[str, bool | None]) -> tuple[str, ...]:
    """The clauses that are broken, or if none is, those that are unknown."""
    broken = tuple(name for name, kept in clauses.items() if kept is False)
    return broken or tuple(name for name, kept in clauses.items() if kept is None)


def fits_route(policy: Policy, route: Route) -> Clauses:
    """Whether a workflow's own route can do what its policy asks for."""
    needs = needs_of(policy)
    clauses: Clauses = {"endpoint_shape": _shape(route, needs), **_output(policy, route, needs)}
    clauses["quality_tier"] = _quality(policy, route)
    if policy.cost_cap_micros is not None:
        clauses["cost_ceiling"] = _cost(policy, route, route, needs)
    clauses.update(boundary(policy, route, route))
    return clauses


def _shape(route: Route, needs: Needs) -> bool:
    """Text goes through any text endpoint: the adapters translate. Media needs an endpoint that makes it."""
    if needs.media is None:
        return route.endpoint != "images"
    return needs.media in route.capabilities.media


def _output(policy: Policy, route: Route, needs: Needs) -> Clauses:
    can, rules = route.capabilities, policy.ai_api_queueing_strategy.fallback
    clauses: Clauses = {}
    if needs.tools and rules.require_equivalent_tools:
        clauses["tools"] = can.tools
    if needs.json_schema and rules.require_schema_match:
        clauses["json_schema"] = can.json_schema
    if needs.streaming:
        clauses["streaming"] = can.streaming
    if needs.context_window is not None:
        clauses["context_window"] = _at_least(can.context_window, needs.context_window)
    if needs.output_tokens:
        clauses["max_output_tokens"] = _at_least(can.max_output_tokens, needs.output_tokens)
    if needs.safety:
        clauses["safety"] = None if can.safety is None else set(needs.safety) <= set(can.safety)
    return clauses


def _at_least(has: int | None, needed: int) -> bool | None:
    return None if has is None else has >= needed


def _quality(policy: Policy, route: Route) -> bool | None:
    if policy.quality_tier is None:
        return True
    if route.quality_tier is None:
        return None
    return QUALITY_RANK[route.quality_tier] >= QUALITY_RANK[policy.quality_tier]


def estimate_micros(prices: Prices | None, needs: Needs) -> int | None:
    """The most one call can cost, rounded up; None where a price is not known."""
    if prices is None:
        return None
    usage = Usage(input_tokens=needs.input_tokens, output_tokens=needs.output_tokens, images=needs.images)
    return cost_micros(usage, prices)


def _cost(policy: Policy, route_from: Route, route_to: Route, needs: Needs) -> bool | None:
    """Within the cap; where there is none, not dearer than the route it stands in for is known to be enough."""
    cost = estimate_micros(route_to.prices, needs)
    if cost is None:
        return None
    if policy.cost_cap_micros is not None:
        return cost <= policy.cost_cap_micros
    before = estimate_micros(route_from.prices, needs)
    return True if before is not None and cost <= before else None


def boundary(policy: Policy, route_from: Route, route_to: Route) -> Clauses:
    """Provider, vendor, region, procurement and boundary: on the policy's list, or the same as where it came from."""
    allowed = policy.data_boundary
    return {
        f"data_boundary.{name}": _allowed(listed, before, after)
        for name, listed, before, after in (
            ("provider", allowed.providers, _provider(route_from), _provider(route_to)),
            ("vendor", allowed.vendors, route_from.vendor, route_to.vendor),
            ("region", allowed.regions, route_from.region, route_to.region),
            ("procurement", allowed.procurement, route_from.procurement, route_to.procurement),
            ("boundary", allowed.boundaries, route_from.data_boundary, route_to.data_boundary),
        )
    }


def _provider(route: Route) -> str:
    """Who receives the request: the gateway's name where there is one."""
    return route.gateway or route.provider


def _allowed(listed: tuple[str, ...], before: str | None, after: str | None) -> bool | None:
    if listed:
        return None if after is None else after in listed
    return True if before == after else None


def _observability(route: Route) -> Clauses:
    told = route.observability
    return {
        "observability.served_model": told.served_model,
        "observability.usage": told.usage,
        "observability.request_id": told.request_id,
    }
