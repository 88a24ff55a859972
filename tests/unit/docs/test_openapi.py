"""The published surface is the served one."""

from __future__ import annotations

from tests.support import template
from tools.docs import openapi


def test_the_page_is_fresh():
    """A change of a route or a model changes the page."""
    assert openapi.PAGE.read_text() == openapi.page(), "run `python -m tools.docs.openapi`"


def test_every_operation_is_said_in_words_and_no_word_is_left_over():
    """What the code serves and what the page explains are the same list."""
    assert {f"{method} {path}" for method, path in openapi.routes()} == set(openapi.SUMMARIES)


def test_every_operation_reaches_a_function():
    """The gateway hands on each path to some function, by a greedy route or its own."""
    routes = {tuple(one["RouteKey"].split(" ")) for one in template.resources("AWS::ApiGatewayV2::Route").values()}

    for method, path in openapi.routes():
        own = any(verb == method and _matches(route, path) for verb, route in routes)
        assert own, f"{method} {path}"


def _matches(route, path):
    if "{proxy+}" in route:
        return path.startswith(route.removesuffix("{proxy+}"))
    shape = ["{}" if part.startswith("{") else part for part in path.split("/")]
    return shape == ["{}" if part.startswith("{") else part for part in route.split("/")]
