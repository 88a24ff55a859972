"""How is a line read where one owner's jobs could hide another's, and how long is it? By indexes sorted by owner.

The `turns` index holds the same waiters as `ready`, sorted by the owner's short name and then by rank. The `standing`
index holds the jobs of a lane that wait to be worked on, for whatever reason, sorted by owner and then by age; only
jobs that are counted are in it. Both are derived from META like every index, so there is no list of owners and no
counter to keep: nothing leaks and nothing is to heal after a crash.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from breakwater.domain.release import turn_name
from breakwater.domain.states import Lane
from breakwater.ports import Backlog, Waiter
from breakwater.store.client import answered
from breakwater.store.wire import from_wire, to_wire

_RANK_DIGITS = 14
_BEHIND = "#~"  # sorts behind every rank of an owner and before the next owner


class LineTable:
    """Waiters by owner, and how many jobs stand where, in the jobs table."""

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

    def backlog(self, lane: Lane, owner_key: str | None, most: int) -> Backlog:
        """A count of at most `most` keys; where there are as many, one read more for the age of the first."""
        asked = _standing(lane, owner_key)
        depth = 0
        start: Mapping[str, Any] | None = None
        while depth < most:
            more = {"ExclusiveStartKey": start} if start else {}
            with answered():
                page = self._client.query(
                    TableName=self._table,
                    Select="COUNT",
                    Limit=most - depth,
                    **asked,
                    **more,
                )
            depth += page["Count"]
            start = page.get("LastEvaluatedKey")
            if start is None:
                return Backlog(depth) if depth < most else self._full(asked, depth)
        return self._full(asked, depth)

    def _full(self, asked: Mapping[str, Any], depth: int) -> Backlog:
        with answered():
            first = self._client.query(TableName=self._table, Limit=1, **asked)["Items"]
        return Backlog(depth, int(from_wire(first[0])["standing_place"].partition("#")[2]) if first else None)


def _standing(lane: Lane, owner_key: str | None) -> dict[str, Any]:
    condition, values = "standing_lane = :lane", {":lane": lane.value}
    if owner_key is not None:
        condition = f"{condition} AND begins_with(standing_place, :owner)"
        values = {**values, ":owner": f"{turn_name(owner_key)}#"}
    return {
        "IndexName": "standing",
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": to_wire(values),
    }


def _waiter(plain: Mapping[str, Any]) -> Waiter:
    owner, _, place = plain["ready_turn"].partition("#")
    return Waiter(plain["pk"].split("#", 1)[1], int(place[:_RANK_DIGITS]), owner)
