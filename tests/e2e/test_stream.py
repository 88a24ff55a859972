"""Streams on the deployed stack: a browser's `EventSource` against the gateway, without a key in sight."""

from __future__ import annotations

import json
import statistics
import time
from typing import Any

import httpx

from breakwater.domain.sse import SseParser


class EventSource:
    """What a browser does with a URL: reads, remembers the last id, waits as told, comes back, stops at 204."""

    def __init__(self, base_url: str, path: str) -> None:
        self.base_url, self.path = base_url.rstrip("/"), path
        self.text, self.last_id, self.retry_ms = "", "", 3_000
        self.end: tuple[str, dict[str, Any]] | None = None
        self.spoke = 0  # answers that brought text
        self.took: list[float] = []  # each request, in seconds

    def get(self, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
        """One request without a key."""
        return httpx.get(self.base_url + path, headers=headers or {}, timeout=30, trust_env=False)

    def read(self, seconds: float = 60, *, until_text: bool = False) -> EventSource:
        """Until the stream is over (or has begun)."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            begun = time.monotonic()
            answer = self.get(self.path, {"last-event-id": self.last_id} if self.last_id else {})
            self.took.append(time.monotonic() - begun)
            if answer.status_code == 204:
                return self
            assert answer.status_code == 200, answer.text
            assert answer.headers["content-type"].startswith("text/event-stream")
            self._take(answer.content)
            if until_text and self.text:
                return self
            time.sleep(self.retry_ms / 1000)
        raise AssertionError(f"not over within {seconds} s: {self.text!r}")

    def _take(self, body: bytes) -> None:
        parser, before = SseParser(), self.text
        for event in parser.feed(body):
            data = json.loads(event.data)
            self.last_id = event.id
            if event.name != "message":
                self.end = (event.name, data)
                continue
            self.text += "".join(delta.get("text", "") for delta in data["deltas"])
        self.spoke += self.text != before
        self.retry_ms = parser.retry or self.retry_ms


def opened(stack, text: str) -> tuple[str, EventSource]:
    """A streamed chat and a page that looks at it."""
    job_id = stack.submit("chat_stream", text, stream=True).json()["job_id"]
    given = stack.api.post(f"/v1/jobs/{job_id}/stream-token")
    assert given.status_code == 201, given.text
    return job_id, EventSource(str(stack.api.base_url), given.json()["url"])


def test_tokens_arrive_while_the_provider_still_speaks(stack):
    """In several answers, none held for long; the end is told and the browser stops."""
    opened(stack, "warm up")[1].read()  # the first request starts the functions
    words = " ".join(f"word{n}" for n in range(11))
    job_id, page = opened(stack, f"{words} [[sim:pace=250]]")

    page.read()

    job = stack.done(job_id)
    assert job["status"] == "succeeded", (job, page.text)
    assert page.text == job["result"]["text"]
    assert words.split()[-1] in page.text
    assert (page.end[0], page.end[1]["complete"]) == ("done", True)
    assert page.spoke > 1
    assert statistics.median(page.took) < 2.5  # held for 2 s at most; a single one may start a function


def test_a_stream_that_breaks_is_ended_with_a_reason(stack):
    """Part of the answer was shown: nothing is sent again, and the page is told what to do."""
    text = "Please tell me a long story of the sea"
    stack.simulator.fault(kind="stream_cut", after_events=10, contains=text, count=None)
    job_id, page = opened(stack, text)

    page.read()

    job = stack.done(job_id)
    assert (job["status"], job["reason"]) == ("dead_letter", "partial_output_committed")
    assert job["partial_result"]["text"].startswith(page.text)
    assert page.text
    name, data = page.end
    assert (name, data["reason"], data["partial"]) == ("failed", "partial_output_committed", True)
    assert data["request_id"]
    assert data["what_to_do"]


def test_a_cancel_ends_the_stream_and_hangs_up(stack):
    """The page is told how far it got; the provider's stream is closed within a second or so."""
    text = " ".join(f"part{n}" for n in range(12))
    job_id, page = opened(stack, f"{text} [[sim:pace=700]]")
    page.read(until_text=True)

    begun = time.monotonic()
    assert stack.api.post(f"/v1/jobs/{job_id}/cancel").status_code in (200, 202)
    job = stack.until(job_id, lambda job: job["final"])
    took = time.monotonic() - begun

    page.read()
    assert (job["status"], page.end[0]) == ("cancelled", "cancelled")
    assert page.end[1]["characters"] == len(page.text)
    assert took < 4
    outcomes = {one.outcome for one in stack.simulator.ledger(contains=text)}
    assert outcomes == {"client_gone"}


def test_only_a_token_opens_a_stream(stack):
    """Neither nothing nor a key does; the route asks for no key, the function for a signature."""
    job_id, page = opened(stack, "hello")

    bare = page.get(f"/v1/jobs/{job_id}/stream")
    keyed = stack.api.get(f"/v1/jobs/{job_id}/stream")
    forged = page.get(page.path[:-2] + "xx")

    assert [one.status_code for one in (bare, keyed, forged)] == [401, 401, 401]
    assert bare.headers["content-type"] == "application/problem+json"
    assert page.read().end[0] == "done"
