"""A callback from the deployed stack to a receiver on this machine, with the rights the roles give."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from standardwebhooks import Webhook

from breakwater.store.wire import to_wire


class Receiver(ThreadingHTTPServer):
    """A customer's endpoint: fails once, then takes everything."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.statuses, self.got = [503], []


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 204)
        self.end_headers()

    def log_message(self, *_):
        """Tests are quiet."""


@pytest.fixture
def receiver(stack):
    """A receiver that the owner may name."""
    settings = {"pk": f"OWNER#{stack.owner}", "sk": "CONFIG", "callback_hosts": ["127.0.0.1"]}
    table = stack.cloud.outputs()["ControlTableName"]
    stack.cloud.client("dynamodb").put_item(TableName=table, Item=to_wire(settings))
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_finished_job_is_told_and_told_again_on_request(stack, receiver):
    """Signed with the secret in Secrets Manager, tried again after a failure, sent again under the same id."""
    url = f"http://127.0.0.1:{receiver.server_port}/hook"
    end = time.monotonic() + 70  # an owner's settings count within a minute
    while (answer := stack.submit(callback_url=url)).status_code == 400 and time.monotonic() < end:
        time.sleep(2)
    assert answer.status_code == 202, answer.text
    job_id = answer.json()["job_id"]

    told = stack.done(job_id, seconds=90)
    assert told["notification"] == {"state": "delivered"}
    again = stack.api.post(f"/v1/jobs/{job_id}/notify")
    stack.done(job_id, seconds=60)

    assert again.status_code == 202
    assert len(receiver.got) == 3
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1
    secret = stack.cloud.remembered()["webhook_secret"]
    for headers, body in receiver.got[1:]:
        assert Webhook(secret).verify(body, headers)["data"]["job_id"] == job_id
