"""Where may a call go? Routes with what they can do, cost and are allowed to see; and all routes and policies as one.

A route is what is throttled, broken or closed as one: gateway or provider endpoint, model, endpoint family, credential.
`None` in a capability, price or boundary means *nobody has checked*, and a contract treats it so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from datetime import date
from typing import Annotated, Any, ClassVar, Literal

from breakwater.domain.errors import NotFound
from breakwater.domain.model import After, Count, Flag, Model, Positive, Rule, Words
from breakwater.domain.policy import DEFAULT_ROUTE, Policy, QualityTier, QueueDepth, RouteKey
from breakwater.domain.states import Lane
from breakwater.domain.values import dataclass

Endpoint = Literal["responses", "images", "chat", "messages", "generate_content"]


def _secure(url: str) -> str:
    if not url.startswith(("https://", "http://127.0.0.1", "http://localhost")):
        raise ValueError("must begin with https://")
    return url.rstrip("/")


Url = Annotated[str, After(_secure)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities(Model):
    """What the endpoint can do with this model. `webhook` names the intake endpoint its events come to."""

    tools: Flag | None = None
    json_schema: Flag | None = None
    streaming: Flag | None = None
    background: Flag = False
    webhook: str | None = None
    context_window: Positive | None = None
    max_output_tokens: Positive | None = None
    media: tuple[Literal["image", "video"], ...] = ()
    safety: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observability(Model):
    """What an answer tells about itself."""

    served_model: Flag | None = None
    usage: Flag | None = None
    request_id: Flag | None = None
    route_result: Flag | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutePrices(Model):
    """Micro-dollars per million tokens, and per image."""

    input: Count | None = None
    cached_input: Count | None = None
    output: Count | None = None
    image: Count | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteLimits(Model):
    """The most this route is given; a scope without a number is not limited."""

    concurrency: Positive | None = None
    requests_per_minute: Positive | None = None
    tokens_per_minute: Positive | None = None
    per_owner: Positive | None = None
    per_user: Positive | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry(Model):
    """When and where model, prices and limits were last looked up."""

    parts: ClassVar = {"as_of": date.fromisoformat}

    as_of: date
    source: Words


@dataclass(frozen=True, slots=True, kw_only=True)
class Route(Model):
    """One way to a model."""

    parts: ClassVar = {
        "capabilities": Capabilities.of,
        "quality_tier": QualityTier,
        "observability": Observability.of,
        "prices": RoutePrices.of,
        "limits": RouteLimits.of,
        "catalogue": CatalogueEntry.of,
    }

    route_key: RouteKey
    provider: Literal["openai", "anthropic", "gemini", "gateway"]
    endpoint: Endpoint
    model: Words
    credential: Annotated[str, Rule(pattern=r"^[A-Za-z0-9][A-Za-z0-9_./-]{0,98}$")]
    gateway: str | None = None
    base_url: Url | None = None
    capabilities: Capabilities = Capabilities()
    quality_tier: QualityTier | None = None
    vendor: str | None = None
    region: str | None = None
    data_boundary: str | None = None
    procurement: str | None = None
    observability: Observability = Observability()
    prices: RoutePrices | None = None
    limits: RouteLimits = RouteLimits()
    timeout_ms: Annotated[int, Rule(strict=True, ge=1_000, le=600_000)] = 30_000
    catalogue: CatalogueEntry

    def __post_init__(self) -> None:
        if self.provider == "gateway" and not (self.gateway and self.base_url):
            raise ValueError("a gateway route needs gateway (its name) and base_url")

    def reaches(self) -> tuple[str | None, ...]:
        """Which endpoint it calls, whatever the model and the credential."""
        return (self.provider, self.gateway, self.base_url, self.endpoint)


@dataclass(frozen=True, slots=True)
class RouteView:
    """What is known about a route now: closed until, and how many calls it takes at once (0: none)."""

    closed_until: int | None = None
    limit: int | None = None

    def opens_at(self, now: int) -> int | None:
        """When it takes calls: now, later, or None where nobody knows."""
        if self.closed_until is not None and self.closed_until > now:
            return self.closed_until
        return None if self.limit == 0 else now


OPEN = RouteView()


@dataclass(slots=True)
class Catalogue:
    """All routes, policies, schedules and endpoints. Compiled entries stay plain data until somebody asks for them."""

    routes: dict[str, Route] = field(default_factory=dict)
    policies: dict[str, Policy] = field(default_factory=dict)
    schedules: list[Any] = field(default_factory=list)
    endpoints: list[Any] = field(default_factory=list)
    default_route: str | None = None
    _raw_routes: Mapping[str, Any] = field(default_factory=dict, repr=False)
    _raw_policies: Mapping[str, Any] = field(default_factory=dict, repr=False)
    _counts: bool | None = field(default=None, repr=False, compare=False)

    def route(self, key: str) -> Route | None:
        """The route under this key; `default` means the catalogue's default route."""
        key = self.default_route or key if key == DEFAULT_ROUTE else key
        if key not in self.routes and key in self._raw_routes:
            self.routes[key] = Route.of(self._raw_routes[key])
        return self.routes.get(key)

    def neighbours(self, route: Route) -> list[Route]:
        """The other routes to the same endpoint of the same provider: what takes one down mostly takes all."""
        others = [one for key in self.route_keys() if key != route.route_key and (one := self.route(key))]
        return [one for one in others if one.reaches() == route.reaches()]

    def policy(self, workflow: str) -> Policy | None:
        """The policy of this workflow."""
        if workflow not in self.policies and workflow in self._raw_policies:
            self.policies[workflow] = Policy.of(self._raw_policies[workflow])
        return self.policies.get(workflow)

    def counts_depth(self) -> bool:
        """Whether any workflow limits how much may stand in a lane: then every job is counted while it stands."""
        if self._counts is None:  # every submit asks
            known = any(policy.depth(lane) != QueueDepth() for policy in self.policies.values() for lane in Lane)
            self._counts = known or any(_names_depth(plain) for plain in self._raw_policies.values())
        return self._counts

    def workflows(self) -> tuple[str, ...]:
        """The names of all workflows."""
        return tuple(sorted({*self.policies, *self._raw_policies}))

    def route_keys(self) -> tuple[str, ...]:
        """The keys of all routes."""
        return tuple(sorted({*self.routes, *self._raw_routes}))

    def need_policy(self, workflow: str) -> Policy:
        """The policy of this workflow; raises NotFound."""
        found = self.policy(workflow)
        if found is None:
            raise NotFound("There is no workflow of this name.", field="workflow", workflow=workflow)
        return found

    def dump(self) -> bytes:
        """The compiled form: JSON, keys sorted, defaults left out."""
        routes = [self.route(key) for key in self.route_keys()]
        policies = [self.policy(name) for name in self.workflows()]
        compiled = {
            "default_route": self.default_route,
            "routes": {one.route_key: one.plain(sparse=True) for one in routes if one},
            "policies": {one.workflow: one.plain(sparse=True) for one in policies if one},
            "schedules": self.schedules,
            "endpoints": self.endpoints,
        }
        return json.dumps(compiled, indent=1, ensure_ascii=False).encode() + b"\n"

    @classmethod
    def load(cls, text: str | bytes) -> Catalogue:
        """The catalogue from its compiled form. Cheap: nothing is validated before somebody asks for it."""
        data = json.loads(text)
        return cls(
            schedules=data["schedules"],
            endpoints=data["endpoints"],
            default_route=data["default_route"],
            _raw_routes=data["routes"],
            _raw_policies=data["policies"],
        )


def _names_depth(plain: Mapping[str, Any]) -> bool:
    """The same of a policy that nobody has asked for yet."""
    lanes = plain["ai_api_queueing_strategy"]["lanes"].values()
    return any(name.startswith("max_queue_depth") for lane in lanes for name in lane or ())
