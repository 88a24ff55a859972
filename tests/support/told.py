"""Providers that tell their results themselves: one that returns our metadata, one that knows its own id only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from breakwater.domain.endpoint_entries import load_endpoints
from breakwater.domain.routes import Catalogue
from breakwater.entry.webhook import webhook
from breakwater.usecases.intake import IntakeDeps
from tests.support.catalogue import policy, route
from tests.support.webhooks import SECRET, event, signed
from tests.support.world import World

_ENTRY: Mapping[str, Any] = {
    "provider": "media",
    "secret": "media",
    "event_type": "status",
    "provider_job_id": "id",
    "outcomes": {"succeeded": "completed", "failed": "failed", "canceled": "cancelled", "processing": "progress"},
    "fetch": False,
    "result": {
        "media": "output",
        "text": "text",
        "input_tokens": "usage.in",
        "output_tokens": "usage.out",
        "model": "model",
        "error_code": "error.code",
        "error_status": "error.status",
    },
}
ENDPOINTS: tuple[Mapping[str, Any], ...] = (
    {**_ENTRY, "name": "knows_us", "job_id": "metadata.job_id", "execution_id": "metadata.execution_id"},
    {**_ENTRY, "name": "own_id"},
    {"name": "asked", "provider": "x", "secret": "media", "event_type": "status", "provider_job_id": "id",
     "outcomes": {"succeeded": "completed"}},
)  # fmt: skip
_CAN: Mapping[str, Any] = {"background": True, "json_schema": True, "context_window": 400_000}


def told_catalogue(**limits: Any) -> Catalogue:
    """A route and workflows for each endpoint; `paid_…` may never be repeated unasked."""
    routes, policies = [route("plain")], [policy("sync")]
    for one in ENDPOINTS:
        name = str(one["name"])
        routes.append(route(name, capabilities={**_CAN, "webhook": name}, **limits))
        policies.append(policy(name, route=name, mode="background"))
        policies.append(policy(f"paid_{name}", route=name, mode="background", side_effects="paid"))
    return Catalogue(
        routes={one.route_key: one for one in routes},
        policies={one.workflow: one for one in policies},
        endpoints=list(ENDPOINTS),
        default_route="plain",
    )


def told_body(world: World, provider_job_id: str, status: str = "succeeded", **more: Any) -> bytes:
    """The job as its provider tells it, with the metadata that the create call gave it; it is over there then."""
    known = world.provider.jobs.get(provider_job_id, {})
    if known and status != "processing":
        world.provider.finish(provider_job_id)
    metadata = {name: known[name] for name in ("job_id", "execution_id") if name in known}
    made = {"text": f"answer of {provider_job_id}", "usage": {"in": 100, "out": 20}, "model": "gpt-5.2"}
    told = {"id": provider_job_id, "status": status, "metadata": metadata, **made, **more}
    return json.dumps(told).encode()


def tell(world: World, endpoint: str, body: bytes, webhook_id: str = "wh-1") -> str:
    """Hand a genuine delivery to the intake; its one word."""
    deps = IntakeDeps(
        store=world.store,
        queues=world.queues,
        payloads=lambda: world.payloads,
        clock=world.clock,
        log=world.log,
    )
    made = event(body, signed(body, webhook_id, world.clock.now()), endpoint)
    answer = webhook(deps, load_endpoints(list(ENDPOINTS)), lambda: {"media": [SECRET]}, made)
    return str(json.loads(answer["body"])["result"])
