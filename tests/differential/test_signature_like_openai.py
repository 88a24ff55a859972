"""Our verification and the official SDK's give the same answer wherever the SDK decides.

Thousands of generated deliveries: valid, rotated, old, early, altered, Unicode, binary, and headers made to hurt. Where
the SDK leaks an exception that is no verdict, ours must refuse with 4xx, unless the leak came from a bad entry beside a
good one or from a body that is no text.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass
from types import SimpleNamespace

import openai
import openai.lib._webhooks as sdk
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from breakwater.domain.signature import MAX_ID_CHARS, Because, Refusal, Verified, parse, verify
from breakwater.domain.signing_keys import SHORTEST, keys_of

NOW_S = 1_760_000_000
MANY = settings(
    max_examples=3000,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

# --- what arrives ---

_prefixed = st.binary(min_size=24, max_size=64).map(lambda raw: "whsec_" + base64.b64encode(raw).decode())
_pasted = _prefixed.map(lambda secret: secret + "\n")
_plain = st.text("abcXYZ019-_!.", min_size=SHORTEST, max_size=40)
secrets = st.lists(st.one_of(_prefixed, _prefixed, _pasted, _plain), min_size=1, max_size=3)

bodies = st.one_of(
    st.just(b'{"type":"response.completed","data":{"id":"resp_1"}}'),
    st.text(max_size=60).map(lambda text: text.encode()),
    st.sampled_from(["{}", "[]", '"x"', '{"t":"h\u00e9 \U0001f600 \\u001B"}', ""]).map(lambda text: text.encode()),
    st.binary(max_size=40),
)
ids = st.one_of(
    st.text("msg_0123abc", min_size=1, max_size=30),
    st.text(min_size=1, max_size=8),
    st.sampled_from(["wh.1", " wh_1", "wh_1\t", "", "  ", "x" * (MAX_ID_CHARS + 1)]),
)
offsets = st.one_of(
    st.integers(-300, 300), st.integers(-300, 300), st.sampled_from([-301, 301, -300, 300, -(10**6), 10**9])
)
stamps = st.one_of(
    *[offsets.map(lambda offset: str(NOW_S + offset))] * 4,
    st.sampled_from(
        [
            *(" 1760000000", "1760000000\n", "+1760000000", "1_760_000_000", "01760000000"),
            *("\uff11\uff17\uff16" + "\uff10" * 7, "1760000000.0", "1.76e9", "0x68e77", "-1760000000"),
            *("", "now", "9" * 4000, "9" * 5000, "1760000000,1760000000"),
        ]
    ),
)
noise = st.one_of(
    st.sampled_from(
        ["v1,AAAA", "v1a,AAAA", "v1,", "v2,x,y", ",", "v1,\u00e9", "\U0001f600", "=", "v1,v1,AAAA", "v1,\ud800"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
)
separators = st.sampled_from([" ", " ", "  ", "\t", ",", "\u2003"])
cases = st.sampled_from([str.lower, str.title, str.upper, str.swapcase])


@dataclass(frozen=True)
class Delivery:
    """One request as it reaches us, and what is configured."""

    body: bytes
    headers: dict[str, str]
    secrets: list[str]


def signature(secret: str, webhook_id: str, stamp: str, body: bytes) -> str:
    """As a genuine sender computes it, with nothing of ours."""
    key = base64.b64decode(secret[6:]) if secret.startswith("whsec_") else secret.encode()
    signed = f"{webhook_id}.{stamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


@st.composite
def deliveries(draw: st.DrawFn) -> Delivery:
    """Mostly genuine, then bent."""
    configured, body, webhook_id, stamp = draw(secrets), draw(bodies), draw(ids), draw(stamps)
    signers = draw(st.lists(st.sampled_from([*configured, "whsec_AAAA"]), min_size=1, max_size=2))
    entries = [signature(signer, webhook_id, stamp, body) for signer in signers]
    entries = [draw(st.sampled_from([entry, entry, entry[3:], entry[:-1], entry.lower()])) for entry in entries]
    entries = draw(st.permutations(entries + draw(st.lists(noise, max_size=2))))
    header = draw(separators).join(entries)
    if draw(st.integers(0, 4)) == 0:
        body = draw(st.sampled_from([body + b"\n", body[:-1], b" " + body, body.swapcase()]))
    case = draw(cases)
    headers = {case("webhook-id"): webhook_id, case("webhook-timestamp"): stamp, case("webhook-signature"): header}
    if draw(st.integers(0, 19)) == 0:
        headers.pop(draw(st.sampled_from(sorted(headers))))
    return Delivery(body, headers, configured)


# --- the two verdicts ---


@pytest.fixture(scope="module")
def client():
    """The official client; nothing is ever sent."""
    with openai.OpenAI(api_key="none", base_url="http://127.0.0.1:9") as made:
        yield made


@pytest.fixture(autouse=True)
def still_clock(monkeypatch):
    """The SDK reads the wall clock, ours is told."""
    monkeypatch.setattr(sdk, "time", SimpleNamespace(time=lambda: NOW_S + 0.9))


def theirs(client: openai.OpenAI, delivery: Delivery) -> bool | None:
    """The SDK's verdict over all secrets, None where it leaks instead of deciding."""
    verdicts = set()
    for secret in delivery.secrets:
        try:
            client.webhooks.verify_signature(delivery.body, delivery.headers, secret=secret)
        except openai.InvalidWebhookSignatureError:
            verdicts.add(False)
        except Exception:  # noqa: BLE001 - ValueError, TypeError, UnicodeError: no verdict
            verdicts.add(None)
        else:
            return True
    return None if None in verdicts else False


def ours(delivery: Delivery) -> Verified | Refusal:
    """Our verdict at the same moment."""
    return verify(delivery.body, delivery.headers, delivery.secrets, NOW_S * 1000 + 900)


def blames_the_sender(answer: object) -> bool:
    """Refused with 4xx."""
    return isinstance(answer, Refusal) and 400 <= answer.status < 500


def stricter_on_purpose(answer: object) -> bool:
    """An id that is blank or longer than a key can be is refused even when it is signed; so is a short key."""
    on_purpose = (Because.MISSING_ID, Because.UNREADABLE_ID, Because.NO_USABLE_SECRET)
    return isinstance(answer, Refusal) and answer.because in on_purpose


# --- the tests ---


@MANY
@example(Delivery(b"{}", {}, ["whsec_AAAA"]))
@given(deliveries())
def test_the_same_answer_as_the_official_sdk(client, delivery):
    """Where the SDK returns or says "invalid signature", so do we; where it leaks, we refuse with 4xx."""
    verdict, answer = theirs(client, delivery), ours(delivery)

    if verdict is True:
        assert isinstance(answer, Verified) or stricter_on_purpose(answer)
    elif verdict is False or isinstance(answer, Refusal):
        assert blames_the_sender(answer) or not any(map(keys_of, delivery.secrets))
    else:
        assert not_text(delivery.body) or decides_without_noise(client, delivery)


def not_text(body: bytes) -> bool:
    """The next step refuses it, with 400."""
    refusal = parse(body)
    return blames_the_sender(refusal) and refusal.because is Because.BODY_NOT_TEXT


def decides_without_noise(client: openai.OpenAI, delivery: Delivery) -> bool:
    """Some entry alone is accepted by the SDK: the leak came from another one."""
    name = next(name for name in delivery.headers if name.lower() == "webhook-signature")
    alone = (
        Delivery(delivery.body, {**delivery.headers, name: entry}, delivery.secrets)
        for entry in delivery.headers[name].split()
    )
    return any(theirs(client, one) is True for one in alone)


def test_the_generator_makes_every_kind(client):
    """The comparison means something: a fair share is accepted, refused, and leaks."""
    seen = {True: 0, False: 0, None: 0}

    @settings(MANY, max_examples=500)
    @given(deliveries())
    def count(delivery):
        seen[theirs(client, delivery)] += 1

    count()

    assert all(share > 20 for share in seen.values()), seen


@pytest.mark.parametrize("body", [b"\xff\xfe", "héé".encode(), b""])
@pytest.mark.parametrize("age", [-302, -301, -300, -299, -1, 0, 1, 299, 300, 301, 302])
def test_the_same_window_to_the_second(client, age, body):
    """Both ends of the window, both directions."""
    secret = "whsec_" + base64.b64encode(b"k" * 24).decode()
    stamp = str(NOW_S + age)
    headers = {"webhook-id": "wh_1", "webhook-timestamp": stamp, "webhook-signature": ""}
    headers["webhook-signature"] = signature(secret, "wh_1", stamp, body)
    delivery = Delivery(body, headers, [secret])

    assert isinstance(ours(delivery), Verified) is (abs(age) <= 300)
    if body != b"\xff\xfe":
        assert theirs(client, delivery) is (abs(age) <= 300)
