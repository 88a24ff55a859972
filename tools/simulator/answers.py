"""What does the model say? Always the same for the same request."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal

from .samples import sample
from .shapes import Asked, Tool, Usage

Finish = Literal["stop", "length", "tool", "refusal", "filter", "error"]
REFUSAL = "I can't help with that (simulated)."
_FIRST_WORDS = 12
_CHARS_PER_TOKEN = 4
_CACHE_FROM = 1024
_CACHE_STEP = 128
_MOST_PIECES = 64
_SHORT = 2000
_REASONING_TOKENS = 64
_REASONING_MODELS = re.compile(r"(^|/)(gpt-5|o[134]|gemini-(2\.5|3))")
_FILLER = "The simulated harbour is calm behind its breakwater. "


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The one function the model wants called; arguments are JSON text."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model produced, before a provider puts it into its own shape."""

    text: str
    finish: Finish
    model: str
    usage: Usage
    tool: ToolCall | None = None


def tokens(text: str) -> int:
    """Count tokens the simulator's way: four characters each, rounded up."""
    return -(-len(text) // _CHARS_PER_TOKEN)


def pieces(text: str) -> list[str]:
    """Cut a text for streaming: by words when short, into at most 64 parts when long."""
    if len(text) <= _SHORT:
        return re.findall(r"\s*\S+\s*$|\s*\S+", text)
    size = -(-len(text) // _MOST_PIECES)
    return [text[start : start + size] for start in range(0, len(text), size)]


def answer_to(asked: Asked) -> Answer:
    """Answer a request, honouring its directives, schema, tools and token limit."""
    tool = _tool_call(asked)
    model = asked.directives.text("served") or asked.model
    if tool:
        return Answer("", "tool", model, _usage(asked, tool.arguments), tool)
    text, finish = _said(asked)
    return Answer(text, finish, model, _usage(asked, text))


def _said(asked: Asked) -> tuple[str, Finish]:
    wants = asked.directives
    if wants.has("fail"):
        return "", "error"
    if wants.has("filter"):
        return "", "filter"
    if wants.has("refuse"):
        return REFUSAL, "refusal"
    text = _full_text(asked)
    room = len(text)
    if asked.max_tokens:
        room = (asked.max_tokens - _reasoning(asked)) * _CHARS_PER_TOKEN
    if wants.has("truncate"):
        room = min(room, max(1, len(text) // 2))
    return (text[:room], "length") if room < len(text) else (text, "stop")


def _full_text(asked: Asked) -> str:
    wants = asked.directives
    words = asked.prompt.split()
    plain = f"Simulated answer to: {' '.join(words[:_FIRST_WORDS])}"
    if wants.has("bad_json"):
        return f'{{"broken": "{plain}"'
    if asked.schema is not None:
        return json.dumps(sample(asked.schema, plain))
    if wants.has("json"):
        return json.dumps({"answer": plain, "words": len(words)})
    if wants.has("long"):
        size = wants.number("long")
        return (_FILLER * (size // len(_FILLER) + 1))[:size]
    return plain


def _tool_call(asked: Asked) -> ToolCall | None:
    wanted = asked.directives.text("tool_call")
    if wanted is None:
        return None
    tool = _chosen(asked.tools, wanted)
    return ToolCall(tool.name, json.dumps(sample(tool.schema))) if tool else None


def _chosen(tools: tuple[Tool, ...], name: str) -> Tool | None:
    return next((tool for tool in tools if name in {"", tool.name}), None)


def _usage(asked: Asked, written: str) -> Usage:
    given = max(1, tokens(asked.text))
    cached = given // 2 // _CACHE_STEP * _CACHE_STEP if given >= _CACHE_FROM else 0
    reasoning = _reasoning(asked)
    return Usage(
        input=given,
        cached=min(given, asked.directives.number("cached", cached)),
        output=tokens(written) + reasoning,
        reasoning=reasoning,
    )


def _reasoning(asked: Asked) -> int:
    thinks = _REASONING_TOKENS if _REASONING_MODELS.search(asked.model) else 0
    wanted = asked.directives.number("reasoning", thinks)
    return wanted if asked.max_tokens is None else min(wanted, asked.max_tokens // 2)
