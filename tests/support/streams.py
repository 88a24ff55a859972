"""A world for streams: a chat that streams, one whose provider can be resumed, and a reader."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from breakwater.domain.routes import Catalogue
from breakwater.domain.stream_events import Opened, StreamEvent, TextDelta
from tests.support.catalogue import catalogue, policy, route
from tests.support.world import World

LANES = {
    "interactive_admission": {"max_wait_ms": 4000, "max_attempts": 2},
    "stream_recovery": {"max_wait_ms": 2000, "max_attempts": 2},
}
OTHER = {
    "name": "second_account",
    "route": "other",
    "approved_by": "ops",
    "approved_on": "2026-11-01",
    "contract_version": "1",
}


def streaming() -> Catalogue:
    """`chat` streams, `told` can be gone on with, `paid_chat` must not be repeated, `chat_fallback` has a way out."""
    base = catalogue()
    can = {"background": True, "streaming": True, "tools": True, "context_window": 400_000}
    routes = {**base.routes, "told": route("told", capabilities=can)}
    chat = {"ai_api_queueing_strategy": {"lanes": LANES}}
    more = [
        policy("chat", **chat),
        policy("chat_fallback", **chat, fallbacks=[OTHER]),
        policy("paid_chat", **chat, side_effects="paid"),
        policy("told", **chat, route="told", mode="background"),
        policy("cut_is_fine", **chat, accept_truncated=True),
    ]
    return replace(base, routes=routes, policies={**base.policies, **{one.workflow: one for one in more}})


def stream_world(**more: Any) -> World:
    """A world with these workflows."""
    return World(routes=streaming(), **more)


def numbered(*texts: str, name: str = "resp_1", start: int = 0) -> list[StreamEvent]:
    """A resumable stream: its name, then texts, each with its number."""
    opened = [Opened(provider_job_id=name, sequence=0)] if start == 0 else []
    return [*opened, *(TextDelta(text=text, sequence=n) for n, text in enumerate(texts, 1) if n > start)]
