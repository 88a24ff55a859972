"""How does a plain value travel to DynamoDB, and back?

Not boto3's own pair: that one brings all of boto3 into every start, and goes through decimal numbers. Stored numbers
are integers here; a float is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def to_wire(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values in DynamoDB's typed form. Raises `TypeError` for what it can't keep exactly."""
    return {name: _typed(value) for name, value in plain.items()}


def from_wire(item: Mapping[str, Any]) -> dict[str, Any]:
    """DynamoDB's typed form as plain values; numbers are integers, nothing else is stored."""
    return {name: _plain(value) for name, value in item.items()}


def _typed(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"S": value}
    if value is None or isinstance(value, bool):
        return {"NULL": True} if value is None else {"BOOL": value}
    if isinstance(value, int):
        return {"N": str(int(value))}
    if isinstance(value, Mapping):
        return {"M": {name: _typed(one) for name, one in value.items()}}
    if isinstance(value, list | tuple):
        return {"L": [_typed(one) for one in value]}
    if isinstance(value, bytes | bytearray):
        return {"B": bytes(value)}
    raise TypeError(f"DynamoDB can't keep a {type(value).__name__} here")


def _plain(typed: Mapping[str, Any]) -> Any:
    kind, value = next(iter(typed.items()))
    reader = _READERS.get(kind)
    return value if reader is None else reader(value)  # S, BOOL and B are what they say


def _integer(text: str) -> int:
    """Numbers of ours are integers; what somebody else put there may be written otherwise."""
    try:
        return int(text)
    except ValueError:
        from decimal import Decimal  # noqa: PLC0415 - hardly ever needed

        return int(Decimal(text))


_READERS: Mapping[str, Any] = {
    "N": _integer,
    "M": from_wire,
    "L": lambda values: [_plain(one) for one in values],
    "NULL": lambda _: None,
    "SS": set,
    "NS": lambda texts: {_integer(one) for one in texts},
    "BS": set,
}
