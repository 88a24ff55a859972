"""Policies and routes for tests: small, and each with one point."""

from __future__ import annotations

from datetime import date
from typing import Any

from breakwater.domain.checked import policy_of, route_of
from breakwater.domain.routes import Catalogue, Route

_STRATEGY: dict[str, Any] = {
    "lanes": {
        "interactive_admission": {"max_wait_ms": 4000, "max_attempts": 2},
        "background_retry": {"max_queue_age_ms": 900_000, "max_attempts": 3, "require_idempotency_key": False},
    },
}


def policy(workflow: str, **more: Any) -> Any:
    """A policy that allows retries in the background and needs nothing."""
    return policy_of({"workflow": workflow, "ai_api_queueing_strategy": _STRATEGY, "route": "plain", **more})


def route(route_key: str, **more: Any) -> Route:
    """A synchronous text route with prices."""
    return route_of(
        {
            "route_key": route_key,
            "provider": "openai",
            "endpoint": "responses",
            "model": "gpt-5.2",
            "credential": "openai",
            "quality_tier": "standard",
            "vendor": "openai",
            "region": "us",
            "data_boundary": "us",
            "procurement": "approved",
            "capabilities": {
                "tools": True,
                "json_schema": True,
                "streaming": True,
                "context_window": 400_000,
                "safety": [],
                "max_output_tokens": 16_000,
            },
            "observability": {"served_model": True, "usage": True, "request_id": True, "route_result": True},
            "prices": {"input": 1_000_000, "cached_input": 100_000, "output": 10_000_000},
            "catalogue": {"as_of": date(2026, 11, 1), "source": "test"},
            **more,
        }
    )


def catalogue() -> Catalogue:
    """Every workflow that tests use."""
    webhook = {
        "capabilities": {
            "tools": True,
            "json_schema": True,
            "background": True,
            "webhook": "openai",
            "context_window": 400_000,
        },
    }
    media = {"capabilities": {"media": ["image"]}, "prices": {"image": 40_000}}
    routes = [
        route("plain"),
        route("other", credential="second", model="gpt-5.2"),
        route("hook", **webhook),
        route("poll", capabilities={"background": True, "context_window": 400_000}),
        route("pictures", endpoint="images", model="gpt-image-1", **media),
    ]
    fallback = {
        "name": "second_account",
        "route": "other",
        "approved_by": "ops",
        "approved_on": "2026-11-01",
        "contract_version": "1",
    }
    policies = [
        policy("sync"),
        policy("summary", route="hook", mode="background", webhook_grace_ms=120_000),
        policy("polled", route="poll", mode="background"),
        policy("paid", side_effects="paid"),
        policy("external", route="hook", mode="background", side_effects="external"),
        policy("guarded", requires_approval=True),
        policy("fallback", fallbacks=[fallback]),
        policy("compared", require_same_served_model=True),
        policy("pictures", route="pictures"),
        policy("truncatable", accept_truncated=True),
        policy("urgent", priority="high"),
    ]
    return Catalogue(
        routes={one.route_key: one for one in routes},
        policies={one.workflow: one for one in policies},
        default_route="plain",
    )
