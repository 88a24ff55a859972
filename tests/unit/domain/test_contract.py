"""The fallback contract, clause by clause."""

from __future__ import annotations

from typing import Any

import pytest

from breakwater.domain.contract import Needs, Verdict, check, estimate_micros, fits_route, needs_of, not_kept, verdict
from tests.support.cases import ALL_CAN, make_policy, make_route

CONTRACT = {"json_schema": True, "tools": True, "streaming": True, "safety": ["filter"], "context_window": 100_000}
EVERYTHING: dict[str, Any] = {
    "output_contract": CONTRACT,
    "quality_tier": "standard",
    "cost_cap_micros": 100_000,
    "data_boundary": {
        "providers": ["openai", "flatkey"],
        "vendors": ["openai"],
        "regions": ["us"],
        "procurement": ["contract"],
        "boundaries": ["no-training"],
    },
}


def clauses(to: dict[str, Any] | None = None, **policy: Any) -> dict[str, bool | None]:
    """The clauses of a policy that asks for everything, with the target changed."""
    asked = make_policy(**{**EVERYTHING, **policy})
    return check(asked, make_route(), make_route("second", **(to or {})), needs_of(asked))


def can(**change: Any) -> dict[str, Any]:
    """A target whose capabilities differ."""
    return {"capabilities": {**ALL_CAN, **change}}


def without(name: str) -> dict[str, Any]:
    """A target about which one thing is not known."""
    return {"capabilities": {key: value for key, value in ALL_CAN.items() if key != name}}


def test_an_equal_route_keeps_every_clause():
    """All that is asked for is listed, and holds."""
    found = clauses()

    assert set(found.values()) == {True}
    assert set(found) == {
        "endpoint_shape",
        "tools",
        "json_schema",
        "streaming",
        "context_window",
        "max_output_tokens",
        "safety",
        "quality_tier",
        "cost_ceiling",
        "data_boundary.provider",
        "data_boundary.vendor",
        "data_boundary.region",
        "data_boundary.procurement",
        "data_boundary.boundary",
        "observability.served_model",
        "observability.usage",
        "observability.request_id",
    }
    assert verdict(found) is Verdict.HOLDS
    assert not_kept(found) == ()


@pytest.mark.parametrize(
    ("clause", "to"),
    [
        ("endpoint_shape", {"endpoint": "images"}),
        ("tools", can(tools=False)),
        ("json_schema", can(json_schema=False)),
        ("streaming", can(streaming=False)),
        ("context_window", can(context_window=99_999)),
        ("max_output_tokens", can(max_output_tokens=1_999)),
        ("safety", can(safety=["other"])),
        ("quality_tier", {"quality_tier": "economy"}),
        ("cost_ceiling", {"prices": {"input": 12_000_000, "output": 4_000_000}}),
        ("data_boundary.provider", {"provider": "anthropic"}),
        ("data_boundary.provider", {"provider": "gateway", "gateway": "other", "base_url": "https://x.example"}),
        ("data_boundary.vendor", {"vendor": "anthropic"}),
        ("data_boundary.region", {"region": "eu"}),
        ("data_boundary.procurement", {"procurement": "none"}),
        ("data_boundary.boundary", {"data_boundary": "training"}),
        ("observability.served_model", {"observability": {"served_model": False, "usage": True, "request_id": True}}),
        ("observability.usage", {"observability": {"served_model": True, "usage": False, "request_id": True}}),
        ("observability.request_id", {"observability": {"served_model": True, "usage": True, "request_id": False}}),
    ],
)
def test_one_broken_clause_breaks_the_contract(clause, to):
    """Exactly that clause is false, and the verdict is a mismatch that names it."""
    found = clauses(to)

    assert [name for name, kept in found.items() if kept is not True] == [clause]
    assert found[clause] is False
    assert verdict(found) is Verdict.MISMATCH
    assert not_kept(found) == (clause,)


@pytest.mark.parametrize(
    ("clause", "to"),
    [
        ("tools", without("tools")),
        ("json_schema", without("json_schema")),
        ("streaming", without("streaming")),
        ("context_window", without("context_window")),
        ("max_output_tokens", without("max_output_tokens")),
        ("safety", without("safety")),
        ("quality_tier", {"quality_tier": None}),
        ("cost_ceiling", {"prices": None}),
        ("cost_ceiling", {"prices": {"input": 1}}),
        ("data_boundary.vendor", {"vendor": None}),
        ("data_boundary.region", {"region": None}),
        ("data_boundary.procurement", {"procurement": None}),
        ("data_boundary.boundary", {"data_boundary": None}),
        ("observability.usage", {"observability": {"served_model": True, "request_id": True}}),
    ],
)
def test_one_unchecked_clause_leaves_the_contract_unknown(clause, to):
    """What nobody has looked up is neither kept nor broken."""
    found = clauses(to)

    assert [name for name, kept in found.items() if kept is not True] == [clause]
    assert found[clause] is None
    assert verdict(found) is Verdict.UNKNOWN
    assert not_kept(found) == (clause,)


def test_a_broken_clause_outweighs_unknown_ones():
    """No person need be asked about a route that can't be taken anyway."""
    found = clauses({"quality_tier": "economy", "region": None})

    assert verdict(found) is Verdict.MISMATCH
    assert not_kept(found) == ("quality_tier",)


def test_a_gateway_is_known_by_its_own_name():
    """Who receives the data is the gateway, not the provider behind it."""
    found = clauses({"provider": "gateway", "gateway": "flatkey", "base_url": "https://x.example"})

    assert found["data_boundary.provider"] is True


@pytest.mark.parametrize(
    ("rule", "clause"),
    [
        ("require_equivalent_tools", "tools"),
        ("require_schema_match", "json_schema"),
        ("require_cost_cap", "cost_ceiling"),
        ("require_data_boundary_match", "data_boundary.region"),
    ],
)
def test_a_clause_the_policy_waives_is_not_checked(rule, clause):
    """Each flag of the template switches its own clause."""
    assert clause in clauses()
    assert clause not in clauses(strategy={"fallback": {rule: False}})


def test_a_policy_that_needs_nothing_checks_less():
    """Capabilities are clauses only where they are needed."""
    found = clauses(output_contract={}, quality_tier=None)

    assert not {"tools", "json_schema", "streaming", "context_window", "safety"} & set(found)
    assert found["quality_tier"] is True


def test_without_a_list_the_target_must_match_its_origin():
    """A boundary nobody wrote down is kept by staying inside it, and unknown outside."""
    same = clauses(data_boundary={})
    other = clauses({"region": "eu"}, data_boundary={})

    assert same["data_boundary.region"] is True
    assert other["data_boundary.region"] is None


@pytest.mark.parametrize(
    ("prices", "kept"),
    [
        ({"input": 1_000_000, "output": 4_000_000}, True),
        ({"input": 1_000_000, "output": 4_000_001}, None),
        (None, None),
    ],
)
def test_without_a_ceiling_only_what_is_not_dearer_is_known_to_fit(prices, kept):
    """A dearer route without a ceiling is a person's to decide."""
    assert clauses({"prices": prices}, cost_cap_micros=None)["cost_ceiling"] is kept


def test_without_a_ceiling_or_a_known_origin_the_cost_is_unknown():
    """There is nothing to compare with."""
    policy = make_policy()

    found = check(policy, make_route(prices=None), make_route("second"), needs_of(policy))

    assert found["cost_ceiling"] is None


def test_media_needs_a_route_that_makes_it():
    """An image workflow needs an image endpoint, and is paid by the piece."""
    policy = make_policy(output_contract={"media": "image", "images": 2}, cost_cap_micros=80_000)
    picture = make_route("second", endpoint="images", capabilities={"media": ["image"]})

    assert check(policy, picture, picture, needs_of(policy))["endpoint_shape"] is True
    assert check(policy, picture, picture, needs_of(policy))["cost_ceiling"] is True
    assert check(policy, picture, make_route(), needs_of(policy))["endpoint_shape"] is False
    assert "max_output_tokens" not in check(policy, picture, picture, needs_of(policy))


def test_a_streamed_job_needs_streaming_whatever_its_policy_says():
    """The caller's own wish is part of the contract."""
    assert needs_of(make_policy(), stream=True).streaming
    assert not needs_of(make_policy()).streaming


@pytest.mark.parametrize(
    ("needs", "cost"),
    [
        (Needs(input_tokens=1_000_000), 1_000_000),
        (Needs(input_tokens=1), 1),
        (Needs(input_tokens=500_001, output_tokens=250_000), 1_500_001),
        (Needs(images=3), 120_000),
        (Needs(), 0),
    ],
)
def test_an_estimate_is_rounded_up(needs, cost):
    """The most it can cost, in whole micro-dollars."""
    assert estimate_micros(make_route().prices, needs) == cost


def test_a_price_that_is_needed_and_missing_is_unknown():
    """An unknown cost is not a free one."""
    assert estimate_micros(None, Needs()) is None
    assert estimate_micros(make_route(prices={"input": 1}).prices, Needs(input_tokens=1, output_tokens=1)) is None


def test_a_workflows_own_route_is_held_to_its_contract():
    """The first route has to do what the policy asks of a fallback, but for what it is the measure of."""
    policy = make_policy(**EVERYTHING)

    assert verdict(fits_route(policy, make_route())) is Verdict.HOLDS
    assert verdict(fits_route(policy, make_route(region="eu"))) is Verdict.MISMATCH
    assert verdict(fits_route(make_policy(), make_route(region=None, prices=None))) is Verdict.HOLDS
