"""What does DynamoDB charge for a request? Its published rules, over the items before and after.

A write costs a unit for each started KB of the larger of both items, and as much for each index entry that comes, goes
or moves (two for a move); a write that changes nothing of an index costs nothing there. A condition that fails costs
as if it had written. A consistent read costs a unit for each started 4 KB, an eventual one half of that; transactions
cost twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

Item = Mapping[str, Mapping[str, Any]]
Keys = tuple[str, str]
_KB = 1024


def item_size(item: Item) -> int:
    """Bytes as DynamoDB counts them: names and values in UTF-8, numbers by their digits."""
    return sum(len(name.encode()) + _value_size(value) for name, value in item.items())


def _value_size(typed: Mapping[str, Any]) -> int:
    kind, value = next(iter(typed.items()))
    if kind == "S":
        return len(value.encode())
    if kind == "N":
        return math.ceil(len(value.strip("-").strip("0")) / 2) + 1
    if kind == "B":
        return len(value)
    if kind == "M":
        return 3 + sum(1 + len(name.encode()) + _value_size(one) for name, one in value.items())
    if kind == "L":
        return 3 + sum(1 + _value_size(one) for one in value)
    return 1


def write_units(before: Item, after: Item, indexes: Iterable[Keys]) -> int:
    """The table's unit or units, and those of every index whose entry moves."""
    size = max(item_size(before), item_size(after))
    table = max(1, math.ceil(size / _KB))
    return table + sum(_index_units(before, after, keys) for keys in indexes)


def _index_units(before: Item, after: Item, keys: Keys) -> int:
    old, new = ([item.get(key) for key in keys] for item in (before, after))
    there, stays = None not in old, None not in new
    return 0 if there and old == new else int(there) + int(stays)


def read_units(size: int, *, consistent: bool) -> float:
    """One read of so many bytes."""
    units = max(1, math.ceil(size / (4 * _KB)))
    return float(units) if consistent else units / 2
