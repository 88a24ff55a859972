"""Jobs, signals, routes and policies for tests of decisions: each builder takes what the test is about."""

from __future__ import annotations

from typing import Any

from breakwater.domain.case import Decision
from breakwater.domain.checked import policy_of, route_of
from breakwater.domain.decide import decide
from breakwater.domain.job import Execution, Job
from breakwater.domain.policy import Policy
from breakwater.domain.routes import Catalogue, Route
from breakwater.domain.signals import ErrorClass, Signal
from breakwater.domain.states import Lane, Status, Visibility

NOW = 1_800_000_000_000
ALL_CAN: dict[str, Any] = {
    "tools": True,
    "json_schema": True,
    "streaming": True,
    "context_window": 200_000,
    "max_output_tokens": 16_000,
    "safety": ["filter"],
}
LANES: dict[str, Any] = {
    "interactive_admission": {"max_wait_ms": 4_000, "max_attempts": 2},
    "background_retry": {"max_queue_age_ms": 900_000, "max_attempts": 5, "require_idempotency_key": False},
}


def make_route(route_key: str = "first", **more: Any) -> Route:
    """A text route about which everything is known."""
    return route_of(
        {
            "route_key": route_key,
            "provider": "openai",
            "endpoint": "responses",
            "model": f"model-{route_key}",
            "credential": f"key-{route_key}",
            "capabilities": ALL_CAN,
            "quality_tier": "standard",
            "vendor": "openai",
            "region": "us",
            "data_boundary": "no-training",
            "procurement": "contract",
            "observability": {"served_model": True, "usage": True, "request_id": True},
            "prices": {"input": 1_000_000, "cached_input": 100_000, "output": 4_000_000, "image": 40_000},
            "catalogue": {"as_of": "2026-11-30", "source": "test"},
            **more,
        }
    )


def fallback(name: str = "second", **more: Any) -> dict[str, Any]:
    """An approved fallback to the route of the same name."""
    return {
        "name": name,
        "route": name,
        "approved_by": "owner",
        "approved_on": "2026-11-16",
        "contract_version": "v1",
        **more,
    }


WITH_FALLBACK: dict[str, Any] = {"fallbacks": [fallback()], "cost_cap_micros": 1_000_000}
"""What a policy says that has one approved fallback it can afford."""


def make_policy(*, lanes: Any = None, strategy: Any = None, **more: Any) -> Policy:
    """A workflow in both lanes that fails closed on visible output only."""
    own = {"lanes": LANES if lanes is None else lanes, "fail_closed_when": ["partial_output_committed"]}
    return policy_of(
        {
            "workflow": "chat",
            "route": "first",
            "ai_api_queueing_strategy": {**own, **(strategy or {})},
            **more,
        }
    )


def make_catalogue(*routes: Route) -> Catalogue:
    """These routes, or `first` and `second`."""
    known = routes or (make_route(), make_route("second"))
    return Catalogue(routes={one.route_key: one for one in known}, default_route=known[0].route_key)


def make_job(policy: Policy | None = None, lane: Lane = Lane.BACKGROUND_RETRY, **more: Any) -> Job:
    """A job in its first attempt, admitted a second ago."""
    waits = lane in (Lane.INTERACTIVE_ADMISSION, Lane.STREAM_RECOVERY)
    return Job(
        **{
            "job_id": "job_a",
            "owner_key": "owner",
            "workflow": "chat",
            "idempotency_key": "k",
            "fingerprint": "f",
            "created_at": NOW - 1_000,
            "round_started_at": NOW - 1_000,
            "status": Status.PROCESSING,
            "lane": lane,
            "attempt": 1,
            "max_attempts": 5,
            "route_key": "first",
            "expires_at": NOW + 899_000,
            "deadline_at": NOW + 24_000 if waits else None,
            "side_effects": policy.side_effects if policy else "none",
            "execution": Execution(
                id="job_a.1.1.1",
                generation=1,
                attempt=1,
                epoch=1,
                route_key="first",
                requested_model="model-first",
                opened_at=NOW - 500,
            ),
            **more,
        }
    )


def make_signal(error_class: ErrorClass = ErrorClass.OVERLOAD, hint: int | None = None, **more: Any) -> Signal:
    """A refusal of the first route before anything was visible."""
    return Signal(
        **{
            "error_class": error_class,
            "retry_after_ms": hint,
            "route_key": "first",
            "visibility_state": Visibility.BEFORE_FIRST_TOKEN,
            **more,
        }
    )


def decided(
    signal: Signal,
    job: Job | None = None,
    policy: Policy | None = None,
    catalogue: Catalogue | None = None,
    draw: float = 0.5,
    **more: Any,
) -> Decision:
    """What `decide` says, for the parts a test cares about."""
    policy = policy or make_policy()
    catalogue = catalogue or make_catalogue()
    job = job or make_job(policy)
    route = catalogue.route(job.route_key)
    assert route is not None
    return decide(job, signal, policy, catalogue, route, NOW, draw, **more)
