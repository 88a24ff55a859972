"""How do OpenAI, Anthropic, Gemini and gateways word what all their endpoints share?"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from . import sse
from .dialect import Dialect
from .shapes import Json, Problem, ProblemKind, new_id

_LIMIT = 10_000
_TOKEN_LIMIT = 2_000_000


def _bearer(headers: Mapping[str, str]) -> str | None:
    return headers.get("authorization", "").removeprefix("Bearer ").strip() or None


class OpenAI(Dialect):
    """OpenAI's own API."""

    provider: ClassVar[str] = "openai"

    def key(self, headers: Mapping[str, str], query: Mapping[str, str]) -> str | None:
        """Return the bearer token."""
        del query
        return _bearer(headers)

    def refusal(self, problem: Problem) -> tuple[int, Json]:
        """All four keys are always there."""
        status, kind, code = _OPENAI[problem.kind]
        error = {"message": problem.message, "type": kind, "param": problem.param, "code": code}
        return status, {"error": error}

    def headers(self) -> dict[str, str]:
        """Resets are Go durations."""
        return {
            "x-request-id": new_id("req_"),
            "openai-version": "2020-10-01",
            "openai-organization": "org-simulated",
            "openai-processing-ms": "12",
            "x-ratelimit-limit-requests": str(_LIMIT),
            "x-ratelimit-remaining-requests": str(_LIMIT - 1),
            "x-ratelimit-reset-requests": "6ms",
            "x-ratelimit-limit-tokens": str(_TOKEN_LIMIT),
            "x-ratelimit-remaining-tokens": str(_TOKEN_LIMIT - 100),
            "x-ratelimit-reset-tokens": "3ms",
        }

    def stream_error(self, error: Json | None) -> bytes:
        """As chat streams have it; the Responses API frames its own."""
        fallback = {"message": "The server had an error.", "type": "server_error", "code": None}
        return sse.data({"error": error or {**fallback, "param": None}})


class Anthropic(Dialect):
    """Anthropic's own API."""

    provider: ClassVar[str] = "anthropic"

    def key(self, headers: Mapping[str, str], query: Mapping[str, str]) -> str | None:
        """Return the key header, or a bearer token."""
        del query
        return headers.get("x-api-key") or _bearer(headers)

    def refusal(self, problem: Problem) -> tuple[int, Json]:
        """The error is wrapped and says `type` twice."""
        status, kind = _ANTHROPIC[problem.kind]
        error = {"type": kind, "message": problem.message}
        return status, {"type": "error", "error": error, "request_id": new_id("req_")}

    def headers(self) -> dict[str, str]:
        """Resets are instants."""
        reset = (datetime.now(UTC) + timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        limits = {
            f"anthropic-ratelimit-{kind}-{name}": value
            for kind, limit in _ANTHROPIC_LIMITS.items()
            for name, value in (
                ("limit", str(limit)),
                ("remaining", str(limit - 1)),
                ("reset", reset),
            )
        }
        return {
            "request-id": new_id("req_"),
            "anthropic-organization-id": "org-simulated",
            **limits,
        }

    def stream_error(self, error: Json | None) -> bytes:
        """Frame it as an event named error."""
        fallback = {"type": "overloaded_error", "message": "Overloaded"}
        return sse.named({"type": "error", "error": error or fallback})


class Gemini(Dialect):
    """Google's Gemini API."""

    provider: ClassVar[str] = "gemini"

    def key(self, headers: Mapping[str, str], query: Mapping[str, str]) -> str | None:
        """Return the key header, or the key in the query."""
        return headers.get("x-goog-api-key") or query.get("key")

    def refusal(self, problem: Problem) -> tuple[int, Json]:
        """Name and number of a google.rpc status; a bad key is a 400 with a reason."""
        status, name = _GEMINI[problem.kind]
        error: Json = {"code": status, "message": problem.message, "status": name}
        if problem.kind == "bad_credential":
            kind = "type.googleapis.com/google.rpc.ErrorInfo"
            error["details"] = [{"@type": kind, "reason": "API_KEY_INVALID"}]
        return status, {"error": error}

    def headers(self) -> dict[str, str]:
        """There are no rate limit headers."""
        return {"server": "scaffolding on HTTPServer2", "server-timing": "gfet4t7; dur=12"}

    def stream_error(self, error: Json | None) -> bytes:
        """Frame it as one more chunk."""
        fallback = {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}
        return sse.data({"error": error or fallback})


class Gateway(Dialect):
    """An OpenAI-compatible gateway in OpenRouter's manner."""

    provider: ClassVar[str] = "gateway"

    def key(self, headers: Mapping[str, str], query: Mapping[str, str]) -> str | None:
        """Return the bearer token."""
        del query
        return _bearer(headers)

    def refusal(self, problem: Problem) -> tuple[int, Json]:
        """`code` is the status as a number."""
        status, kind = _GATEWAY[problem.kind]
        metadata = {"error_type": kind}
        return status, {"error": {"code": status, "message": problem.message, "metadata": metadata}}

    def headers(self) -> dict[str, str]:
        """A request id and little more."""
        return {"x-request-id": new_id("gwreq_"), "x-generated-at": str(int(time.time()))}

    def stream_error(self, error: Json | None) -> bytes:
        """Frame it as a last chunk with an error beside a choice that ended in one."""
        fallback = {"code": 502, "message": "Provider disconnected unexpectedly"}
        choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
        head = {"id": "gen-simulated", "object": "chat.completion.chunk", "model": "sim"}
        return sse.data({**head, "error": error or fallback, "choices": [choice]})


_CALLER = "invalid_request_error"
_OPENAI: dict[ProblemKind, tuple[int, str, str | None]] = {
    "bad_request": (400, _CALLER, None),
    "no_credential": (401, _CALLER, None),
    "bad_credential": (401, _CALLER, "invalid_api_key"),
    "no_model": (404, _CALLER, "model_not_found"),
    "not_found": (404, _CALLER, None),
    "moderation": (400, "image_generation_user_error", "moderation_blocked"),
    "server": (500, "server_error", None),
}
_ANTHROPIC_LIMITS = {
    "requests": 4000,
    "tokens": 2_400_000,
    "input-tokens": 2_000_000,
    "output-tokens": 400_000,
}
_ANTHROPIC: dict[ProblemKind, tuple[int, str]] = {
    "bad_request": (400, _CALLER),
    "no_credential": (401, "authentication_error"),
    "bad_credential": (401, "authentication_error"),
    "no_model": (404, "not_found_error"),
    "not_found": (404, "not_found_error"),
    "moderation": (400, _CALLER),
    "server": (500, "api_error"),
}
_GEMINI: dict[ProblemKind, tuple[int, str]] = {
    "bad_request": (400, "INVALID_ARGUMENT"),
    "no_credential": (403, "PERMISSION_DENIED"),
    "bad_credential": (400, "INVALID_ARGUMENT"),
    "no_model": (404, "NOT_FOUND"),
    "not_found": (404, "NOT_FOUND"),
    "moderation": (400, "INVALID_ARGUMENT"),
    "server": (500, "INTERNAL"),
}
_GATEWAY: dict[ProblemKind, tuple[int, str]] = {
    "bad_request": (400, "invalid_request"),
    "no_credential": (401, "authentication"),
    "bad_credential": (401, "authentication"),
    "no_model": (404, "not_found"),
    "not_found": (404, "not_found"),
    "moderation": (403, "content_policy_violation"),
    "server": (502, "provider_unavailable"),
}
