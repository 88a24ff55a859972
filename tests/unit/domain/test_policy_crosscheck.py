"""What one file alone can't show."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from breakwater.domain.crosscheck import findings
from breakwater.domain.policy import Policy
from breakwater.domain.routes import Catalogue, Route
from tests.support.cases import ALL_CAN, fallback, make_policy, make_route

TODAY = date(2026, 11, 30)


def found(policy: Policy | None = None, *routes: Route, today: date | None = TODAY, **more: Any) -> list[str]:
    """The findings as lines, warnings marked."""
    known = routes or (make_route(), make_route("second"))
    catalogue = Catalogue(
        routes={one.route_key: one for one in known},
        policies={policy.workflow: policy} if policy else {},
        **more,
    )
    return [f"{'warning ' if one.warning else ''}{one.path}: {one.text}" for one in findings(catalogue, today)]


def test_what_fits_together_has_no_findings():
    """Nothing is wrong and nothing is doubtful."""
    assert found(make_policy(fallbacks=[fallback()]), default_route="first") == []


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"route": "frist"}, "route: there is no route 'frist'; did you mean 'first'?"),
        ({"route": "zzz"}, "route: there is no route 'zzz'; add it to the routes"),
        ({"fallbacks": [fallback("secnd")]}, "fallbacks[0].route: there is no route 'secnd'; did you mean 'second'?"),
        ({"route": "zzz", "fallbacks": [fallback()]}, "route: there is no route 'zzz'; add it to the routes"),
        (
            {"mode": "background"},
            "mode: background needs a route with capabilities.background, which 'first' has not; use sync",
        ),
        ({"output_contract": {"max_output_tokens": 20_000}}, "route: 'first' does not keep max_output_tokens"),
        ({"quality_tier": "premium"}, "route: 'first' does not keep quality_tier"),
        ({"cost_cap_micros": 100}, "route: 'first' does not keep cost_ceiling"),
        ({"data_boundary": {"regions": ["eu"]}}, "route: 'first' does not keep data_boundary.region"),
        (
            {"retention_days": 1, "dedupe_window_ms": 1, "review_max_age_ms": 86_400_001},
            "review_max_age_ms: must be <= retention_days (1 days = 86400000 ms), got 86400001",
        ),
    ],
)
def test_a_mismatch_is_named_with_its_key(change, line):
    """Path, reason and what to do."""
    assert found(make_policy(**change)) == [line]


def test_work_may_not_outlive_its_record():
    """A queue age beyond the retention would lose jobs."""
    lanes = {"background_retry": {"max_queue_age_ms": 8 * 86_400_000}}
    path = "ai_api_queueing_strategy.lanes.background_retry.max_queue_age_ms"

    assert [line.split(":")[0] for line in found(make_policy(lanes=lanes, retention_days=7))] == [path]


def test_a_workflow_without_a_background_lane_has_no_queue_age():
    """Nothing to compare with the retention."""
    assert found(make_policy(lanes={"interactive_admission": {}})) == []


def test_the_default_route_must_exist():
    """A template without a route takes it."""
    assert found(None, default_route="nobody")[0].startswith("default_route: there is no route 'nobody'")


def test_what_nobody_has_checked_is_doubtful():
    """An unknown capability of the own route is a warning, not an error."""
    route = make_route(capabilities={key: value for key, value in ALL_CAN.items() if key != "tools"})

    assert found(make_policy(output_contract={"tools": True}), route) == [
        "warning route: 'first' has not been checked for tools",
    ]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"quality_tier": "economy"}, "'second' will never be taken: quality_tier broken"),
        ({"quality_tier": None}, "'second' waits for a person: quality_tier unknown"),
    ],
)
def test_a_fallback_that_does_not_work_is_told_before_it_is_needed(change, text):
    """The contract is checked when the files are, too."""
    policy = make_policy(fallbacks=[fallback()], quality_tier="standard")

    assert found(policy, make_route(), make_route("second", **change)) == [f"warning fallbacks[0].route: {text}"]


@pytest.mark.parametrize(
    ("as_of", "warns"),
    [
        ("2026-09-01", False),
        ("2026-08-31", True),
        ("2026-11-30", False),
        ("2026-12-01", True),
    ],
)
def test_catalogue_entries_grow_stale(as_of, warns):
    """After 90 days, or when they are dated in the future."""
    route = make_route(catalogue={"as_of": as_of, "source": "https://example.com"})

    assert bool(found(None, route)) is warns
    assert found(None, route, today=None) == []


def test_a_stale_entry_says_where_to_look():
    """The age and the source."""
    route = make_route(catalogue={"as_of": "2026-07-03", "source": "https://example.com/models"})

    line = found(None, route)[0]

    assert line.startswith("warning routes.first.catalogue.as_of: looked up 150 days ago")
    assert line.endswith("https://example.com/models")


def test_a_route_without_prices_is_doubtful():
    """Costs would be unknown."""
    assert found(None, make_route(prices=None)) == [
        "warning routes.first.prices: not given: costs on this route stay unknown",
    ]


def test_a_webhook_must_have_an_endpoint():
    """Events that nobody takes in would never arrive."""
    route = make_route(capabilities={"background": True, "webhook": "openai"})

    assert found(None, route) == [
        "routes.first.capabilities.webhook: there is no webhook endpoint 'openai'; add it to the endpoints",
    ]
    assert found(None, route, endpoints=[{"name": "openai"}]) == []


@pytest.mark.parametrize(
    ("capabilities", "result", "lines"),
    [
        ({"background": True}, {"text": "text"}, []),
        ({"background": True, "media": ["image"]}, {"media": "output"}, []),
        ({"background": True}, {"media": "output"}, ["and reads no text; add result.text to it"]),
        ({"background": True, "media": ["image"]}, {"text": "t"}, ["and reads no media; add result.media to it"]),
        ({}, {"text": "t"}, [", so it needs background: true; add it, or remove webhook"]),
    ],
)
def test_a_result_that_comes_by_webhook_only_must_be_one_that_is_read(capabilities, result, lines):
    """Otherwise each paid answer would be read as empty."""
    route = make_route(capabilities={**capabilities, "webhook": "told"})
    entry = {"name": "told", "fetch": False, "result": result}

    told = found(None, route, endpoints=[entry])

    assert len(told) == len(lines)
    for one, line in zip(told, lines, strict=True):
        assert one.startswith("routes.first.capabilities.webhook: endpoint 'told' has fetch: false")
        assert one.endswith(line)
