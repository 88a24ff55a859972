"""How does news of a background response reach its receiver, and how does it go wrong?

Deliveries follow Standard Webhooks: the id stays the same over all attempts, the timestamp and the
signature are new each time. Every attempt is kept and can be read back.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass, field
from typing import Any

import httpx

from .shapes import Json, new_id, now_ms
from .webhook_settings import WebhookSettings, signature_header

_GONE = 410
_USER_AGENT = "OpenAI/1.0 (+https://platform.openai.com/docs/webhooks)"
Spawn = Callable[[Coroutine[Any, Any, None]], object]


@dataclass(slots=True)
class Delivery:
    """One event on its way, with the answer to each attempt: a status, or what went wrong."""

    webhook_id: str
    event_type: str
    response_id: str
    body: str
    mode: str
    attempts: list[tuple[int, int | str]] = field(default_factory=list)
    delivered: bool = False

    def as_json(self) -> Json:
        """Describe it for the control API."""
        return asdict(self)


class Webhooks:
    """The sender: its settings and everything it sent."""

    def __init__(self, spawn: Spawn) -> None:
        """Start with nobody to tell; `spawn` runs what must not be waited for."""
        self.settings = WebhookSettings()
        self.deliveries: list[Delivery] = []
        self._spawn = spawn
        self._held: list[Callable[[], None]] = []
        self._client = httpx.AsyncClient(timeout=10.0, trust_env=False)

    def mode(self, wished: str | None = None) -> str:
        """Return the mode that applies to a response which may wish for one itself."""
        return wished or self.settings.mode

    def notify(self, response_id: str, status: str, wished: str | None = None) -> asyncio.Event:
        """Send `response.STATUS` in the mode that applies; set once it was tried first."""
        tried = asyncio.Event()
        mode = self.mode(wished)
        if self.settings.url is None or mode == "none":
            tried.set()
        elif mode == "reorder":
            self._hold(lambda: self._send_all(response_id, status, mode, tried))
        else:
            self._send_all(response_id, status, mode, tried)
        return tried

    def send(self, event_type: str, response_id: str, webhook_id: str | None = None) -> Delivery:
        """Send one event by hand, true or not, under a new or a given id."""
        delivery = self._delivery(event_type, response_id, self.settings.mode, webhook_id)
        self._spawn(self._deliver(delivery, asyncio.Event()))
        return delivery

    def reset(self) -> None:
        """Forget the receiver and everything sent."""
        self.settings = WebhookSettings()
        self.deliveries.clear()
        self._held.clear()

    async def close(self) -> None:
        """Let go of connections."""
        await self._client.aclose()

    def _hold(self, release: Callable[[], None]) -> None:
        self._held.append(release)
        if len(self._held) >= self.settings.hold:
            self._flush()
        elif len(self._held) == 1:
            self._spawn(self._flush_later())

    async def _flush_later(self) -> None:
        await asyncio.sleep(self.settings.flush_ms / 1000)
        self._flush()

    def _flush(self) -> None:
        held, self._held = self._held, []
        for release in reversed(held):
            release()

    def _send_all(self, response_id: str, status: str, mode: str, tried: asyncio.Event) -> None:
        genuine = self._delivery(f"response.{status}", response_id, mode)
        following = [genuine] * (self.settings.copies - 1)
        if mode == "altered_body":
            kind = "failed" if status == "completed" else "completed"
            altered = self._delivery(f"response.{kind}", response_id, mode, genuine.webhook_id)
            following.append(altered)
        self._spawn(self._deliver(genuine, tried, following))

    def _delivery(self, event_type: str, response_id: str, mode: str, webhook_id: str | None = None) -> Delivery:
        event = {
            "id": new_id("evt_"),
            "object": "event",
            "created_at": int(time.time()),
            "type": event_type,
            "data": {"id": response_id},
        }
        body = json.dumps(event)
        delivery = Delivery(webhook_id or new_id("wh_"), event_type, response_id, body, mode)
        self.deliveries.append(delivery)
        return delivery

    async def _deliver(self, delivery: Delivery, tried: asyncio.Event, following: list[Delivery] | None = None) -> None:
        settings = self.settings
        await asyncio.sleep(settings.delay_ms / 1000)
        for number in range(settings.max_attempts):
            delivery.delivered = await self._attempt(settings, delivery)
            tried.set()
            if delivery.delivered or delivery.attempts[-1][1] == _GONE:
                break
            await asyncio.sleep(settings.backoff_ms * 2**number / 1000)
        for each in following or ():
            each.delivered = await self._attempt(settings, each)

    async def _attempt(self, settings: WebhookSettings, delivery: Delivery) -> bool:
        stamp = str(int(time.time()))
        signed = f"{delivery.webhook_id}.{stamp}.{delivery.body}".encode()
        headers = {
            "content-type": "application/json",
            "user-agent": _USER_AGENT,
            "webhook-id": delivery.webhook_id,
            "webhook-timestamp": stamp,
            "webhook-signature": signature_header(settings, signed, delivery.mode),
        }
        try:
            response = await self._post(settings.url or "", delivery.body, headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            delivery.attempts.append((now_ms(), type(error).__name__))
            return False
        delivery.attempts.append((now_ms(), response.status_code))
        return response.is_success

    async def _post(self, url: str, body: str, headers: dict[str, str]) -> httpx.Response:
        target = httpx.URL(url)
        if target.host.endswith(".localhost"):  # many resolvers do not know these names
            headers = {**headers, "host": target.netloc.decode()}
            target = target.copy_with(host="127.0.0.1")
        return await self._client.post(target, content=body, headers=headers)


async def tried_within(tried: asyncio.Event, milliseconds: int) -> None:
    """Wait for a first attempt, but no longer than that."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(tried.wait(), milliseconds / 1000)
