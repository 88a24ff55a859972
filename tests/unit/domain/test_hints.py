"""How long does the provider ask us to wait, in every form it says so?"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakwater.domain.hints import ExhaustedLimit, exhausted_limits, hint_ms, retry_after_ms
from breakwater.domain.rules import times
from breakwater.domain.signals import LimitDimension, Reply

NOW = int(datetime(2026, 6, 21, 7, 27, 30, tzinfo=UTC).timestamp() * 1000)
HOUR = 3_600_000


@pytest.fixture(params=["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Auckland"])
def _zone(request, monkeypatch):
    before = os.environ.get("TZ")
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    assert os.environ.get("TZ") == before
    time.tzset()


def hint(body=None, **headers):
    """The hint of a 429 with these headers; underscores stand for dashes."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return hint_ms(Reply(status=429, headers=named, body=body, received_at=NOW))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0.5", 1),
        ("0.503", 1),
        ("292.052427053", 293),
        (" 30 ", 30),
        ("\t7", 7),
        ("120", 120),
        ("1", 1),
        ("0.0000001", 1),
        ("900.0", 900),
        ("901", 901),
        ("43200", 43_200),
        ("43201", 43_201),
        ("67202", 67_202),
        ("2592000", 2_592_000),
    ],
)
def test_seconds_are_kept_exactly_and_rounded_up(value, seconds):
    """Whole and fractional seconds become whole seconds, none too few, however long."""
    assert hint(retry_after=value) == seconds * 1000


@pytest.mark.parametrize(
    "value",
    [
        *("-1", "-5", "-0.001", "nan", "-inf", "inf", "1_000", "\u0663", "0x10", "", "soon", "120, 60"),
        *("0", "0.0", "+5", "1e3", "1e400", ".", "5.", ".5", "6m0s", "1 2", "\u00b2", "\uff11\uff12"),
    ],
)
def test_unusable_values_mean_our_own_back_off(value):
    """Zero, negative, foreign digits, other notations and lists are no hint, and never an exception."""
    assert hint(retry_after=value) is None


@pytest.mark.usefixtures("_zone")
@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("Sun, 21 Jun 2026 07:28:00 GMT", 30),
        ("Sunday, 21-Jun-26 07:28:00 GMT", 30),
        ("Sun Jun 21 07:28:00 2026", 30),
        ("Sun, 21 Jun 2026 07:28:00 -0000", 30),
        ("Sun, 21 Jun 2026 03:28:00 -0400", 30),
        ("Sun, 21 Jun 2026 12:58:00 +0530", 30),
        ("sun, 21 jun 2026 07:28:00 gmt", 30),
        ("Sun, 21 Jun 2026 07:27:60 GMT", 30),
        ("Wed Jul  1 07:27:30 2026", 864_000),
        ("Wed, 21 Oct 2015 07:28:00 GMT", None),
        ("Thu, 99 Foo 2026 07:28:00 GMT", None),
        ("Thu, 99 Jun 2026 07:28:00 GMT", None),
        ("Sun, 21 Jun 2026 07:61:00 GMT", None),
        ("Sun, 21 Jun 2026 07:28:61 GMT", None),
        ("Fri, 31 Dec 9999 23:59:60 GMT", None),
        ("Sun, 21 Jun 2026 07:28:00 +9900", None),
        ("Sun, 21 Jun 2026 07:28:00 PST", None),
        ("Sun, 21 Jun 2026 07:28:00", None),
        ("2026-06-21T07:28:00Z", None),
    ],
)
def test_dates_are_utc_whatever_the_machine_thinks(value, seconds):
    """All three date forms give the same wait in any time zone; past and impossible dates give none."""
    assert hint(retry_after=value) == (None if seconds is None else seconds * 1000)


@pytest.mark.parametrize(
    ("digits", "year"),
    [("26", 2026), ("76", 2076), ("77", 1977), ("99", 1999), ("00", 2000), ("25", 2025)],
)
def test_a_two_digit_year_lies_at_most_fifty_years_ahead(digits, year):
    """RFC 9110: what looks further ahead is of the past century."""
    instant = times.http_instant(f"Sunday, 01-Jan-{digits} 00:00:00 GMT", NOW)

    assert instant == int(datetime(year, 1, 1, tzinfo=UTC).timestamp() * 1000)


def test_fifty_years_ahead_are_counted_to_the_minute():
    """In the fiftieth year the date itself decides, a leap day too."""
    in_time = times.http_instant("Sunday, 21-Jun-76 07:27:00 GMT", NOW)
    too_far = times.http_instant("Sunday, 21-Jun-76 07:28:00 GMT", NOW)

    assert datetime.fromtimestamp(in_time / 1000, UTC).year == 2076
    assert datetime.fromtimestamp(too_far / 1000, UTC).year == 1976


def test_a_century_turns():
    """In 2099 the year 00 is next year, not a hundred years ago."""
    now = int(datetime(2099, 12, 31, tzinfo=UTC).timestamp() * 1000)

    assert times.http_date_ms("Friday, 01-Jan-00 00:00:00 GMT", now) == 24 * HOUR


def test_a_date_is_counted_from_the_answers_own_date():
    """The provider's clock and ours may differ: its own `Date` is its now."""
    date = "Sun, 21 Jun 2026 07:00:00 GMT"

    assert hint(retry_after="Sun, 21 Jun 2026 07:01:00 GMT", date=date) == 60_000
    assert hint(retry_after="Sun, 21 Jun 2026 07:28:00 GMT", date="yesterday") == 30_000
    assert retry_after_ms("5", NOW, date) == 5_000


@pytest.mark.parametrize(
    ("exact", "plain", "seconds"),
    [
        ("1500", "120", 2),
        ("1500.5", "120", 2),
        ("abc", "7", 7),
        ("-1", "7", 7),
        ("0", "7", 7),
        ("", "", None),
        ("1", None, 1),
    ],
)
def test_the_milliseconds_win_when_they_are_valid(exact, plain, seconds):
    """`retry-after-ms` comes first; a bad or empty one falls through to `Retry-After`."""
    headers = {"retry_after_ms": exact, **({} if plain is None else {"retry_after": plain})}

    assert hint(**headers) == (None if seconds is None else seconds * 1000)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("53s", 53),
        ("45.837906927s", 46),
        ("0.5s", 1),
        ("67202s", 67_202),
        ({"seconds": 5}, 5),
        ({"seconds": "5", "nanos": 1}, 6),
        ({"nanos": 500_000_000}, 1),
        ({"seconds": -1}, None),
        ({"seconds": 1, "nanos": "x"}, None),
        ("0s", None),
        ("-3s", None),
        ("soon", None),
        (17, None),
        (None, None),
        (True, None),
    ],
)
def test_gemini_says_it_in_the_body(value, seconds):
    """`RetryInfo.retryDelay` is a protobuf duration, with fractions."""
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": value}
    body = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [info]}}

    assert hint(body) == (None if seconds is None else seconds * 1000)


def test_of_several_waits_in_a_body_the_longest_counts():
    """Limits of a minute and of a day can be reported together."""
    body = {"error": {"details": [{"retryDelay": "5s"}, {"retryDelay": "67202s"}]}}

    assert hint(body) == 67_202_000


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        ({"availability": {"retry_after": 12}}, 12),
        ({"availability": {"retry_after": 0.2}}, 1),
        ({"availability": {"retry_after": "7"}}, 7),
        ({"availability": {"retry_after": None}}, None),
        ({"metadata": {"resets_at": "2026-06-21T07:28:00.5Z"}}, 31),
        ({"metadata": {"resets_at": "2026-06-21T07:28:00"}}, 30),
        ({"metadata": {"resets_at": "2026-06-21 09:28:00+02:00"}}, 30),
        ({"metadata": {"resets_at": NOW // 1000 + 60}}, 60),
        ({"metadata": {"resets_at": NOW + 1}}, 1),
        ({"metadata": {"resets_at": "2026-13-01T00:00:00Z"}}, None),
        ({"metadata": {"resets_at": [1]}}, None),
    ],
)
def test_gateways_say_it_in_the_body(error, seconds):
    """OpenRouter gives seconds or the instant of a reset."""
    assert hint({"error": error}) == (None if seconds is None else seconds * 1000)


@pytest.mark.parametrize(
    ("value", "delay"),
    [
        ("12ms", 12),
        ("1s", 1_000),
        ("6m0s", 360_000),
        ("1h2m3.5s", 3_723_500),
        ("8.64s", 8_640),
        ("1us", 1),
        ("1µs", 1),
        ("1μs", 1),
        ("1500000ns", 2),
        ("59", 59_000),
        ("0", 0),
        (str(NOW // 1000 + 5), 5_000),
        (str(NOW + 5), 5),
        ("2026-06-21T07:28:00Z", 30_000),
        ("2026-06-21t07:28:00z", 30_000),
        ("2026-06-21T07:27:00Z", -30_000),
        ("Sun, 21 Jun 2026 07:28:00 GMT", 30_000),
        ("99999999999999999999", None),
        ("-1", None),
        ("5x", None),
        ("s", None),
        ("", None),
    ],
)
def test_resets_come_as_durations_seconds_and_instants(value, delay):
    """Go durations, bare seconds, seconds and milliseconds since the epoch, RFC 3339 and HTTP dates."""
    assert times.reset_ms(value, NOW) == delay


def test_exhausted_limits_name_their_dimension_and_reset():
    """Only a limit of which nothing remains is exhausted; all spellings of the headers are known."""
    headers = {
        "x-ratelimit-remaining-requests": "57",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "6m0s",
        "x-ratelimit-remaining-tokens_usage_based": "0.0",
        "anthropic-ratelimit-output-tokens-remaining": "0",
        "anthropic-ratelimit-output-tokens-reset": "2026-06-21T07:28:00Z",
        "ratelimit-remaining": " 0 ",
        "ratelimit-reset": "30",
        "x-ratelimit-limit-requests": "0",
    }

    assert exhausted_limits(headers, NOW) == (
        ExhaustedLimit(dimension=LimitDimension.INPUT_TOKENS, resets_at=NOW + 360_000),
        ExhaustedLimit(dimension=LimitDimension.INPUT_TOKENS, resets_at=None),
        ExhaustedLimit(dimension=LimitDimension.OUTPUT_TOKENS, resets_at=NOW + 30_000),
        ExhaustedLimit(dimension=LimitDimension.REQUESTS, resets_at=NOW + 30_000),
    )


@pytest.mark.parametrize("remaining", ["-1", "1", "", "none", "00x"])
def test_a_limit_that_is_not_known_to_be_empty_is_not_exhausted(remaining):
    """Azure and others write -1, or nothing."""
    assert exhausted_limits({"x-ratelimit-remaining-tokens": remaining}, NOW) == ()


@pytest.mark.parametrize("limit", ["0", "-1", "0.0"])
def test_a_limit_of_nothing_is_a_place_holder(limit):
    """Nothing is measured there, so nothing can be used up; a real limit beside it still counts."""
    headers = {"x-ratelimit-limit-requests": limit, "x-ratelimit-remaining-requests": "0"}
    real = {"x-ratelimit-limit-tokens": "1000", "x-ratelimit-remaining-tokens": "0"}

    assert exhausted_limits(headers, NOW) == ()
    assert len(exhausted_limits(headers | real, NOW)) == 1


@pytest.mark.parametrize(
    ("sentence", "wait"),
    [
        ("Please try again in 20s. Visit https://example.com", 20_000),
        ("Please try again in 864ms.", 1_000),
        ("Please retry in 10h17m5.723541104s.", 37_026_000),
        ("Please retry after 6 seconds.", 6_000),
        ("Retry after 1 minute", 60_000),
        ("I tried again in 5 minutes", None),
        ("retry in a few seconds", None),
        ("retry in 0s", None),
        ("retry in 99999999999999999999s", None),
    ],
)
def test_a_wait_that_stands_in_a_sentence_only(sentence, wait):
    """The last resort: whatever says it in a field of its own comes first."""
    assert hint(body={"error": {"message": sentence}}) == wait
    assert hint(body={"error": {"message": sentence}}, retry_after="3") == 3_000


def test_a_reset_is_a_hint_only_when_nothing_else_is():
    """`Retry-After` is earlier than the full bucket; without it the longest reset of an empty limit counts."""
    resets = {
        "x_ratelimit_remaining_requests": "0",
        "x_ratelimit_reset_requests": "9ms",
        "x_ratelimit_remaining_tokens": "0",
        "x_ratelimit_reset_tokens": "1m",
    }

    assert hint(**resets, retry_after="2") == 2_000
    assert hint(**resets) == 60_000
    assert hint(**{**resets, "x_ratelimit_remaining_tokens": "1"}) == 1_000
    assert hint(x_ratelimit_remaining_tokens="0", x_ratelimit_reset_tokens="-1") is None
    assert hint(x_ratelimit_remaining_tokens="0", x_ratelimit_reset_tokens="2026-01-01T00:00:00Z") is None


def test_a_wait_beyond_the_calendar_is_a_hundred_years():
    """A date or a duration too long for the calendar stays a wait, and the longest one there is."""
    assert hint(retry_after="Fri, 31 Dec 9999 23:59:59 GMT") == times.MAX_DELAY_MS
    assert hint(x_ratelimit_remaining="0", x_ratelimit_reset="9" * 12 + "h") == times.MAX_DELAY_MS


@given(st.integers(min_value=1, max_value=10**9 - 1))
def test_every_whole_second_is_kept(seconds):
    """Up to 31 years exactly."""
    assert hint(retry_after=str(seconds)) == seconds * 1000


@pytest.mark.parametrize("at", [NOW // 1000 + 30, NOW + 30_000])
def test_a_wait_of_decades_is_an_instant(at):
    """Some write when in the place of how long: seconds or milliseconds since the epoch."""
    assert hint(retry_after=str(at)) == 30_000
    assert hint(body={"error": {"retry_after": at}}) == 30_000


@pytest.mark.parametrize("value", ["9" * 5_000, "9" * 2_000_000, "1" + "0" * 400 + "s", "99999999999999"])
def test_a_number_that_is_no_time_says_nothing(value):
    """Our own back-off applies, and no length of digits is an exception."""
    assert hint(retry_after=value) is None
    assert hint(body={"error": {"retry_after": value}}) is None


def test_an_empty_wait_in_a_body_leaves_the_reset_beside_it_in_force():
    """`"retry_after": null` is no answer, `resets_at` is."""
    error = {"retry_after": None, "resets_at": "2026-06-21T07:28:00Z"}
    assert hint(body={"error": error}) == 30_000


@given(st.text(), st.text(), st.text())
def test_no_header_is_an_exception(plain, exact, date):
    """Whatever stands in the headers, the answer is nothing or a positive number of whole seconds."""
    found = hint(retry_after=plain, retry_after_ms=exact, date=date, x_ratelimit_remaining="0", x_ratelimit_reset=plain)

    assert found is None or (found > 0 and found % 1000 == 0)
