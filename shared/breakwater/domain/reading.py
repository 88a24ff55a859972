"""How are the pieces of an answer read, whatever a provider put there?

Every function is total: a field of the wrong type reads as one that is missing. What must not be missing is checked
in one place, `endings.py`, and an answer without it never counts as completed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from typing import Any

from breakwater.domain.results import Result

_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*", re.DOTALL | re.IGNORECASE)
_COUNT = re.compile(r"\d{1,12}", re.ASCII)
_MOST = 10**12
_MICROS = 1_000_000
_DEAREST = Decimal(1_000_000)  # dollars for one call: more is not a price


def text(value: Any) -> str:
    """A text, empty where it is none."""
    return value if isinstance(value, str) else ""


def word(value: Any) -> str | None:
    """A text that says something, else None."""
    return value if isinstance(value, str) and value else None


def count(value: Any) -> int:
    """A number of tokens or pieces, 0 where it is none. Some gateways write it as text, or with a point."""
    if isinstance(value, str) and _COUNT.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and value.is_integer() and value <= _MOST:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def inside(value: Any, *keys: str) -> Any:
    """What stands under these keys, one in another; None where one is missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def objects(values: Any) -> list[Mapping[str, Any]]:
    """The objects of a list; none where it is no list."""
    return [value for value in values if isinstance(value, Mapping)] if isinstance(values, list) else []


def micros(dollars: Any) -> int | None:
    """Dollars, as number or text, in whole micro-dollars, rounded up."""
    if isinstance(dollars, bool) or not isinstance(dollars, str | int | float):
        return None
    try:
        amount = Decimal(str(dollars))
    except InvalidOperation:
        return None
    if not amount.is_finite() or not 0 <= amount <= _DEAREST:
        return None
    return int((amount * _MICROS).to_integral_value(ROUND_CEILING))


def tool_call(call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    """A call of a tool in our shape: `arguments` is JSON text, whether it came as text or as an object."""
    said = arguments if isinstance(arguments, str) else json.dumps(arguments if arguments is not None else {})
    return {"id": text(call_id), "name": text(name), "arguments": said}


def lines(texts: Iterable[Any]) -> str:
    """The parts of a text, put together again."""
    return "".join(text(part) for part in texts)


def structured(result: Result) -> Result | None:
    """The result with its text parsed as the JSON that was asked for; None where it is none.

    Some models put a fence around it. An answer that calls tools has no JSON yet.
    """
    if not result.text and result.tool_calls:
        return result
    fenced = _FENCE.fullmatch(result.text)
    try:
        said = fenced[1] if fenced else result.text
        return replace(result, structured=json.loads(said, parse_constant=_no_number, parse_float=_finite))
    except (ValueError, RecursionError):
        return None


def _no_number(word: str) -> Any:
    """`NaN` and `Infinity` are Python's, not JSON's: who reads the stored result could not."""
    raise ValueError(word)


def _finite(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _no_number(digits)


def says_something(result: Result) -> bool:
    """Whether anything came that was paid for or can be shown."""
    usage = result.usage
    return bool(result.text or result.tool_calls or result.media or usage.input_tokens or usage.output_tokens)
