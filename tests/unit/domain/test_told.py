"""A delivery that carries its outcome is read by paths and judged like any answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from breakwater.domain.endpoint_entries import load_endpoints
from breakwater.domain.endpoints import endpoints_of, read
from breakwater.domain.results import Completed, Refused, Result, Running, Usage
from breakwater.domain.signals import ErrorClass
from breakwater.domain.told import outcome_of
from tests.support.catalogue import route

SHIPPED = yaml.safe_load(Path("shared/policies/endpoints.yaml").read_text(encoding="utf-8"))
MEDIA = load_endpoints(SHIPPED)["media"]
ROUTE = route("media-route", provider="gateway", gateway="media", base_url="https://media.test", credential="media")
JOB = {"id": "ufaw", "metadata": {"breakwater_job_id": "job_1", "breakwater_execution_id": "job_1.1.1.1"}}
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


def outcome(body, *, wants_json=False, endpoint=MEDIA):
    """What the delivery says became of the job."""
    return outcome_of(endpoint, read(endpoint, body), body, ROUTE, 1_000, wants_json=wants_json)


def told(**more):
    """The job as the provider tells it."""
    return {**JOB, **more}


class TestFinished:
    @pytest.mark.parametrize(
        ("output", "media"),
        [
            ("https://cdn.test/1.png", [{"url": "https://cdn.test/1.png", "mime": "image/png"}]),
            (["https://cdn.test/1", "data:image/png;base64,AA=="], [
                {"url": "https://cdn.test/1", "mime": "image/png"},
                {"url": "data:image/png;base64,AA==", "mime": "image/png"},
            ]),
            ({"url": "https://cdn.test/v", "content_type": "video/mp4"}, [
                {"url": "https://cdn.test/v", "mime": "video/mp4"},
            ]),
            ([{"b64_json": "AAAA", "mime": "image/webp"}, 7, None, "no url"], [
                {"b64": "AAAA", "mime": "image/webp"},
            ]),
        ],
    )  # fmt: skip
    def test_media_are_read_whatever_their_shape(self, output, media):
        """One URL, several, or objects; what is none of it is left out."""
        found = outcome(told(status="succeeded", output=output))

        assert isinstance(found, Completed)
        assert list(found.result.media) == media
        assert found.result.usage.images == len(media)

    def test_text_usage_cost_and_model_are_read(self):
        """Everything the books need."""
        usage = {"input_tokens": 12, "output_tokens": 5, "cost": 0.0125}
        found = outcome(told(status="succeeded", model="flux-9", output={"text": ["a ", "boat"]}, usage=usage))

        assert found == Completed(
            result=Result(
                text="a boat",
                usage=Usage(input_tokens=12, output_tokens=5),
                reported_cost_micros=12_500,
                served_model="flux-9",
                provider_job_id="ufaw",
            )
        )

    def test_json_that_was_asked_for_must_be_json(self):
        """As with a fetched answer: the parsed value, or an answer of the wrong kind that is kept as evidence."""
        good = outcome(told(status="succeeded", output={"text": '{"a": 1}'}), wants_json=True)
        bad = outcome(told(status="succeeded", output={"text": "a boat"}), wants_json=True)

        assert good.result.structured == {"a": 1}
        assert (bad.signal.error_class, bad.signal.rule) == (ErrorClass.UNKNOWN, "adapter.not_json")
        assert bad.partial.text == "a boat"

    @pytest.mark.parametrize("output", [None, [], "", {}, [{}], 7])
    def test_a_success_with_nothing_in_it_is_none(self, output):
        """The same rule as for an empty answer."""
        found = outcome(told(status="succeeded", output=output))

        assert isinstance(found, Refused)
        assert (found.signal.error_class, found.signal.rule) == (ErrorClass.SERVER_FAULT, "default.no_answer")

    @pytest.mark.parametrize(
        ("word", "error_class"),
        [("length", ErrorClass.TRUNCATED), ("content_filter", ErrorClass.CONTENT_REFUSED), ("odd", ErrorClass.UNKNOWN)],
    )
    def test_a_success_that_was_cut_is_none(self, word, error_class):
        """Its finish word says so, and what was made is kept."""
        entry = {**SHIPPED["endpoints"][-1]}
        entry["result"] = {**entry["result"], "finish_reason": "output.why"}
        endpoint = endpoints_of([entry])["media"]

        found = outcome(told(status="succeeded", output={"text": "half", "why": word}), endpoint=endpoint)

        assert found.signal.error_class is error_class
        assert found.partial.text == "half"


class TestFailed:
    @pytest.mark.parametrize(
        ("error", "error_class", "code"),
        [
            ({"code": "rate_limit_exceeded"}, ErrorClass.PACING, "rate_limit_exceeded"),
            ({"type": "insufficient_quota"}, ErrorClass.SPEND, "failed"),
            ({"code": "content_policy_violation"}, ErrorClass.CONTENT_REFUSED, "content_policy_violation"),
            ({"status": 429}, ErrorClass.PACING, None),
            ({"status": 503, "message": "try later"}, ErrorClass.OVERLOAD, None),
            ({"status": "402"}, ErrorClass.SPEND, None),
            ({"message": "something private about the prompt"}, ErrorClass.UNKNOWN, "failed"),
            ("something private", ErrorClass.UNKNOWN, "failed"),
            (None, ErrorClass.UNKNOWN, "failed"),
        ],
    )
    def test_an_error_is_classified_like_any_other(self, error, error_class, code):
        """By the rows of the route's provider; its message is matched and never kept."""
        found = outcome(told(status="failed", error=error))

        assert isinstance(found, Refused)
        assert found.signal.error_class is error_class
        assert found.signal.provider_error_code == code
        assert found.signal.route_key == "media-route"
        assert "private" not in repr(found)

    def test_a_cancelled_job_was_cancelled(self):
        """In either spelling, as the endpoint says."""
        assert outcome(told(status="canceled")).signal.error_class is ErrorClass.CANCELLED

    @pytest.mark.parametrize("status", ["processing", "starting", "unheard-of", None, 7])
    def test_a_job_that_goes_on_is_running(self, status):
        """Also where the word is new to us."""
        assert outcome(told(status=status, output="https://cdn.test/1")) == Running(provider_job_id="ufaw")


@given(ANY_JSON, ANY_JSON)
def test_any_body_is_read(body, output):
    """Whatever stands where, it is an outcome, and can be stored as JSON."""
    for one in (body, told(status="succeeded", output=output, usage=body), told(status="failed", error=body)):
        found = outcome(one)

        assert isinstance(found, Completed | Refused | Running)
        if isinstance(found, Completed):
            json.dumps([dict(item) for item in found.result.media])
