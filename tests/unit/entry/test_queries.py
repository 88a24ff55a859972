"""Values of a query string: a wrong one is named, whatever stands there."""

from __future__ import annotations

import json

import pytest

from breakwater.entry.api import api
from tests.support.world import World


def listed(**query):
    """The answer to `GET /v1/jobs` with this query."""
    who = {"owner_key": "acme", "key_id": "k", "scopes": "read"}
    about = {"http": {"method": "GET", "path": "/v1/jobs"}, "requestId": "r-1", "authorizer": {"lambda": who}}
    return api(World().deps, {"requestContext": about, "headers": {}, "queryStringParameters": query})


@pytest.mark.parametrize("limit", ["0", "101", "-1", "1.5", "²", "٣", "9" * 5_000, "ten", "1e1", ""])
def test_a_page_size_that_is_none_is_refused(limit):
    """Also one with more digits than Python would read."""
    answer = listed(limit=limit)

    assert answer["statusCode"] == 400
    assert json.loads(answer["body"])["field"] == "limit"


@pytest.mark.parametrize("cursor", ["x", "1.job_", "9" * 99 + ".job_a", "1.job_a'--"])
def test_a_place_that_no_page_gave_is_refused(cursor):
    """A cursor is sent as it came."""
    assert json.loads(listed(cursor=cursor)["body"])["field"] == "cursor"


def test_the_limits_themselves_are_taken():
    """From 1 to 100."""
    assert [listed(limit=one)["statusCode"] for one in ("1", "100")] == [200, 200]
