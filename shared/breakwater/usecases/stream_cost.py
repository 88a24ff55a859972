"""What is kept of an answer that did not come to its end, and what did it cost?

The provider's own count where it gave one. Where it was cut before that, an estimate that says so: an answer that was
read is an answer that is paid for, and a book without it would be wrong by all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from breakwater.domain.pricing import estimate_tokens
from breakwater.domain.results import ESTIMATED, Result, Usage
from breakwater.domain.segments import Answer

_BYTES_PER_TOKEN = 4


def partial_of(answer: Answer, seen: Usage | None, given: Result | None, payload: Mapping[str, Any]) -> Result | None:
    """The partial of a stream that failed; None where nothing came and nothing was counted."""
    base = given or Result(finish_reason="incomplete", usage=seen or Usage())
    if given is None and not answer and seen is None:
        return None
    text = base.text if len(base.text) >= len(answer.text) else answer.text
    calls = base.tool_calls or answer.tool_calls
    whole = replace(base, text=text, tool_calls=calls)
    return counted(whole, payload) if answer else whole


def counted(result: Result, payload: Mapping[str, Any]) -> Result:
    """Usage as given; where it can't be all, an estimate in its place."""
    size = len(result.text.encode("utf-8", "replace"))
    size += sum(len(str(call.get("arguments") or "")) for call in result.tool_calls)
    told = -(-size // _BYTES_PER_TOKEN)
    usage = result.usage
    if usage.input_tokens and usage.output_tokens > 1:
        return result
    guessed = replace(
        usage,
        input_tokens=usage.input_tokens or estimate_tokens(payload),
        output_tokens=max(usage.output_tokens, told),
    )
    return replace(result, usage=guessed, evidence={**result.evidence, "usage": ESTIMATED})
