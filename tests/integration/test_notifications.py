"""Notifications from the API to a real receiver, and the programs of the docs, run as they are printed."""

from __future__ import annotations

import json
import re
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from standardwebhooks import Webhook

from breakwater import wiring
from breakwater.domain.obligations import Queue
from tests.support.cloud import ROOT
from tests.support.lambdas import installed, sample

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
OWN, NEW = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4", "whsec_MTExMTExMTExMTExMTExMTExMTExMTEx"


class Receiver(ThreadingHTTPServer):
    """A customer's endpoint: keeps what it gets and answers as told."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.statuses, self.got = [], []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/hook"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 204)
        self.end_headers()

    def log_message(self, *_):
        """Tests are quiet."""


@pytest.fixture
def receiver():
    """A receiver on this machine."""
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def installation(tables, monkeypatch, tmp_path):
    """An installation in which acme may be called back on this machine."""
    monkeypatch.setenv("CALLBACK_LOOPBACK_HOSTS", "127.0.0.1")
    for made in installed(tables, monkeypatch, tmp_path):
        made.owner({"callback_hosts": ["127.0.0.1"]})
        made.secret("NOTIFY_SECRETS_SECRET", {"default": SECRET})
        yield made


def ended(installation, url):
    """A job with a callback that was cancelled at once; its effects are owed."""
    event = sample("admission")
    event["body"] = json.dumps({**json.loads(event["body"]), "callback_url": url})
    status, told = installation.http("admission", event)
    assert status == 202, told
    job_id = told["job_id"]
    assert installation.http("admission", sample("admission-cancel", job_id=job_id))[0] == 200
    assert {"kind": "job", "id": job_id} in installation.received(Queue.EFFECTS)
    return job_id


def notification(installation, job_id):
    """What the job says about it."""
    return installation.http("admission", sample("admission-read", job_id=job_id))[1]["notification"]


def effects(installation, job_id):
    """The effects function, nudged."""
    assert installation.call("effects", sample("effects", item_id=job_id)) == {"batchItemFailures": []}


def test_a_job_that_ends_is_told_to_its_receiver(installation, receiver):
    """Accepted, ended, signed, verified with the public library, and shown as delivered."""
    job_id = ended(installation, receiver.url)

    effects(installation, job_id)

    ((headers, body),) = receiver.got
    told = Webhook(SECRET).verify(body, headers)
    assert (told["type"], told["data"]["job_id"]) == ("job.cancelled", job_id)
    assert notification(installation, job_id) == {"state": "delivered"}


def test_a_receiver_that_fails_is_tried_again_and_on_request(installation, receiver):
    """The sweep finds the next try; the owner need not wait for it; the id stays."""
    receiver.statuses = [500, 503]
    job_id = ended(installation, receiver.url)
    effects(installation, job_id)
    assert notification(installation, job_id)["reason"] == "http_500"
    installation.clock.advance(10_000)
    effects(installation, job_id)

    status, told = installation.http("admission", sample("admission-notify", job_id=job_id))
    effects(installation, job_id)

    assert (status, told["notification"]["state"]) == (202, "owed")
    assert notification(installation, job_id) == {"state": "delivered"}
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1
    assert len(receiver.got) == 3


def test_a_receiver_that_is_gone_is_left_in_peace(installation, receiver):
    """410: the job says why, and nothing is owed."""
    receiver.statuses = [410]
    job_id = ended(installation, receiver.url)

    effects(installation, job_id)

    assert notification(installation, job_id) == {"state": "not_delivered", "reason": "gone"}
    assert installation.job(job_id).due_at is None


def test_both_secrets_of_an_owner_sign_while_they_overlap(installation, receiver):
    """The receiver may know either."""
    installation.secret("NOTIFY_SECRETS_SECRET", {"default": SECRET, "acme": [NEW, OWN]})

    effects(installation, ended(installation, receiver.url))

    ((headers, body),) = receiver.got
    for secret in (NEW, OWN):
        assert Webhook(secret).verify(body, headers)["type"] == "job.cancelled"


def test_a_host_that_is_not_allowed_is_refused_at_submission(installation):
    """The caller learns the rule, and no job is made."""
    event = sample("admission")
    event["body"] = json.dumps({**json.loads(event["body"]), "callback_url": "https://elsewhere.example/x"})

    status, told = installation.http("admission", event)

    assert (status, told["field"], told["rule"]) == (400, "callback_url", "host_not_allowed")
    assert wiring.store().by_owner("acme", 10, None)[0] == []


# --- the programs of the docs


def program(page, monkeypatch, **environment):
    """The first Python block of a page, run."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    (text, *_) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "how-to" / page).read_text(), re.DOTALL)
    names: dict = {}
    exec(compile(text, page, "exec"), names)  # noqa: S102 - the docs' own program
    return names


def test_the_receiver_of_the_docs_takes_a_message_once(installation, receiver, monkeypatch, capsys):
    """It verifies, acts, and drops the repetition; a forged one is 401."""
    effects(installation, ended(installation, receiver.url))
    ((headers, body),) = receiver.got
    receive = program("notifications.md", monkeypatch, NOTIFY_SECRET=SECRET)["receive"]

    answers = [receive(headers, body), receive(headers, body), receive(headers, body + b" ")]

    assert answers == [200, 200, 401]
    assert capsys.readouterr().out.count("job.cancelled") == 1


def test_the_consumer_of_the_docs_applies_an_event_exactly_once(installation, monkeypatch):
    """One event three times, two of them at once; another event counts for itself."""
    dynamo = installation.tables.client("dynamodb")
    table = f"credits-{uuid.uuid4().hex[:8]}"
    dynamo.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
    )
    handler = program("effects-exactly-once.md", monkeypatch, CREDITS_TABLE=table)["handler"]
    detail = {"version": 1, "id": "job_a.1.bus_event.1", "job_id": "job_a", "owner_key": "acme", "cost_micros": 40}

    with ThreadPoolExecutor(2) as pool:
        told = list(pool.map(lambda _: handler({"detail": detail}, None), range(2)))
    told.append(handler({"detail": detail}, None))
    told.append(handler({"detail": {**detail, "id": "job_a.1.bus_event.2"}}, None))

    assert sorted(told) == ["applied", "applied", "applied before", "applied before"]
    item = dynamo.get_item(TableName=table, Key={"pk": {"S": "credits#acme"}})["Item"]
    assert item["credits"] == {"N": "-80"}
