"""A browser's `EventSource`, as far as it matters: it parses, remembers the last id, comes back, and stops at 204."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from breakwater.domain.sse import SseParser
from breakwater.domain.stream_token import sign
from breakwater.entry.stream import stream
from breakwater.usecases.stream_read import StreamDeps

SECRET = "a-secret-for-tests-only"
ENDS = ("done", "failed", "cancelled")


def secrets() -> Mapping[str, Any]:
    """What the function would read from Secrets Manager."""
    return {"current": SECRET}


def _whole(body: str) -> str:
    return body


@dataclass
class Reader:
    """One page that looks at one stream."""

    deps: StreamDeps
    job_id: str
    owner: str = "acme"
    text: str = ""
    calls: dict[int, str] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)
    end: tuple[str, dict[str, Any]] | None = None
    retry_ms: int = 3_000
    requests: int = 0
    stopped: bool = False
    tear: Callable[[str], str] = _whole  # what of an answer arrives

    @property
    def last_id(self) -> str:
        return self.ids[-1] if self.ids else ""

    def connect(self) -> dict[str, Any]:
        """One request, as the gateway passes it on."""
        token = sign(SECRET, self.job_id, self.owner, self.deps.clock.now() + 60_000)
        headers = {"last-event-id": self.last_id} if self.ids else {}
        path = f"/v1/jobs/{self.job_id}/stream"
        event = {
            "requestContext": {"http": {"method": "GET", "path": path}, "requestId": "r"},
            "headers": headers,
            "queryStringParameters": {"token": token},
        }
        answer = stream(self.deps, secrets, event)
        self.requests += 1
        if answer["statusCode"] == 200:
            self._take(self.tear(answer["body"]))
        else:
            assert answer["statusCode"] == 204, answer
            self.stopped = True
        return answer

    def _take(self, body: str) -> None:
        parser = SseParser()
        for event in parser.feed(body.encode()):
            assert event.id not in self.ids, "an event was told twice"
            self.ids.append(event.id)
            data = json.loads(event.data)
            if event.name in ENDS:
                assert self.end is None
                self.end = (event.name, data)
                continue
            assert self.end is None, "nothing comes behind the end"
            for delta in data["deltas"]:
                self._delta(delta)
        self.retry_ms = parser.retry if parser.retry is not None else self.retry_ms

    def _delta(self, delta: Mapping[str, Any]) -> None:
        self.text += delta.get("text", "")
        if call := delta.get("tool_call"):
            self.calls[call["index"]] = self.calls.get(call["index"], "") + call.get("arguments", "")

    def read_all(self, most: int = 200) -> Reader:
        """Come back until told to stop."""
        while not self.stopped and self.requests < most:
            self.connect()
            self.deps.pause(self.retry_ms)
        return self


def reader_of(world: Any, job_id: str, **more: Any) -> Reader:
    """A reader over a world's table and clock."""
    deps = StreamDeps(
        store=world.store, payloads=world.payloads, clock=world.clock, log=world.log, pause=world.clock.advance
    )
    return Reader(deps, job_id, **more)
