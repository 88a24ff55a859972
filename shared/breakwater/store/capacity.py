"""How are limits kept? One item per slot in use, one number per rate, one index of who waits.

Every write is conditional on what it believes to see, and a condition that fails costs the caller nothing but another
look: a slot is taken once, freed only by its own lease epoch, and a rate never promises more than its burst.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from breakwater.domain.errors import StoreUnavailable
from breakwater.domain.job import SlotRef
from breakwater.domain.slots import Slot
from breakwater.ports import Waiter
from breakwater.store import conditions as when
from breakwater.store import statements
from breakwater.store.client import CONDITION_FAILED, answered, old_item
from breakwater.store.items import META, RANK_UNIT
from breakwater.store.rates import RateTable
from breakwater.store.wire import from_wire, to_wire


class CapacityTable(RateTable):
    """Slots, waiters and rates in the jobs table."""

    _client: Any
    _table: str

    def slots(self, scope: str) -> list[Slot]:
        """The numbers in use, read consistently."""
        found: list[Slot] = []
        start: Mapping[str, Any] | None = None
        while True:
            more = {"ExclusiveStartKey": start} if start else {}
            with answered():
                page = self._client.query(
                    TableName=self._table,
                    ConsistentRead=True,
                    KeyConditionExpression="pk = :pk",
                    ExpressionAttributeValues=to_wire({":pk": f"SLOT#{scope}"}),
                    **more,
                )
            found += [_slot_of(scope, item) for item in page["Items"]]
            start = page.get("LastEvaluatedKey")
            if start is None:
                return found

    def take_slot(self, slot: Slot, instead_of: Slot | None = None) -> bool:
        """Condition: the number is free, or held as read by somebody who is gone."""
        condition = when.absent() if instead_of is None else _held(instead_of)
        values = {"ExpressionAttributeValues": to_wire(condition.values)} if condition.values else {}
        try:
            with answered(StoreUnavailable, CONDITION_FAILED):
                self._client.put_item(
                    TableName=self._table,
                    Item=to_wire(_slot_attributes(slot)),
                    ConditionExpression=condition.text,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **values,
                )
        except ClientError as error:
            item = old_item(error)
            return item is not None and _slot_of(slot.scope, item) == slot  # our own first try landed
        return True

    def keep_slot(self, slot: Slot, verify_at: int) -> bool:
        """It is in use: ask again later."""
        condition = _held(slot)
        try:
            with answered(StoreUnavailable, CONDITION_FAILED):
                self._client.update_item(
                    TableName=self._table,
                    Key=_slot_key(slot.scope, slot.n),
                    UpdateExpression="SET verify_at = :verify",
                    ConditionExpression=condition.text,
                    ExpressionAttributeValues=to_wire({":verify": verify_at, **condition.values}),
                )
        except ClientError:
            return False
        return True

    def free_slot(self, scope: str, n: int, job_id: str, epoch: int) -> bool:
        """Condition: this job holds it for this epoch; whoever took it since keeps it."""
        try:
            with answered(StoreUnavailable, CONDITION_FAILED):
                self._client.delete_item(
                    TableName=self._table,
                    Key=_slot_key(scope, n),
                    ConditionExpression=when.HELD_AS_READ,
                    ExpressionAttributeValues=to_wire({":held_by": job_id, ":held_epoch": epoch}),
                )
        except ClientError:
            return False
        return True

    def take_slots(self, slots: Sequence[Slot]) -> list[bool]:
        """Condition of each: the number is free. A repeat of a try that landed is refused, too: `take_slot` tells."""
        if len(slots) == 1:
            return [self.take_slot(slots[0])]
        return statements.run(self._client, [statements.insert(self._table, _slot_attributes(one)) for one in slots])

    def free_slots(self, slots: Sequence[SlotRef], job_id: str, epoch: int) -> list[SlotRef]:
        """Condition of each: this job holds it for this epoch; whoever took it since keeps it.

        Deleting what is not there is no error to PartiQL, so a number that was free already counts as freed.
        """
        if len(slots) == 1:
            return [one for one in slots if self.free_slot(one.scope, one.n, job_id, epoch)]
        believed = {"job_id": job_id, "epoch": epoch}
        keys = [from_wire(_slot_key(one.scope, one.n)) for one in slots]
        done = statements.run(self._client, [statements.delete(self._table, key, believed) for key in keys])
        return [one for one, freed in zip(slots, done, strict=True) if freed]

    def held_slots(self, slots: Sequence[SlotRef], job_id: str, epoch: int) -> list[SlotRef]:
        """One read for all: a condition that fails would cost a write each."""
        if not slots:
            return []
        keys = [_slot_key(one.scope, one.n) for one in slots]
        by_key = {(key["pk"]["S"], key["sk"]["S"]): one for key, one in zip(keys, slots, strict=True)}
        with answered():
            answer = self._client.batch_get_item(RequestItems={self._table: {"Keys": keys, "ConsistentRead": True}})
        found = [from_wire(item) for item in answer["Responses"].get(self._table, ())]
        held = [one for one in found if (one["job_id"], one["epoch"]) == (job_id, epoch)]
        unread = [from_wire(key) for key in answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", ())]
        return [by_key[one["pk"], one["sk"]] for one in (*held, *unread)]

    def waiters(self, scope: str, limit: int) -> list[Waiter]:
        """The first in line; the index is read eventually."""
        with answered():
            page = self._client.query(
                TableName=self._table,
                IndexName="ready",
                Limit=limit,
                KeyConditionExpression="ready_scope = :scope",
                ExpressionAttributeValues=to_wire({":scope": scope}),
            )
        plain = [from_wire(item) for item in page["Items"]]
        return [Waiter(one["pk"].split("#", 1)[1], one["ready_rank"] // RANK_UNIT) for one in plain]

    def put_latest(self, key: str, at: int, data: Mapping[str, Any]) -> bool:
        """Condition: nothing there, or something older."""
        condition = when.absent() | when.Condition(when.OLDER, {":newer": at})
        try:
            with answered(StoreUnavailable, CONDITION_FAILED):
                self._client.put_item(
                    TableName=self._table,
                    Item=to_wire({"pk": f"LATEST#{key}", "sk": META, "noted_at": at, "data": dict(data)}),
                    ConditionExpression=condition.text,
                    ExpressionAttributeValues=to_wire(condition.values),
                )
        except ClientError:
            return False
        return True

    def latest(self, key: str) -> Mapping[str, Any] | None:
        """The newest fact under a key, read eventually: it is a moment old by its nature."""
        with answered():
            item = self._client.get_item(
                TableName=self._table,
                Key=to_wire({"pk": f"LATEST#{key}", "sk": META}),
            ).get("Item")
        if not item:
            return None
        plain = from_wire(item)
        return {**plain["data"], "at": plain["noted_at"]}


def _held(slot: Slot) -> when.Condition:
    holder = when.Condition(when.HELD_AS_READ, {":held_by": slot.job_id, ":held_epoch": slot.epoch})
    return holder & when.Condition(when.VERIFY_AS_READ, {":read_verify": slot.verify_at})


def _slot_key(scope: str, n: int) -> dict[str, Any]:
    return {"pk": {"S": f"SLOT#{scope}"}, "sk": {"S": f"{n:05d}"}}


def _slot_attributes(slot: Slot) -> dict[str, Any]:
    plain = {
        "job_id": slot.job_id,
        "epoch": slot.epoch,
        "taken_at": slot.taken_at,
        "verify_at": slot.verify_at,
        "stamp": slot.stamp,
        "owner": slot.owner,
    }
    return {"pk": f"SLOT#{slot.scope}", "sk": f"{slot.n:05d}", **plain}


def _slot_of(scope: str, item: Mapping[str, Any]) -> Slot:
    plain = from_wire(item)
    return Slot(
        scope=scope,
        n=int(plain["sk"]),
        job_id=plain["job_id"],
        epoch=plain["epoch"],
        taken_at=plain["taken_at"],
        verify_at=plain["verify_at"],
        stamp=plain["stamp"],
        owner=plain.get("owner", ""),
    )
