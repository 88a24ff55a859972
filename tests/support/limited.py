"""Worlds with limits: a catalogue whose routes and policies have numbers, and a caller that waits."""

from __future__ import annotations

from typing import Any

from breakwater.domain.request import parse
from breakwater.domain.routes import Catalogue
from breakwater.usecases.admit import Principal
from breakwater.usecases.run import Ran, Waiter, run
from breakwater.usecases.step import Told
from tests.support.catalogue import policy, route
from tests.support.world import OWNER, World

FALLBACK = {
    "name": "second_account",
    "route": "other",
    "approved_by": "ops",
    "approved_on": "2026-11-01",
    "contract_version": "1",
}
_PEOPLE = {
    "lanes": {
        "interactive_admission": {"max_wait_ms": 4000, "max_attempts": 2, "shed_priority_below": "normal"},
        "background_retry": {"max_queue_age_ms": 900_000, "max_attempts": 3, "require_idempotency_key": False},
    },
}


def limited(routes: dict[str, Any] | None = None, **limits: Any) -> Catalogue:
    """`sync` on a route with these limits; `chat` for people, `only_now` without a background lane."""
    people_only = {"lanes": {"interactive_admission": {"max_wait_ms": 4000, "max_attempts": 2}}}
    policies = [
        policy("sync"),
        policy("chat", ai_api_queueing_strategy=_PEOPLE, serve_latest=True, fallbacks=[FALLBACK]),
        policy("plain_chat", ai_api_queueing_strategy=_PEOPLE),
        policy("only_now", ai_api_queueing_strategy=people_only),
        policy("summary", route="hook", mode="background", webhook_grace_ms=120_000),
        policy("low", priority="low"),
        policy("high", priority="high"),
    ]
    plain = route("plain", **{"limits": limits, **(routes or {})})
    hook = route(
        "hook",
        limits=limits,
        capabilities={"background": True, "webhook": "openai", "context_window": 400_000},
    )
    return Catalogue(
        routes={one.route_key: one for one in (plain, hook, route("other", credential="second"))},
        policies={one.workflow: one for one in policies},
        default_route="plain",
    )


def owner(name: str) -> Principal:
    """Another customer."""
    return Principal(owner_key=name, key_id="k", scopes=frozenset({"submit", "read"}))


def run_in(
    world: World,
    workflow: str = "chat",
    key: str = "r-1",
    *,
    caller: Principal = OWNER,
    late_by: int = 0,
    remaining: int = 29_000,
    **more: Any,
) -> Ran:
    """One `/run` request; sleeping moves the clock."""
    began = world.clock.now()
    waiter = Waiter(
        arrived_at=began - late_by,
        remaining_ms=lambda: remaining - (world.clock.now() - began),
        sleep=world.clock.advance,
        told=Told(lambda_request_id="l-1"),
    )
    body = {"workflow": workflow, "input": {"messages": [{"role": "user", "content": "hi"}]}, **more}
    return run(world.deps, caller, parse(body), key, "req-1", waiter)
