"""How is a rate kept? One number a rate: the moment at which everything reserved so far will have been earned (GCRA).

Two conditional writes cover both cases, so that many workers need no loop: either something is reserved ahead of now
and there is room for more, or nothing is and the count starts at now. Times are microseconds.
"""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from breakwater.domain.errors import StoreUnavailable
from breakwater.store import conditions as when
from breakwater.store.client import CONDITION_FAILED, answered, old_item
from breakwater.store.items import META
from breakwater.store.wire import from_wire, to_wire

_TRIES = 3


class RateTable:
    """Rates in the jobs table."""

    _client: Any
    _table: str

    def spend_rate(self, key: str, now: int, cost: int, burst: int) -> int | None:
        """Reserve; None when it is ours, else when to ask again."""
        standing: int | None = None
        for _ in range(_TRIES):
            standing = self._reserve(key, now, cost, burst)
            if standing is None:
                return None
            if standing >= now:
                return max(now, standing + cost - burst) if cost <= burst else standing
            if self._begin(key, now, cost, standing):
                return None
        return now + cost

    def _reserve(self, key: str, now: int, cost: int, burst: int) -> int | None:
        """Reserve behind what is reserved already; None when that worked, else the number that stood against it."""
        try:
            with answered(StoreUnavailable, CONDITION_FAILED):
                self._client.update_item(
                    TableName=self._table,
                    Key=_key(key),
                    UpdateExpression="ADD reserved_until :cost",
                    ConditionExpression="reserved_until >= :now AND reserved_until <= :room",
                    ExpressionAttributeValues=to_wire({":cost": cost, ":now": now, ":room": now + burst - cost}),
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ClientError as error:
            item = old_item(error)
            return int(from_wire(item)["reserved_until"]) if item else -1
        return None

    def _begin(self, key: str, now: int, cost: int, read: int) -> bool:
        """Nothing is reserved ahead of now: begin anew. Condition: that is still so."""
        condition = when.absent() if read < 0 else when.Condition("reserved_until = :read", {":read": read})
        values = {":until": now + cost, **condition.values}
        try:
            with answered(StoreUnavailable, CONDITION_FAILED):
                self._client.update_item(
                    TableName=self._table,
                    Key=_key(key),
                    UpdateExpression="SET reserved_until = :until",
                    ConditionExpression=condition.text,
                    ExpressionAttributeValues=to_wire(values),
                )
        except ClientError:
            return False
        return True

    def rate(self, key: str) -> int | None:
        """Until when everything reserved will have been earned; only a hint, since others reserve at the same time."""
        with answered():
            item = self._client.get_item(TableName=self._table, Key=_key(key)).get("Item")
        return int(from_wire(item)["reserved_until"]) if item else None

    def adjust_rate(self, key: str, by: int) -> None:
        """Correct what was reserved; never creates a rate."""
        try:
            with answered(StoreUnavailable, CONDITION_FAILED):
                self._client.update_item(
                    TableName=self._table,
                    Key=_key(key),
                    UpdateExpression="ADD reserved_until :by",
                    ConditionExpression=when.EXISTS,
                    ExpressionAttributeValues=to_wire({":by": by}),
                )
        except ClientError:
            return


def _key(key: str) -> dict[str, Any]:
    return {"pk": {"S": f"RATE#{key}"}, "sk": {"S": META}}
