"""A provider's webhook at the handler: genuine ones are recorded whatever their form, anything else is a 4xx."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakwater.domain.errors import SecretUnavailable, StoreUnavailable
from breakwater.entry.webhook import webhook
from breakwater.telemetry import note_metrics
from breakwater.usecases.intake import IntakeDeps
from tests.support.webhooks import OTHER, SECRET, completed, deliver, endpoints, event, post, signed
from tests.support.world import World

NOW = 1_760_000_000_000  # the time of the recorded deliveries
BODY = b'{"type":"response.completed","data":{"id":"resp_test_1"}}'
FIRST = "v1,P9o0LrRPrLuaA+X+bhBaYUPvSGJzealfxmemrjNB7NA="
SECOND = "v1,XeWxi0BjjmTm8ptUi1QTWrkOkJeJRnr2HGIzHvTK51Y="
HEADERS = {"webhook-id": "msg_case_0001", "webhook-timestamp": "1760000000", "webhook-signature": FIRST}


def world_then():
    """A world at the time of the recorded deliveries."""
    world = World()
    world.clock._now = NOW
    return world


# --- forms of a body


@pytest.mark.parametrize("binary", [True, False])
def test_a_body_is_verified_as_it_was_sent(binary):
    """WH-01: as text, or as base64 when the gateway made it so."""
    assert post(world_then(), event(BODY, HEADERS, binary=binary)) == (200, "recorded")


@pytest.mark.parametrize(
    ("body", "binary", "answer"),
    [("***", True, (400, "body_not_base64")), (None, False, (400, "no_body")), (None, True, (400, "no_body"))],
)
def test_a_body_that_is_none_is_a_400(body, binary, answer):
    """WH-01: neither a crash nor a signature error."""
    made = event(body, HEADERS)
    made["isBase64Encoded"] = binary

    assert post(world_then(), made) == answer


def test_what_is_signed_are_bytes_not_characters():
    """WH-03: emoji, accents and escapes count byte by byte; one newline more is another body."""
    body = base64.b64decode("eyJ0IjoiaMOpIPCfmIAgXHUwMDFCIn0=")
    headers = {
        "webhook-id": "msg_case_0002",
        "webhook-timestamp": "1760000000",
        "webhook-signature": "v1,eO6rBf3iGvpSvivKp+VRip2cJ7v7Nku59xDd9hCmmkY=",
    }

    assert post(world_then(), event(body, headers))[0] == 200
    assert post(world_then(), event(body, headers, binary=True))[0] == 200
    assert post(world_then(), event(body + b"\n", headers)) == (401, "wrong_signature")


def test_bytes_that_are_no_text_are_judged_by_their_signature_first():
    """WH-03: 401 when it is wrong, 400 when it is right, never 500."""
    world, body = world_then(), b"\xff\xfe"

    wrong = post(world, event(body, HEADERS, binary=True))
    right = post(world, event(body, signed(body, "msg_1", NOW), binary=True))

    assert (wrong, right) == ((401, "wrong_signature"), (400, "body_not_text"))


# --- headers


@pytest.mark.parametrize("case", [str.lower, str.title, str.upper])
def test_header_names_count_in_any_case(case):
    """WH-02: HTTP APIs, REST APIs and local runners differ."""
    headers = {case(name): value for name, value in HEADERS.items()}

    assert post(world_then(), event(BODY, headers)) == (200, "recorded")


def test_two_headers_that_differ_only_in_case_are_refused():
    """WH-02: nobody guesses which one is meant."""
    headers = {**HEADERS, "Webhook-Signature": FIRST}

    assert post(world_then(), event(BODY, headers)) == (400, "ambiguous_headers")


@pytest.mark.parametrize("headers", [None, {}])
def test_no_headers_are_no_crash(headers):
    """WH-02: nothing vouches for the sender."""
    status, _ = post(world_then(), event(BODY, headers))

    assert status in {400, 401}


@pytest.mark.parametrize("webhook_id", [None, "", "   "])
def test_a_delivery_without_an_id_is_a_400_and_a_metric(webhook_id):
    """Without it a repetition can't be told from news."""
    world = world_then()
    headers = {name: value for name, value in HEADERS.items() if name != "webhook-id"}
    if webhook_id is not None:
        headers["webhook-id"] = webhook_id

    assert post(world, event(BODY, headers)) == (400, "missing_id")
    ((name, more),) = world.log.notes
    assert [metric for metric, _, _ in note_metrics(name, more)] == ["DeliveryRefused", "DeliveryWithoutId"]
    assert world.store.items == {}


# --- secrets


@pytest.mark.parametrize("receiver", [[OTHER], [SECRET], [SECRET, OTHER], SECRET])
@pytest.mark.parametrize("header", [f"{FIRST} {SECOND}", f"{SECOND}  {FIRST}"])
def test_either_side_may_rotate_first(receiver, header):
    """WH-06: one good entry for one good secret is enough."""
    headers = {**HEADERS, "webhook-signature": header}

    assert post(world_then(), event(BODY, headers), {"openai": receiver}) == (200, "recorded")


def test_entries_of_other_versions_and_joined_by_commas():
    """WH-06: unknown versions are skipped; a comma joins two entries into a bad one."""
    world = world_then()
    skipped = {**HEADERS, "webhook-signature": f"v1a,AAAA {SECOND}"}
    joined = {**HEADERS, "webhook-signature": f"{FIRST},{SECOND}"}

    assert post(world, event(BODY, skipped), {"openai": [OTHER]})[0] == 200
    assert post(world, event(BODY, joined), {"openai": [SECRET, OTHER]}) == (401, "wrong_signature")


@pytest.mark.parametrize("secret", ["", "   ", "whsec_", "whsec_====", None, [], [""], 7])
def test_a_secret_that_is_none_refuses_everything_and_says_so(secret):
    """WH-07: an empty key would let anybody sign."""
    world = world_then()
    attack = {**HEADERS, "webhook-signature": "v1,+2nSEGQWCql/jbvrJ06NaPq4DTPloFD/s5wazlrPLaA="}

    assert post(world, event(BODY, attack), {"openai": secret}) == (503, "no_usable_secret")
    name, told = world.log.notes[0]
    assert (name, told["why"]) == ("delivery_refused", "no_usable_secret")
    assert told["unusable_secrets"] == (["openai[0]"] if secret == [""] else ["openai"])


def test_a_refusal_names_the_secrets_that_can_not_have_signed_it():
    """One of two is masked: the wrong signature may be its fault, so it is named by place and never by value."""
    world = world_then()
    attack = {**HEADERS, "webhook-signature": "v1,AAAA"}

    assert post(world, event(BODY, attack), {"openai": [SECRET, "whsec_***"]}) == (401, "wrong_signature")
    assert post(world, event(BODY, attack), {"openai": [SECRET]}) == (401, "wrong_signature")

    told = [more for _, more in world.log.notes]
    assert told[0] == {"endpoint": "openai", "why": "wrong_signature", "unusable_secrets": ["openai[1]"]}
    assert told[1] == {"endpoint": "openai", "why": "wrong_signature"}


@pytest.mark.parametrize("secret", [f"v1,{SECRET}", SECRET.removeprefix("whsec_"), f"{SECRET}\n"])
def test_a_secret_pasted_oddly_is_still_that_secret(secret):
    """WH-07: what people paste is put right."""
    assert post(world_then(), event(BODY, HEADERS), {"openai": [secret]}) == (200, "recorded")


def test_a_rotation_takes_effect_without_a_deploy():
    """The secrets are asked for at each delivery; the cache in front of them lasts a minute."""
    world = world_then()
    headers = signed(BODY, "msg_1", NOW, OTHER)

    assert post(world, event(BODY, headers), {"openai": [SECRET]})[0] == 401
    assert post(world, event(BODY, headers), {"openai": [OTHER, SECRET]})[0] == 200


def test_secrets_that_can_not_be_read_are_ours_to_repair():
    """503: the sender comes again."""
    world = world_then()

    def fail():
        raise SecretUnavailable

    deps = IntakeDeps(
        store=world.store,
        queues=world.queues,
        payloads=lambda: world.payloads,
        clock=world.clock,
        log=world.log,
    )

    assert webhook(deps, endpoints(), fail, event(BODY, HEADERS))["statusCode"] == 503


# --- what comes of it


def test_an_unknown_endpoint_is_404():
    """A name that nobody configured."""
    assert post(world_then(), event(BODY, HEADERS, "nobody")) == (404, "unknown_endpoint")


def test_an_event_that_is_not_about_a_job_is_taken_and_dropped():
    """Answered 200, so that the sender does not come again; nothing is stored."""
    world = world_then()
    body = b'{"type":"eval.run.succeeded","data":{"id":"x"}}'

    assert deliver(world, body) == (200, "ignored")
    assert world.store.items == {}


def test_only_ids_type_and_result_are_told():
    """No part of a body gets into a log."""
    world = World()
    world.clock._now = NOW
    body = completed("resp_1", output="a private answer")

    deliver(world, body)
    post(world, event(body, HEADERS))

    assert "private" not in repr(world.log.notes)
    assert world.log.notes[0] == (
        "delivery_taken",
        {
            "endpoint": "openai",
            "webhook_id": "msg_case_0001",
            "event_type": "response.completed",
            "job_id": None,
            "verdict": "recorded",
        },
    )
    assert not any(b"private" in repr(item).encode() for item in world.store.items.values())


def test_what_could_not_be_recorded_is_not_acknowledged():
    """503: the sender keeps it and comes again."""
    world = world_then()

    def fail(name, _when):
        if name == "record_delivery":
            raise StoreUnavailable

    world.store._hook = fail

    assert post(world, event(BODY, HEADERS)) == (503, "try_again")


def test_a_burst_costs_two_calls_a_delivery_and_blocks_nothing():
    """200 deliveries at once: one write and one message each, no read, and every one is recorded."""
    world = World()
    calls: list[str] = []
    count = lambda name, when: calls.append(name) if when == "before" else None  # noqa: E731
    world.store._hook = world.queues.hook = count

    answers = {deliver(world, completed(f"resp_{n}"), f"msg_{n}") for n in range(200)}

    assert answers == {(200, "recorded")}
    assert sorted(set(calls)) == ["record_delivery", "send"]
    assert len(calls) == 400


HEADER = st.text(max_size=40) | st.sampled_from(["webhook-id", "Webhook-Id", "webhook-timestamp", "webhook-signature"])
VALUE: Any = st.none() | st.integers() | st.text(max_size=60) | st.sampled_from([FIRST, "1760000000", "v1,", "v1,="])


@given(
    headers=st.none() | st.dictionaries(HEADER, VALUE, max_size=6),
    body=st.none() | st.text(max_size=60) | st.binary(max_size=60),
    binary=st.booleans(),
)
def test_hostile_deliveries_end_in_a_4xx(headers, body, binary):
    """Whatever is in headers and body, nothing of ours breaks and nothing is recorded."""
    world = world_then()
    text = body.decode("latin-1") if isinstance(body, bytes) else body
    made = event(text, headers)
    made["isBase64Encoded"] = binary

    status, _ = post(world, made)

    assert 400 <= status < 500
    assert world.store.items == {}
