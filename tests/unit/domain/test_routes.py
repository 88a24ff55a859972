"""Routes, and the catalogue that holds them and the policies."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from breakwater.domain.errors import NotFound
from breakwater.domain.routes import OPEN, Catalogue, RouteView
from tests.support.cases import NOW, fallback, make_catalogue, make_policy, make_route


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"provider": "gateway"}, "needs gateway"),
        ({"provider": "gateway", "gateway": "flatkey"}, "needs gateway"),
        ({"base_url": "http://example.com"}, "https"),
        ({"provider": "nobody"}, "provider"),
        ({"endpoint": "telepathy"}, "endpoint"),
        ({"catalogue": {"as_of": "yesterday", "source": "x"}}, "as_of"),
        ({"prices": {"input": 1.5}}, "integer"),
        ({"limits": {"concurrency": 0}}, "greater than or equal to 1"),
        ({"capabilities": {"tools": "maybe"}}, "boolean"),
        ({"credential": "../secret"}, "credential"),
    ],
)
def test_a_route_is_refused_with_what_is_wrong(change, match):
    """Everything about a route is closed, dated and whole."""
    with pytest.raises(ValidationError, match=match):
        make_route(**change)


@pytest.mark.parametrize("url", ["https://api.example.com/v1/", "http://127.0.0.1:9/v1", "http://localhost:9/v1"])
def test_a_base_url_is_secure_or_local(url):
    """Only this machine may be reached without TLS; a slash at the end means nothing."""
    assert make_route(base_url=url).base_url == url.rstrip("/")


def test_a_route_opens_when_its_closure_ends():
    """Closed until T, closed without an end (limit 0), or open."""
    assert OPEN.opens_at(NOW) == NOW
    assert RouteView(closed_until=NOW + 5).opens_at(NOW) == NOW + 5
    assert RouteView(closed_until=NOW).opens_at(NOW) == NOW
    assert RouteView(limit=0).opens_at(NOW) is None
    assert RouteView(limit=1).opens_at(NOW) == NOW


def test_default_means_the_catalogues_default_route():
    """A policy that names no route takes the default one."""
    catalogue = make_catalogue()

    assert catalogue.route("default").route_key == "first"
    assert catalogue.route("nobody") is None
    assert Catalogue().route("default") is None


def test_a_workflow_that_is_not_there_is_named():
    """Asking is free, needing raises."""
    catalogue = Catalogue(policies={"chat": make_policy()})

    assert catalogue.policy("nobody") is None
    assert catalogue.need_policy("chat").workflow == "chat"
    with pytest.raises(NotFound, match="no workflow"):
        catalogue.need_policy("nobody")


def test_the_compiled_form_reads_back_the_same():
    """Compiling loses nothing, and the hash of a policy survives it."""
    catalogue = make_catalogue()
    catalogue.policies["chat"] = make_policy(fallbacks=[fallback()], side_effects="paid")
    catalogue.schedules, catalogue.endpoints = [{"name": "nightly"}], [{"name": "openai"}]

    again = Catalogue.load(catalogue.dump())

    assert again.workflows() == ("chat",)
    assert again.route_keys() == ("first", "second")
    assert again.policy("chat") == catalogue.policy("chat")
    assert again.policy("chat").hash == catalogue.policy("chat").hash
    assert again.route("second") == catalogue.route("second")
    assert again.route("default") == catalogue.route("first")
    assert (again.schedules, again.endpoints) == (catalogue.schedules, catalogue.endpoints)
    assert again.dump() == catalogue.dump()


def test_loading_validates_nothing_before_it_is_asked_for():
    """A cold start pays for the workflows it serves only."""
    loaded = Catalogue.load(make_catalogue().dump())

    assert loaded.routes == {}
    assert loaded.route("first") is loaded.route("first")
