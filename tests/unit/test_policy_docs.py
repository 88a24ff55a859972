"""The reference page knows every key a file may hold."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from breakwater.domain.policy import DataBoundary, Fallback, Limits, OutputContract, Policy
from breakwater.domain.routes import Capabilities, CatalogueEntry, Observability, Route, RouteLimits, RoutePrices
from breakwater.domain.strategy import (
    BackgroundLane,
    Backoff,
    Backpressure,
    DeadLetterLane,
    FallbackRules,
    InteractiveLane,
    Lanes,
    OwnerReviewLane,
    Strategy,
    StreamLane,
)

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "policies.md").read_text(encoding="utf-8")
MODELS = [
    Policy,
    Fallback,
    DataBoundary,
    OutputContract,
    Limits,
    Strategy,
    Lanes,
    InteractiveLane,
    StreamLane,
    BackgroundLane,
    OwnerReviewLane,
    DeadLetterLane,
    Backoff,
    Backpressure,
    FallbackRules,
    Route,
    Capabilities,
    Observability,
    RoutePrices,
    RouteLimits,
    CatalogueEntry,
]
KEYS = sorted({field.name for model in MODELS for field in fields(model)} - {"route_key"})


@pytest.mark.parametrize("key", KEYS)
def test_every_key_is_explained(key):
    """A key that is not on the page does not exist for its reader."""
    assert key in PAGE
