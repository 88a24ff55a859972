"""Bodies in, answers out: nothing a caller sends becomes a 500, and no answer repeats what was sent."""

from __future__ import annotations

import base64
import json

import pytest

from breakwater.domain.errors import (
    BreakwaterError,
    Defect,
    InvalidRequest,
    LeaseLost,
    NotFound,
    StoreUnavailable,
    TooLarge,
)
from breakwater.domain.sizes import MAX_BODY_BYTES
from breakwater.entry.http import answered, header, json_body, principal_of, raw_body
from tests.fakes.outside import FakeLog


def event(body=None, **more):
    """A request as the gateway hands it over."""
    return {"body": body, "headers": {}, "requestContext": {"requestId": "r-1"}, **more}


def raised(error):
    """The answer to a request whose work raises this."""

    def work():
        raise error

    log = FakeLog()
    return answered(event(), log, work), log


@pytest.mark.parametrize(
    "body",
    ["", "{", "nul", "[1,2", '{"a":NaN}', '{"a":Infinity}', '{"a":-Infinity}', '{"a":-1e400}', "\ud800", "[" * 100_000],
    ids=["empty", "open", "word", "cut", "nan", "infinity", "minus_infinity", "too_large", "surrogate", "deep"],
)
def test_a_body_that_is_no_json_names_itself(body):
    """One refusal with field, rule and fix, whatever is wrong with it."""
    with pytest.raises(InvalidRequest) as caught:
        json_body(event(body))

    assert (caught.value.field, caught.value.rule) == ("body", "json")
    assert caught.value.fix


def test_a_base64_body_is_decoded_to_its_bytes():
    """The gateway encodes what it does not hold for text."""
    raw = '{"a":"é"}'.encode()

    assert raw_body(event(base64.b64encode(raw).decode(), isBase64Encoded=True)) == raw
    assert raw_body(event(None)) == b""


def test_a_body_that_claims_to_be_base64_and_is_not_is_refused():
    """Broken encoding is the caller's fault."""
    with pytest.raises(InvalidRequest):
        raw_body(event("***", isBase64Encoded=True))


def test_the_limit_counts_bytes_and_not_characters():
    """Exactly the limit passes; one byte more does not, whatever the script."""
    assert len(raw_body(event("é" * (MAX_BODY_BYTES // 2)))) == MAX_BODY_BYTES
    with pytest.raises(TooLarge):
        raw_body(event("é" * (MAX_BODY_BYTES // 2) + "x"))


@pytest.mark.parametrize("name", ["Idempotency-Key", "idempotency-key", "IDEMPOTENCY-KEY"])
def test_a_header_is_found_in_any_case(name):
    """Gateways and local servers disagree on case."""
    assert header({"headers": {name: "k"}}, "idempotency-key") == "k"
    assert header({"headers": None}, "idempotency-key") is None


@pytest.mark.parametrize(
    ("error", "status", "slug"),
    [
        (InvalidRequest("x", field="f", rule="r", fix="do"), 400, "invalid-request"),
        (NotFound(job="job_1"), 404, "not-found"),
        (LeaseLost(), 409, "conflict"),
        (StoreUnavailable("table xyz"), 503, "unavailable"),
        (Defect("secret detail"), 500, "internal"),
        (BreakwaterError("base"), 500, "internal"),
        (RuntimeError("prompt text"), 500, "internal"),
    ],
)
def test_every_failure_is_an_answer(error, status, slug):
    """One table: who has to act decides the status; details of ours stay in the log."""
    answer, log = raised(error)

    body = json.loads(answer["body"])
    assert answer["statusCode"] == body["status"] == status
    assert answer["headers"]["content-type"] == "application/problem+json"
    assert body["type"].endswith(slug)
    assert body["request_id"] == "r-1"
    if status >= 500:
        assert str(error) not in answer["body"]
        assert log.notes
    if isinstance(error, RuntimeError):
        assert "prompt text" not in str(log.notes)


def test_a_try_again_says_when():
    """Unavailable and conflict carry Retry-After."""
    assert int(raised(StoreUnavailable())[0]["headers"]["retry-after"]) >= 1
    assert int(raised(LeaseLost())[0]["headers"]["retry-after"]) >= 1


def test_a_request_without_an_owner_is_nobodys():
    """A route that lost its authorizer answers 403 and runs nothing."""
    for context in ({}, {"authorizer": None}, {"authorizer": {"lambda": {}}}):
        with pytest.raises(BreakwaterError):
            principal_of({"requestContext": context})
