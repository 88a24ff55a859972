"""Do webhooks verify with the vendor's own client, and go wrong only when and how they are told to?"""

import base64
import json
from urllib.parse import urlsplit

import openai
import pytest
import standardwebhooks

SECRET = "whsec_" + base64.b64encode(b"the current secret, 32 bytes....").decode()
PREVIOUS = "whsec_" + base64.b64encode(b"the previous secret, 32 bytes...").decode()


def begin(client, text="[[sim:delay=0]] hello", **more):
    """Begin a background response."""
    return client.responses.create(model="gpt-4.1", input=text, background=True, **more)


def verified(got, secret=SECRET):
    """Return the event, if its signature is right."""
    headers, body = got
    return standardwebhooks.Webhook(secret).verify(body, headers)


@pytest.fixture
def listening(sim, receiver):
    """Tell the simulator where to deliver, in a mode, and with short back-offs."""

    def listen(mode="normal", secrets=(SECRET,), **more):
        sim.webhooks(receiver.url, secrets, mode=mode, **{"backoff_ms": 5, **more})
        return receiver

    return listen


def test_a_delivery_unwraps_with_the_openai_client(sim, openai_client, listening):
    """Thin payload, typed event, the id to fetch."""
    receiver = listening()
    begun = begin(openai_client)

    headers, body = sim.wait_for(lambda: receiver.got)[0]
    event = openai_client.webhooks.unwrap(body, headers, secret=SECRET)

    assert (event.type, event.data.id) == ("response.completed", begun.id)
    assert headers["webhook-id"].startswith("wh_")
    assert set(json.loads(body)) == {"id", "object", "created_at", "type", "data"}


@pytest.mark.parametrize(
    ("preset", "kind"),
    [
        ("background_failed", "response.failed"),
        ("background_incomplete", "response.incomplete"),
        ("background_cancelled", "response.cancelled"),
    ],
)
def test_every_end_has_its_event(sim, openai_client, listening, preset, kind):
    """Not only the good one."""
    receiver = listening()
    sim.fault(preset)
    begin(openai_client)

    assert verified(sim.wait_for(lambda: receiver.got)[0])["type"] == kind


def test_a_cancel_is_reported(sim, openai_client, listening):
    """Whoever cancelled it."""
    receiver = listening()
    sim.fault("background_queued")
    openai_client.responses.cancel(begin(openai_client).id)

    assert verified(sim.wait_for(lambda: receiver.got)[0])["type"] == "response.cancelled"


def test_during_rotation_both_secrets_sign(sim, openai_client, listening):
    """Either of them verifies; foreign entries may stand in front."""
    receiver = listening(secrets=(SECRET, PREVIOUS), first_signatures=("v1a,AAAA",))
    begin(openai_client)

    got = sim.wait_for(lambda: receiver.got)[0]

    assert verified(got, SECRET) == verified(got, PREVIOUS)
    assert got[0]["webhook-signature"].startswith("v1a,AAAA v1,")


def test_a_wrong_signature_verifies_nowhere(sim, openai_client, listening):
    """With any secret."""
    receiver = listening("wrong_signature")
    begin(openai_client)

    headers, body = sim.wait_for(lambda: receiver.got)[0]

    with pytest.raises(openai.InvalidWebhookSignatureError):
        openai_client.webhooks.unwrap(body, headers, secret=SECRET)


def test_copies_are_the_same_delivery_again(sim, openai_client, listening):
    """Same id, same body."""
    receiver = listening(copies=3)
    begin(openai_client)

    sim.wait_for(lambda: len(receiver.got) == 3)

    assert len({(headers["webhook-id"], body) for headers, body in receiver.got}) == 1


def test_another_body_can_come_under_the_same_id(sim, openai_client, listening):
    """Genuinely signed, and not what was said first."""
    receiver = listening("altered_body")
    begin(openai_client)

    sim.wait_for(lambda: len(receiver.got) == 2)

    assert [verified(got)["type"] for got in receiver.got] == ["response.completed", "response.failed"]
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1


def test_nothing_is_sent_in_mode_none(sim, openai_client, listening):
    """For all, or for one response that wishes it so."""
    receiver = listening()
    silent = begin(openai_client, "[[sim:webhook=none]] [[sim:delay=0]] hush")
    sim.wait_for(lambda: sim.response(silent.id)["status"] == "completed")
    begin(openai_client)

    sim.wait_for(lambda: receiver.got)

    assert sim.response(silent.id)["deliveries"] == []
    assert len(receiver.got) == 1


def test_an_early_delivery_comes_before_the_create_returns(openai_client, listening):
    """The response can be fetched by then, the late answer still says queued."""
    receiver = listening("early")
    begun = begin(openai_client, "hello")

    assert verified(receiver.got[0])["data"]["id"] == begun.id
    assert begun.status == "queued"
    assert openai_client.responses.retrieve(begun.id).status == "completed"


def test_an_early_delivery_can_be_the_only_sign_of_life(sim, openai_client, listening):
    """The create was accepted and cut."""
    receiver = listening("early")
    sim.fault("cut_accepted")

    with pytest.raises(openai.APIConnectionError):
        begin(openai_client, "hello")
    assert verified(receiver.got[0])["data"]["id"] == sim.responses()[0]["id"]


def test_reordered_deliveries_come_last_first(sim, openai_client, listening):
    """And alone after a while, if no second one comes."""
    receiver = listening("reorder", flush_ms=600_000)
    first = begin(openai_client)
    sim.wait_for(lambda: sim.response(first.id)["status"] == "completed")
    second = begin(openai_client)
    sim.wait_for(lambda: len(receiver.got) == 2)

    listening("reorder", flush_ms=0)
    third = begin(openai_client)
    sim.wait_for(lambda: len(receiver.got) == 3)

    ids = [verified(got)["data"]["id"] for got in receiver.got]
    assert set(ids[:2]) == {first.id, second.id}
    assert ids[2] == third.id
    assert [each["response_id"] for each in sim.deliveries()][:2] == [second.id, first.id]


def test_a_refused_delivery_comes_again_under_its_id(sim, openai_client, listening):
    """Until it is taken."""
    receiver = listening()
    receiver.statuses[:] = [500, 302]
    begun = begin(openai_client)

    delivery = sim.wait_for(lambda: next((d for d in sim.deliveries(begun.id) if d["delivered"]), None))

    assert [answer for _, answer in delivery["attempts"]] == [500, 302, 200]
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1


def test_a_receiver_that_is_gone_is_left_alone(sim, openai_client, listening):
    """410 means stop, and so does running out of attempts."""
    receiver = listening(max_attempts=2)
    receiver.statuses[:] = [410, 500, 500]
    first, second = begin(openai_client), None
    sim.wait_for(lambda: sim.deliveries(first.id)[0]["attempts"] if sim.deliveries(first.id) else None)
    second = begin(openai_client)
    sim.wait_for(lambda: len(receiver.got) == 3)

    assert [answer for _, answer in sim.deliveries(first.id)[0]["attempts"]] == [410]
    assert not sim.deliveries(second.id)[0]["delivered"]


def test_a_receiver_that_is_down_is_noted(sim, openai_client):
    """The attempt says what went wrong."""
    sim.webhooks("http://127.0.0.1:9/none", [SECRET], max_attempts=1)
    begun = begin(openai_client)

    attempts = sim.wait_for(lambda: next((d["attempts"] for d in sim.deliveries(begun.id)), None))
    assert attempts[0][1] == "ConnectError"


def test_a_delivery_can_be_late(sim, openai_client, listening):
    """That long after the response was completed."""
    receiver = listening(delay_ms=50)
    begun = begin(openai_client)

    sim.wait_for(lambda: receiver.got)
    told = sim.wait_for(lambda: sim.response(begun.id)["deliveries"][0]["attempts"])

    assert told[0][0] - sim.response(begun.id)["created_ms"] >= 50


def test_an_event_can_be_sent_by_hand(sim, listening):
    """For an unknown response, under an id of one's choice."""
    receiver = listening()
    sim.send_webhook("response.completed", "resp_unknown", "wh_chosen")

    got = sim.wait_for(lambda: receiver.got)[0]

    assert verified(got)["data"] == {"id": "resp_unknown"}
    assert got[0]["webhook-id"] == "wh_chosen"


def test_names_under_localhost_are_reached(sim, openai_client, receiver):
    """The local cloud's host names, whatever the resolver knows."""
    port = urlsplit(receiver.url).port
    sim.webhooks(f"http://api-1.execute-api.localhost:{port}", [SECRET])
    begin(openai_client)

    headers, _ = sim.wait_for(lambda: receiver.got)[0]
    assert headers["host"] == f"api-1.execute-api.localhost:{port}"
