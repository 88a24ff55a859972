"""How is a line read where one owner's jobs could hide another's? Owner by owner, skipping what one owner has in line.

The `turns` index holds the same waiters as `ready`, sorted by the owner's short name and then by rank. It is derived
from META like every index, so there is no list of owners to keep: nothing to heal after a crash.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from breakwater.ports import Waiter
from breakwater.store.client import answered
from breakwater.store.wire import from_wire, to_wire

_RANK_DIGITS = 14
_BEHIND = "#~"  # sorts behind every rank of an owner and before the next owner


class LineTable:
    """Waiters by owner, in the jobs table."""

    _client: Any
    _table: str

    def waiters_by_owner(self, scope: str, after: str, limit: int) -> tuple[list[Waiter], bool]:
        """One page of the line behind an owner; the index is read eventually."""
        condition, values = "ready_scope = :scope", {":scope": scope}
        if after:
            condition, values = f"{condition} AND ready_turn > :after", {**values, ":after": after + _BEHIND}
        with answered():
            page = self._client.query(
                TableName=self._table,
                IndexName="turns",
                Limit=limit,
                KeyConditionExpression=condition,
                ExpressionAttributeValues=to_wire(values),
            )
        return [_waiter(from_wire(item)) for item in page["Items"]], "LastEvaluatedKey" in page


def _waiter(plain: Mapping[str, Any]) -> Waiter:
    owner, _, place = plain["ready_turn"].partition("#")
    return Waiter(plain["pk"].split("#", 1)[1], int(place[:_RANK_DIGITS]), owner)
