"""Deliveries are checked byte for byte, entry by entry, against every usable secret."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from breakwater.domain.errors import SecretUnavailable
from breakwater.domain.signature import (
    Because,
    HeaderNames,
    Parsed,
    Refusal,
    Verified,
    parse,
    raw_body,
    sign,
    verify,
)
from breakwater.domain.signing_keys import keys_of

NOW_S = 1_760_000_000
NOW = NOW_S * 1000 + 999
ID = "msg_case_0001"
SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
OTHER = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4"
BODY = b'{"type":"response.completed","data":{"id":"resp_test_1"}}'
GOOD = "v1,P9o0LrRPrLuaA+X+bhBaYUPvSGJzealfxmemrjNB7NA="
ROTATED = "v1,XeWxi0BjjmTm8ptUi1QTWrkOkJeJRnr2HGIzHvTK51Y="
EMPTY_KEY = "v1,+2nSEGQWCql/jbvrJ06NaPq4DTPloFD/s5wazlrPLaA="
OK = Verified(ID, NOW_S)
BASE64_BODY = "eyJ0eXBlIjoicmVzcG9uc2UuY29tcGxldGVkIiwiZGF0YSI6eyJpZCI6InJlc3BfdGVzdF8xIn19"


def headers(signature=GOOD, webhook_id=ID, timestamp=str(NOW_S)):
    """The three headers as a gateway hands them over."""
    return {"webhook-id": webhook_id, "webhook-timestamp": timestamp, "webhook-signature": signature}


def because(answer):
    """The reason of a refusal, with its status."""
    assert isinstance(answer, Refusal)
    return answer.because, answer.status


class TestBody:
    @pytest.mark.parametrize(("body", "is_base64"), [(BASE64_BODY, True), (BODY.decode(), False)])
    def test_both_forms_of_a_gateway_body_are_the_bytes_that_were_signed(self, body, is_base64):
        """WH-01: a base64 body and a plain one are verified alike."""
        raw = raw_body(body, is_base64)

        assert verify(raw, headers(), [SECRET], NOW) == OK

    @pytest.mark.parametrize(
        ("body", "is_base64", "why"),
        [
            ("***", True, Because.BODY_NOT_BASE64),
            ("e30", True, Because.BODY_NOT_BASE64),
            ("é", True, Because.BODY_NOT_BASE64),
            (None, True, Because.NO_BODY),
            (None, False, Because.NO_BODY),
            ("\ud800", False, Because.BODY_NOT_TEXT),
        ],
    )
    def test_a_body_that_is_none_is_refused(self, body, is_base64, why):
        """WH-01: bad base64 and a null body are the sender's fault, never ours."""
        assert because(raw_body(body, is_base64)) == (why, 400)

    def test_nothing_is_decoded_trimmed_or_written_again(self):
        """WH-03: accents, emoji and escapes verify as the bytes that came; a newline more and they don't."""
        body = base64.b64decode("eyJ0IjoiaMOpIPCfmIAgXHUwMDFCIn0=")
        sent = headers("v1,eO6rBf3iGvpSvivKp+VRip2cJ7v7Nku59xDd9hCmmkY=", "msg_case_0002")

        assert verify(body, sent, [SECRET], NOW) == Verified("msg_case_0002", NOW_S)
        assert because(verify(body + b"\n", sent, [SECRET], NOW)) == (Because.WRONG_SIGNATURE, 401)

    def test_bytes_that_are_no_text_are_refused_by_the_step_that_fails(self):
        """WH-03: ff fe is 401 with a wrong signature, 400 with a right one."""
        signed = headers(sign([SECRET], ID, NOW_S, b"\xff\xfe"))

        assert because(verify(b"\xff\xfe", headers(), [SECRET], NOW)) == (Because.WRONG_SIGNATURE, 401)
        assert verify(b"\xff\xfe", signed, [SECRET], NOW) == OK
        assert because(parse(b"\xff\xfe")) == (Because.BODY_NOT_TEXT, 400)

    @pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}", b"\xef\xbb\xbf{}"])
    def test_a_body_that_is_no_json_is_the_senders_fault(self, body):
        """Cut, too deep or too long a JSON is 400 like any other unreadable one."""
        assert because(parse(body)) == (Because.BODY_NOT_JSON, 400)

    @pytest.mark.parametrize(("body", "value"), [(b"{}", {}), (b"[1]", [1]), (b'"x"', "x"), (b"null", None)])
    def test_any_json_value_is_handed_on(self, body, value):
        """The reader of an endpoint decides what it makes of a list or a null."""
        assert parse(body) == Parsed(value)


class TestHeaders:
    @pytest.mark.parametrize("case", [str.lower, str.title, str.upper])
    def test_header_names_have_no_case(self, case):
        """WH-02: lower, title and upper case are accepted alike."""
        sent = {case(name): value for name, value in headers().items()}

        assert verify(BODY, sent, [SECRET], NOW) == OK
        assert verify(BODY, list(sent.items()), [SECRET], NOW) == OK

    def test_two_headers_that_differ_only_in_case_are_ambiguous(self):
        """WH-02: one fixed rule, whichever of the two is the right one."""
        sent = {"webhook-signature": "v1,AAAA", "Webhook-Signature": GOOD} | {
            "webhook-id": ID,
            "webhook-timestamp": str(NOW_S),
        }

        assert because(verify(BODY, sent, [SECRET], NOW)) == (Because.AMBIGUOUS_HEADERS, 400)

    def test_a_repeated_header_is_ambiguous_too(self):
        """A list of pairs can hold the same name twice."""
        sent = [*headers().items(), ("webhook-id", "another")]

        assert because(verify(BODY, sent, [SECRET], NOW)) == (Because.AMBIGUOUS_HEADERS, 400)

    @pytest.mark.parametrize(
        ("sent", "why", "status"),
        [
            (None, Because.NO_HEADERS, 401),
            ({}, Because.MISSING_ID, 400),
            (headers(webhook_id=""), Because.MISSING_ID, 400),
            (headers(webhook_id="  "), Because.MISSING_ID, 400),
            (headers(webhook_id=7), Because.MISSING_ID, 400),
            ({7: "x"}, Because.MISSING_ID, 400),
            (headers(webhook_id="x" * 257), Because.UNREADABLE_ID, 400),
            (headers(webhook_id="\ud800"), Because.UNREADABLE_ID, 400),
            (headers(timestamp=""), Because.MISSING_TIMESTAMP, 400),
            (headers(timestamp="17e8"), Because.UNREADABLE_TIMESTAMP, 400),
            (headers(timestamp="1760000000.4"), Because.UNREADABLE_TIMESTAMP, 400),
            (headers(timestamp="9" * 5000), Because.UNREADABLE_TIMESTAMP, 400),
            (headers(timestamp=str(NOW_S - 301)), Because.TOO_OLD, 401),
            (headers(timestamp=str(NOW_S + 301)), Because.TOO_NEW, 401),
            (headers(timestamp="9" * 4000), Because.TOO_NEW, 401),
            (headers(signature=""), Because.MISSING_SIGNATURE, 401),
            (headers(signature="v1,\ud800 é \x00"), Because.WRONG_SIGNATURE, 401),
        ],
    )
    def test_hostile_headers_are_refused_with_a_reason(self, sent, why, status):
        """Whatever the headers hold, the answer is 4xx and says why."""
        refusal = verify(BODY, sent, [SECRET], NOW)

        assert because(refusal) == (why, status)
        assert refusal.reason == why.value

    @pytest.mark.parametrize("age", [-300, 300])
    def test_the_window_includes_both_ends(self, age):
        """Exactly five minutes old or early still passes."""
        signed = headers(sign([SECRET], ID, NOW_S + age, BODY), timestamp=str(NOW_S + age))

        assert verify(BODY, signed, [SECRET], NOW) == Verified(ID, NOW_S + age)

    def test_the_tolerance_is_the_endpoints(self):
        """A sender with its own window is configured, not coded."""
        signed = headers(sign([SECRET], ID, NOW_S - 600, BODY), timestamp=str(NOW_S - 600))

        assert isinstance(verify(BODY, signed, [SECRET], NOW), Refusal)
        assert verify(BODY, signed, [SECRET], NOW, tolerance_s=600) == Verified(ID, NOW_S - 600)

    def test_the_names_are_the_endpoints(self):
        """Some senders call the three headers something else."""
        sent = {name.replace("webhook", "X-Gateway"): value for name, value in headers().items()}
        names = HeaderNames("x-gateway-id", "x-gateway-timestamp", "x-gateway-signature")

        assert verify(BODY, sent, [SECRET], NOW, names=names) == OK
        assert because(verify(BODY, sent, [SECRET], NOW)) == (Because.MISSING_ID, 400)


class TestRotation:
    @pytest.mark.parametrize("secrets", [[OTHER], [SECRET], [SECRET, OTHER]])
    @pytest.mark.parametrize(
        "signature",
        [f"{GOOD} {ROTATED}", f"{ROTATED}  {GOOD}", f"v1a,AAAA {ROTATED} {GOOD}", f"v1,a,b é v1, {GOOD}\t{ROTATED}"],
    )
    def test_any_entry_of_any_secret_will_do(self, secrets, signature):
        """WH-06: unknown versions, malformed entries and doubled blanks are skipped, whoever rotates first."""
        assert verify(BODY, headers(signature), secrets, NOW) == OK

    def test_entries_joined_by_a_comma_are_one_malformed_entry(self):
        """WH-06: a gateway that merges header lines makes no valid signature."""
        refusal = verify(BODY, headers(f"{ROTATED},{GOOD}"), [SECRET, OTHER], NOW)

        assert because(refusal) == (Because.WRONG_SIGNATURE, 401)

    def test_an_entry_without_its_version_is_tried(self):
        """The official SDK takes bare base64 for version 1."""
        assert verify(BODY, headers(GOOD.removeprefix("v1,")), [SECRET], NOW) == OK


class TestSecrets:
    @pytest.mark.parametrize(
        "secret",
        ["", "   ", "whsec_", "whsec_====", None, "v1,", "whsec_***", "whsec_A", "whsec_...3frh", "\ud800"],
    )
    def test_a_secret_that_is_none_never_becomes_a_key(self, secret):
        """WH-07: missing, blank, masked or cut secrets refuse everything, and it is ours to repair."""
        for signature in (EMPTY_KEY, GOOD):
            refusal = verify(BODY, headers(signature), [secret], NOW)

            assert because(refusal) == (Because.NO_USABLE_SECRET, 503)

    def test_no_secret_at_all_refuses_everything(self):
        """WH-07: an empty list is not an open door."""
        assert because(verify(BODY, headers(EMPTY_KEY), [], NOW)) == (Because.NO_USABLE_SECRET, 503)

    def test_a_blank_secret_beside_a_good_one_is_dropped(self):
        """Taking the old secret away by blanking it must neither stop intake nor open it."""
        assert verify(BODY, headers(), ["", SECRET], NOW) == OK
        assert isinstance(verify(BODY, headers(EMPTY_KEY), ["", SECRET], NOW), Refusal)

    @pytest.mark.parametrize(
        "secret",
        [f"v1,{SECRET}", SECRET.removeprefix("whsec_"), f"{SECRET}\n", f" {SECRET}", f"{SECRET}=="],
    )
    def test_a_secret_pasted_carelessly_is_the_same_secret(self, secret):
        """WH-07: `v1,`, a missing prefix, blanks and padding are put right."""
        assert verify(BODY, headers(), [secret], NOW) == OK

    def test_a_plain_text_secret_is_its_own_key(self):
        """The official SDK takes what has no prefix for the key itself."""
        assert keys_of("correct-horse-battery!") == (b"correct-horse-battery!",)
        assert keys_of("abcdefgh" * 3) == (base64.b64decode("abcdefgh" * 3), b"abcdefgh" * 3)

    @pytest.mark.parametrize(
        "secret",
        ["****", "null", "None", "a", "whsec_ab", "whsec_****", "changeme", "correct-horse!", "whsec_MDEyMzQ1Njc4OWFi"],
    )
    def test_a_secret_that_could_be_guessed_is_no_key(self, secret):
        """WH-07: masked, rendered from nothing, or cut; whoever guesses it could sign."""
        assert keys_of(secret) == ()
        assert isinstance(verify(BODY, headers(), [secret], NOW), Refusal)

    @pytest.mark.parametrize("secret", ["whpk_" + "a" * 44, "v1a,whpk_" + "a" * 44, "whsk_" + "a" * 64])
    def test_keys_of_the_asymmetric_scheme_are_no_shared_secrets(self, secret):
        """Standard Webhooks: anybody knows the public one."""
        assert keys_of(secret) == ()


class TestSigning:
    def test_the_header_holds_one_entry_for_each_current_secret(self):
        """Both the old and the new secret's receivers verify the same notification."""
        header = sign([SECRET, "", OTHER], ID, NOW_S, BODY)

        assert header == f"{GOOD} {ROTATED}"

    def test_the_public_library_signs_the_same(self):
        """A secret without its prefix is base64 to the public library, and so it is to us."""
        theirs = Webhook(SECRET).sign(ID, datetime.fromtimestamp(NOW_S, UTC), BODY.decode())

        assert sign([SECRET.removeprefix("whsec_")], ID, NOW_S, BODY) == theirs

    @pytest.mark.parametrize("secrets", [[], ["", None]])
    def test_nothing_is_signed_without_a_secret(self, secrets):
        """An unsigned notification is never sent."""
        with pytest.raises(SecretUnavailable):
            sign(secrets, ID, NOW_S, BODY)
