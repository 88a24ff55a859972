"""A reader comes and goes as it likes: nothing is missed, nothing repeated, and the end is told once."""

from __future__ import annotations

import itertools
import json

import pytest

from breakwater.domain import events as ev
from breakwater.domain.errors import SecretUnavailable, StoreUnavailable
from breakwater.domain.machine import advance
from breakwater.domain.results import Completed
from breakwater.domain.states import Lane
from breakwater.domain.stream_events import Done, TextDelta
from breakwater.domain.stream_token import sign
from breakwater.entry.stream import stream
from breakwater.usecases.change import change
from breakwater.usecases.read import with_result
from breakwater.usecases.stream_token import stream_token
from tests.fakes.outside import answer
from tests.support.reader import SECRET, Reader, reader_of, secrets
from tests.support.streams import stream_world

WORDS = [f"word{n} " for n in range(40)]
TEXT = "".join(WORDS)


@pytest.fixture
def told():
    """A world with a long answer that was streamed to its end."""
    world = stream_world()
    line = [part for word in WORDS for part in (TextDelta(text=word), 260)]
    world.provider.streams = [[*line, Done(result=answer(TEXT))]]
    job_id = world.submit("chat", stream=True).job.job_id
    world.pump()
    return world, job_id


def asked(world, job_id, token, **more):
    """One request with a token of one's own."""
    deps = reader_of(world, job_id).deps
    http = {"method": "GET", "path": f"/v1/jobs/{job_id}/stream"}
    event = {"requestContext": {"http": http, "requestId": "r"}, "headers": {}, **more}
    event["queryStringParameters"] = {"token": token} if token is not None else None
    return stream(deps, secrets, event)


def test_an_event_source_reads_it_all_and_stops(told):
    """Events, the end, and 204 so that the browser does not come back."""
    world, job_id = told

    reader = reader_of(world, job_id).read_all()

    assert (reader.text, reader.end[0], reader.stopped) == (TEXT, "done", True)
    assert reader.ids[0] == "1.1.0"
    assert reader.ids[-1] == "1.end"


def test_a_torn_answer_is_taken_up_where_it_was_torn(told):
    """A connection that breaks after any number of bytes costs nothing: no piece twice, none missing."""
    world, job_id = told
    whole = reader_of(world, job_id).connect()["body"]
    for cut in range(0, len(whole), 97):
        cuts = itertools.chain([cut], itertools.repeat(len(whole)))
        reader = reader_of(world, job_id, tear=lambda body, cuts=cuts: body[: next(cuts)])

        reader.read_all()

        assert (reader.text, reader.end[0]) == (TEXT, "done")


def test_a_request_is_held_for_less_than_two_seconds():
    """And asked again after a pause that grows while the job waits."""
    world = stream_world()
    job_id = world.submit("chat", stream=True).job.job_id
    begun = world.clock.now()

    body = reader_of(world, job_id).connect()["body"]

    assert world.clock.now() - begun <= 2_000
    assert body == "retry: 1000\n\n: nothing new yet\n\n"


def test_what_comes_while_a_request_is_held_ends_the_wait():
    """The first token is not kept waiting for the end of the hold."""
    world = stream_world()
    job_id = world.submit("chat", stream=True).job.job_id
    reader = reader_of(world, job_id)
    seen = []

    def pause(ms):
        world.clock.advance(ms)
        seen.append(ms)
        if len(seen) == 1:
            world.pump()

    reader.deps = type(reader.deps)(
        store=world.store, payloads=world.payloads, clock=world.clock, log=world.log, pause=pause
    )
    reader.connect()

    assert len(seen) == 1
    assert reader.end[0] == "done"


def test_a_large_answer_comes_in_several(told):
    """No answer grows without bound; the reader comes back for the rest, also of a stored result."""
    world, _ = told
    text = "x" * 3_000_000
    job_id = world.submit("polled", key="big", stream=True).job.job_id
    world.worker(job_id)
    world.provider.finish("resp_1", Completed(result=answer(text)))
    world.settle()
    reader = reader_of(world, job_id)

    sizes = []
    while not reader.stopped:
        sizes.append(len(reader.connect().get("body", "")))

    assert reader.text == text
    assert max(sizes) < 1_300_000
    assert reader.ids[-2] == "1.rest.3000000"


def test_the_stored_result_is_taken_up_where_it_was_torn():
    """A place inside the rest is a place like any other; calls of tools come with its last piece."""
    world = stream_world()
    job_id = world.submit("polled", stream=True).job.job_id
    world.worker(job_id)
    text = "y" * 200_000
    call = {"id": "c", "name": "look", "arguments": '{"n": 1}'}
    world.provider.finish("resp_1", Completed(result=answer(text, tool_calls=(call,))))
    world.settle()
    cuts = itertools.chain([70_000, 140_000], itertools.repeat(10**7))

    reader = reader_of(world, job_id, tear=lambda body: body[: next(cuts)]).read_all()

    assert (reader.text, reader.calls, reader.end[0]) == (text, {0: '{"n": 1}'}, "done")


def test_a_replayed_job_is_another_stream():
    """A reader of the first life is told that it is over; one without a place reads the new answer."""
    world = stream_world()
    world.provider.streams = [[TextDelta(text="old")], [TextDelta(text="new"), Done(result=answer("new"))]]
    job_id = world.submit("chat", stream=True).job.job_id
    early = reader_of(world, job_id)
    early.tear = lambda body: body.split("id: 1.end")[0]
    world.pump()
    early.connect()
    now = world.clock.now()
    replayed = ev.Replayed(by="ops", at=now, max_attempts=2, expires_at=now + 60_000, lane=Lane.INTERACTIVE_ADMISSION)
    change(world.deps, world.job(job_id), lambda job: advance(job, replayed, now))
    world.pump()

    early.tear = lambda body: body
    early.read_all()

    assert early.text == "old"
    assert (early.end[0], early.end[1]["reason"]) == ("failed", "replayed")
    assert reader_of(world, job_id).read_all().text == "new"


@pytest.mark.parametrize("last", ["nonsense", "1.2", "1.1.0.0", "९.1.0", "-1.1.1", "", "1.end.x"])
def test_a_place_that_was_never_given_is_none(told, last):
    """The reader then begins at the beginning."""
    world, job_id = told
    token = sign(SECRET, job_id, "acme", world.clock.now() + 1_000)

    body = asked(world, job_id, token, headers={"last-event-id": last})["body"]

    assert "id: 1.1.0\n" in body


# --- who may read ------------------------------------------------------------------------------------------------


def test_a_token_opens_one_job_for_a_while(told):
    """Another job's, another owner's, an old, a forged and a missing one do not."""
    world, job_id = told
    soon = world.clock.now() + 1_000
    good = sign(SECRET, job_id, "acme", soon)
    bad = [
        sign(SECRET, "job_other", "acme", soon),
        sign("another-secret-of-length", job_id, "acme", soon),
        sign(SECRET, job_id, "acme", world.clock.now()),
        good[:-1] + ("A" if good[-1] != "A" else "B"),
        good.replace(str(soon), str(soon + 1)),
        "v1.x.y.z",
        "",
        "é",
        "v1." * 1_000,
    ]

    assert asked(world, job_id, good)["statusCode"] == 200
    for token in [*bad, None]:
        answered = asked(world, job_id, token)
        assert answered["statusCode"] == 401
        assert json.loads(answered["body"])["fix"].startswith("POST /v1/jobs/")
    assert asked(world, job_id, sign(SECRET, job_id, "stranger", soon))["statusCode"] == 404


def test_a_token_may_come_as_a_bearer(told):
    """For clients that can send headers."""
    world, job_id = told
    token = sign(SECRET, job_id, "acme", world.clock.now() + 1_000)

    assert asked(world, job_id, None, headers={"Authorization": f"Bearer {token}"})["statusCode"] == 200


def test_the_secret_before_the_last_still_opens(told):
    """A rotation breaks no stream."""
    world, job_id = told
    token = sign("the-secret-of-yesterday", job_id, "acme", world.clock.now() + 1_000)
    deps = reader_of(world, job_id).deps
    http = {"method": "GET", "path": f"/v1/jobs/{job_id}/stream"}
    event = {"requestContext": {"http": http}, "queryStringParameters": {"token": token}}

    both = {"current": SECRET, "previous": "the-secret-of-yesterday"}
    assert stream(deps, lambda: both, event)["statusCode"] == 200
    assert stream(deps, lambda: {"current": SECRET, "previous": "short"}, event)["statusCode"] == 401
    assert stream(deps, dict, event)["statusCode"] == 401


def test_a_token_is_given_to_whoever_may_read_the_job(told):
    """With its end and a URL that an EventSource takes as it is."""
    world, job_id = told
    deps = type(world.deps)(
        **{name: getattr(world.deps, name) for name in world.deps.__dataclass_fields__} | {"stream_secrets": secrets}
    )

    given = stream_token(deps, world.job(job_id))

    assert given["url"] == f"/v1/jobs/{job_id}/stream?token={given['token']}"
    assert given["expires_at"] - world.clock.now() == given["expires_in_ms"] == 900_000
    assert asked(world, job_id, given["token"])["statusCode"] == 200
    with pytest.raises(SecretUnavailable):
        stream_token(world.deps, world.job(job_id))


def test_trouble_with_the_table_does_not_end_an_event_source(told):
    """It gives up at any status but 200, so it is told to come back."""
    world, job_id = told

    def broken(name, _when):
        if name == "get":
            raise StoreUnavailable

    world.store._hook = broken
    reader = reader_of(world, job_id)

    assert reader.connect()["body"] == "retry: 2000\n\n: nothing new yet\n\n"
    world.store._hook = lambda *_: None
    assert reader.read_all().text == TEXT


def test_other_paths_and_methods_are_not_served(told):
    """The function answers for one route."""
    world, job_id = told
    deps = reader_of(world, job_id).deps
    for method, path in (
        ("GET", f"/v1/jobs/{job_id}"),
        ("POST", f"/v1/jobs/{job_id}/stream"),
        ("GET", "/v1/jobs/x/stream"),
    ):
        event = {"requestContext": {"http": {"method": method, "path": path}}}
        assert stream(deps, secrets, event)["statusCode"] == 404


# --- the record --------------------------------------------------------------------------------------------------


def test_the_job_shows_what_readers_saw():
    """The partial of a cancelled stream is read from its segments; text of any script survives."""
    world = stream_world()
    text = "日本 \u2028 é\n\r\n\x00 😀 \ud800"
    world.provider.streams = [[TextDelta(text=text), lambda: world.cancel(job_id)]]
    job_id = world.submit("chat", stream=True).job.job_id
    world.pump()

    shown = with_result(world.deps, world.job(job_id))

    assert shown["partial_result"]["text"] == text
    body = reader_of(world, job_id).connect()["body"]
    assert body.isascii()
    assert json.loads(body.split("data: ")[1].split("\n")[0])["deltas"] == [{"text": text}]


def test_a_reader_is_only_a_reader(told):
    """Nothing it does changes the table."""
    world, job_id = told
    before = dict(world.store.items)

    Reader(reader_of(world, job_id).deps, job_id).read_all()

    assert world.store.items == before
