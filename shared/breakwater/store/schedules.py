"""Where does each schedule stand? One item a schedule: the last window dealt with, and the job it made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from breakwater.domain.errors import StoreUnavailable
from breakwater.ports import Scheduled
from breakwater.store import conditions as when
from breakwater.store.client import CONDITION_FAILED, answered
from breakwater.store.items import META
from breakwater.store.wire import from_wire, to_wire


def schedule_attributes(state: Scheduled) -> dict[str, Any]:
    """Where a schedule stands, as an item."""
    item = {name: value for name in Scheduled.__dataclass_fields__ if (value := getattr(state, name)) is not None}
    return {**item, "pk": f"SCHEDULE#{state.name}", "sk": META}


def scheduled_of(item: Mapping[str, Any]) -> Scheduled:
    """An item as where a schedule stands."""
    plain = from_wire(item)
    return Scheduled(**{name: plain[name] for name in Scheduled.__dataclass_fields__ if name in plain})


class ScheduleTable:
    """Where schedules stand, in the jobs table."""

    _client: Any
    _table: str

    def scheduled(self, name: str) -> Scheduled | None:
        """One schedule, read consistently."""
        with answered():
            item = self._client.get_item(
                TableName=self._table,
                Key=to_wire({"pk": f"SCHEDULE#{name}", "sk": META}),
                ConsistentRead=True,
            ).get("Item")
        return scheduled_of(item) if item else None

    def put_scheduled(self, before: Scheduled | None, after: Scheduled) -> bool:
        """Condition: `rev` as read, or absent."""
        rev = before.rev if before else 0
        condition = when.absent() if before is None else when.rev_as_read(rev)
        more: dict[str, Any] = {}
        if before is not None:
            more["ExpressionAttributeNames"] = {"#rev": "rev"}
            more["ExpressionAttributeValues"] = to_wire(condition.values)
        try:
            with answered(StoreUnavailable, CONDITION_FAILED):
                self._client.put_item(
                    TableName=self._table,
                    Item=to_wire({**schedule_attributes(after), "rev": rev + 1}),
                    ConditionExpression=condition.text,
                    **more,
                )
        except ClientError:
            return False
        return True
