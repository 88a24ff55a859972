"""Which laws does classification keep for any reply at all?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from breakwater.domain.classify import CHAINS, classify, running, succeeded
from breakwater.domain.signals import NOT_SENT, ErrorClass, Reply, TransportFailure

SECRET = "the user's own words"
KEYS = st.sampled_from(
    (
        *("error", "errors", "code", "type", "status", "message", "detail", "details", "metadata", "raw", "choices"),
        *("output", "content", "candidates", "data", "response", "incomplete_details", "finish_reason", "stop_reason"),
        *("promptFeedback", "blockReason", "violations", "quotaId", "quotaValue", "availability", "retry_after"),
        *("retryDelay", "resets_at", "id", "object", "delta", "request_id", "flagged_input", "error_type", "parts"),
    )
)
WORDS = st.sampled_from(
    (
        *("error", "rate_limit_exceeded", "insufficient_quota", "completed", "failed", "incomplete", "STOP", "stop"),
        *(
            "overloaded_error",
            "RESOURCE_EXHAUSTED",
            "response",
            "message",
            "429",
            "502",
            "5s",
            SECRET,
            f'{{"a":"{SECRET}"}}',
        ),
    )
)
LEAVES = st.none() | st.booleans() | st.integers(-(10**6), 10**15) | st.floats() | WORDS | st.text(max_size=20)
BODIES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=5), inner, max_size=5),
    max_leaves=25,
)
STREAMS = st.lists(st.sampled_from(["data: ", "event: error", "\n", "\n\n", "[DONE]", '{"error":1}', "{}", ":"])).map(
    "".join
)
HEADER_NAMES = st.sampled_from(
    (
        *("retry-after", "retry-after-ms", "date", "x-request-id", "x-ratelimit-remaining-tokens"),
        *("x-ratelimit-reset-tokens", "anthropic-ratelimit-requests-remaining", "ratelimit-remaining"),
    )
)
REPLIES = st.builds(
    Reply,
    transport=st.none() | st.sampled_from(TransportFailure),
    status=st.none() | st.integers(-1, 1_000) | st.sampled_from([200, 400, 429, 500]),
    headers=st.dictionaries(HEADER_NAMES, st.text(max_size=12) | st.sampled_from(["0", "30", SECRET])),
    body=BODIES | STREAMS,
    in_stream=st.booleans(),
    received_at=st.integers(0, 4_000_000_000_000),
)
PROVIDERS = st.sampled_from((*CHAINS, "somebody"))


@given(PROVIDERS, REPLIES, st.booleans())
def test_classification_is_total(provider, reply, lookup):
    """Any reply of anybody gets a signal, and no exception."""
    signal = classify(provider, reply, lookup=lookup)

    assert isinstance(signal.error_class, ErrorClass)
    assert signal.retry_after_ms is None or signal.retry_after_ms > 0


@given(PROVIDERS, REPLIES)
def test_no_text_of_a_message_reaches_the_signal(provider, reply):
    """Whatever field it stands in, free text stays behind."""
    assert SECRET not in repr(classify(provider, reply))


@given(PROVIDERS, REPLIES)
def test_a_reply_is_read_the_same_every_time(provider, reply):
    """Classification looks at nothing but the reply."""
    assert repr(classify(provider, reply)) == repr(classify(provider, reply))


@given(PROVIDERS, REPLIES)
def test_sent_and_not_sent_are_never_confused(provider, reply):
    """A transport failure before sending is `not_sent`, a later one only where the status refused it as too early."""
    signal = classify(provider, reply)

    if reply.transport in NOT_SENT:
        assert signal.error_class is ErrorClass.NOT_SENT
    elif reply.transport is not None and (reply.in_stream or reply.status not in range(400, 500)):
        assert signal.error_class in {ErrorClass.OUTCOME_UNKNOWN, ErrorClass.STREAM_INCOMPLETE}


@given(REPLIES)
def test_nothing_is_both_finished_and_running(reply):
    """A reply is a success, still running, or neither."""
    assert not (succeeded(reply) and running(reply))
