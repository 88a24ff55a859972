"""How is one row of a provider's error table written down as a preset?"""

from __future__ import annotations

from typing import Any

Template = dict[str, Any]


def openai_row(
    status: int,
    code: str | None,
    kind: str | None,
    message: str,
    **headers: str,
) -> Template:
    """An OpenAI error; underscores in header names become hyphens."""
    error = {"message": message, "type": kind, "param": None, "code": code}
    return {"status": status, "headers": hyphens(headers), "body": {"error": error}}


def anthropic_row(
    status: int,
    kind: str,
    message: str,
    code: str | None = None,
    **headers: str,
) -> Template:
    """An Anthropic error, with `details.error_code` where the row has one."""
    error: dict[str, Any] = {"type": kind, "message": message}
    if code:
        error["details"] = {"error_code": code}
    body = {"type": "error", "error": error, "request_id": "req_simulated"}
    return {"status": status, "headers": hyphens(headers), "body": body}


def gemini_row(status: int, name: str, message: str, *details: dict[str, Any]) -> Template:
    """A Google error; its details are listed as given."""
    error: dict[str, Any] = {"code": status, "message": message, "status": name}
    if details:
        error["details"] = list(details)
    return {"status": status, "headers": {}, "body": {"error": error}}


def gateway_row(status: int, kind: str, message: str, **more: Any) -> Template:
    """An OpenRouter error: `code` is the status, `metadata.error_type` tells kinds apart."""
    headers = {"retry-after": more.pop("retry_after")} if "retry_after" in more else {}
    metadata = {"error_type": kind, **more}
    error = {"code": status, "message": message, "metadata": metadata}
    return {"status": status, "headers": headers, "body": {"error": error}}


def hyphens(headers: dict[str, str]) -> dict[str, str]:
    """Header names as they are sent."""
    return {name.replace("_", "-"): value for name, value in headers.items()}
