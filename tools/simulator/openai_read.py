"""What does an OpenAI request ask for, Responses or chat?"""

from __future__ import annotations

from collections.abc import Iterable

from .directives import without_directives
from .operation import directives_in, json_body, limit_in, metadata_in, model_in, text_in
from .shapes import Asked, Incoming, Json, Problem, Tool
from .webhook_settings import MODES

_SMALLEST_LIMIT = 16


def read_response(incoming: Incoming) -> Asked:
    """Understand a `POST /responses`."""
    body = json_body(incoming)
    model = model_in(body)
    texts = _input_texts(body)
    text = "\n".join((body.get("instructions") or "", *texts))
    background = bool(body.get("background"))
    if background and body.get("store") is False:
        raise Problem("bad_request", "background=true needs store=true.", "background")
    limit = limit_in(body, "max_output_tokens")
    if limit is not None and limit < _SMALLEST_LIMIT:
        raise Problem("bad_request", "max_output_tokens must be at least 16.", "max_output_tokens")
    directives = directives_in(text)
    mode = directives.text("webhook")
    if mode is not None and mode not in MODES:
        raise Problem("bad_request", f"unknown webhook mode {mode!r}")
    return Asked(
        model=model,
        prompt=without_directives(texts[-1]),
        text=text,
        metadata=metadata_in(body),
        directives=directives,
        stream=bool(body.get("stream")),
        background=background,
        tools=_tools(body, body.get("tools") or ()),
        schema=_schema((body.get("text") or {}).get("format")),
        max_tokens=limit,
        body=body,
    )


def read_chat(incoming: Incoming) -> Asked:
    """Understand a `POST /chat/completions`."""
    body = json_body(incoming)
    model = model_in(body)
    texts = _message_texts(body.get("messages"), "messages")
    text = "\n".join(texts)
    return Asked(
        model=model,
        prompt=without_directives(texts[-1]),
        text=text,
        metadata=metadata_in(body),
        directives=directives_in(text),
        stream=bool(body.get("stream")),
        tools=_tools(body, (tool.get("function", {}) for tool in body.get("tools") or ())),
        schema=_schema_of_chat(body.get("response_format")),
        max_tokens=limit_in(body, "max_completion_tokens", "max_tokens"),
        body=body,
    )


def _input_texts(body: Json) -> list[str]:
    given = body.get("input")
    if isinstance(given, str) and given:
        return [given]
    return _message_texts(given, "input")


def _message_texts(messages: object, name: str) -> list[str]:
    if not isinstance(messages, list) or not messages:
        raise Problem("bad_request", f"Missing required parameter: '{name}'.", name)
    return [text_in(each.get("content")) for each in messages if isinstance(each, dict)]


def _tools(body: Json, functions: Iterable[Json]) -> tuple[Tool, ...]:
    """List what may be called; a tool's result is answered in words, so calls come to an end."""
    given = body.get("input") or body.get("messages")
    last = given[-1] if isinstance(given, list) else {}
    if last.get("type") == "function_call_output" or last.get("role") == "tool":
        return ()
    return tuple(Tool(str(each["name"]), each.get("parameters") or {}) for each in functions if "name" in each)


def _schema(given: Json | None) -> Json | None:
    if not given or given.get("type") != "json_schema":
        return None
    schema = given.get("schema")
    if not isinstance(schema, dict):
        raise Problem("bad_request", "Missing required parameter: 'schema'.", "text.format.schema")
    return schema


def _schema_of_chat(given: Json | None) -> Json | None:
    if not given or given.get("type") != "json_schema":
        return None
    return _schema({"type": "json_schema", **(given.get("json_schema") or {})})
