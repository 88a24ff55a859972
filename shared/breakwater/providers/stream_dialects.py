"""How is each API asked to stream, and who puts its pieces together?"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from breakwater.domain.results import Call
from breakwater.domain.stream_events import Resume
from breakwater.domain.values import dataclass
from breakwater.providers.request import Request, in_path, post
from breakwater.providers.stream_assembler import Assembler
from breakwater.providers.stream_chat import ChatAssembler
from breakwater.providers.stream_gemini import GeminiAssembler
from breakwater.providers.stream_messages import MessagesAssembler
from breakwater.providers.stream_responses import ResponsesAssembler

Ask = Callable[[Request], Request]


@dataclass(frozen=True, slots=True)
class Dialect:
    """What turns an ordinary request into one for a stream, and what reads the stream."""

    ask: Ask
    assembler: Callable[[Call], Assembler]


def _with(**more: Any) -> Ask:
    def ask(request: Request) -> Request:
        body = {**json.loads(request.content or b"{}"), **more}
        return post(request.path, body, request.headers)

    return ask


def _gemini(request: Request) -> Request:
    path = request.path.replace(":generateContent", ":streamGenerateContent?alt=sse")
    return Request(method=request.method, path=path, content=request.content, headers=request.headers)


DIALECTS: Mapping[str, Dialect] = {
    "responses": Dialect(_with(stream=True), lambda call: ResponsesAssembler(named=call.background)),
    "chat": Dialect(_with(stream=True, stream_options={"include_usage": True}), lambda _: ChatAssembler()),
    "messages": Dialect(_with(stream=True), lambda _: MessagesAssembler()),
    "generate_content": Dialect(_gemini, lambda _: GeminiAssembler()),
}
"""By endpoint family. An endpoint without an entry has no stream."""


def resumed(resume: Resume) -> Request:
    """Go on with a background response behind one of its events."""
    behind = "" if resume.after is None else f"&starting_after={resume.after}"
    return Request(method="GET", path=f"/responses/{in_path(resume.provider_job_id)}?stream=true{behind}")
