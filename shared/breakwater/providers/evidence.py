"""What does a gateway tell about itself?

Kept beside a result, so that a job's fields and the gateway's own account can be held against each other: which
model was asked for and which served, who served it, through which kind of endpoint, what was counted and charged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from breakwater.domain.reading import count, inside, micros, word
from breakwater.domain.results import Result

_HEADERS = (
    ("x-litellm-model-id", "deployment"),
    ("x-litellm-attempted-fallbacks", "attempted_fallbacks"),
    ("x-litellm-attempted-retries", "attempted_retries"),
)


def gateway_evidence(
    result: Result, body: Mapping[str, Any], headers: Mapping[str, str], *, endpoint: str, requested: str | None
) -> dict[str, str | int]:
    """What is known, under the names that jobs use; nothing that is content."""
    known: dict[str, Any] = {
        "endpoint_type": endpoint,
        "requested_model": requested,
        "served_model": result.served_model,
        "served_by": word(body.get("provider")),
        "generation_id": word(body.get("id")),
        "usage_units": result.usage.units or None,
        "reported_total_tokens": count(inside(body, "usage", "total_tokens")) or None,
        **{name: word(headers.get(header)) for header, name in _HEADERS},
    }
    known["route_result"] = _route_result(known)
    return {name: value for name, value in known.items() if value is not None}


def reported_cost(body: Mapping[str, Any], headers: Mapping[str, str]) -> int | None:
    """What the gateway says it charged: OpenRouter in the usage, LiteLLM in a header."""
    inline = micros(inside(body, "usage", "cost"))
    return micros(headers.get("x-litellm-response-cost")) if inline is None else inline


def _route_result(known: Mapping[str, Any]) -> str:
    """Whether the gateway kept to the model that was asked for, as far as it lets us see."""
    if known["attempted_fallbacks"] not in {None, "0"}:
        return "fell_back"
    if known["requested_model"] is None or known["served_model"] is None:
        return "unknown"
    return "as_requested" if same_model(known["requested_model"], known["served_model"]) else "other_model"


def same_model(requested: str, served: str) -> bool:
    """Whether two names mean one model: a vendor's prefix and the date of a snapshot make no other."""
    asked, got = (name.lower().rpartition("/")[2] for name in (requested, served))
    return got == asked or got.startswith((f"{asked}-20", f"{asked}@20"))
