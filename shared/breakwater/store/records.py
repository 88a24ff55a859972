"""Where do deliveries, route states and usage stand, and who is due?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from breakwater.domain.errors import StoreUnavailable
from breakwater.domain.records import Delivery, ProviderJob, RouteState
from breakwater.ports import DueItem
from breakwater.store import conditions as when
from breakwater.store.client import CONDITION_FAILED, TRANSACTION_CANCELLED, answered, old_item
from breakwater.store.items import (
    META,
    delivery_attributes,
    delivery_of,
    due_name,
    provider_job_attributes,
    provider_job_of,
    route_attributes,
    route_of,
)
from breakwater.store.wire import from_wire, to_wire

_KINDS = {"JOB": "job", "DELIVERY": "delivery", "ROUTE": "route", "BATCH": "batch"}


class RecordTable:
    """Everything in the jobs table that is not a job."""

    def __init__(self, client: Any, table: str, new_id: Callable[[], str]) -> None:
        self._client, self._table, self._new_id = client, table, new_id

    def due(
        self,
        shard: int,
        until: int,
        limit: int,
        cursor: Mapping[str, Any] | None = None,
        *,
        newest: bool = False,
        again: bool = False,
    ) -> tuple[list[DueItem], Mapping[str, Any] | None]:
        """Due items of one shard, earliest (or latest) first, `again`: those nudged before; read eventually."""
        more = {"ExclusiveStartKey": cursor} if cursor else {}
        with answered():
            page = self._client.query(
                TableName=self._table,
                IndexName="due",
                Limit=limit,
                ScanIndexForward=not newest,
                KeyConditionExpression="due_shard = :shard AND due_at <= :until",
                ExpressionAttributeValues=to_wire({":shard": f"{due_name(again=again)}#{shard}", ":until": until}),
                **more,
            )
        found = [_due_item(from_wire(item)) for item in page["Items"]]
        return found, page.get("LastEvaluatedKey")

    def by_owner(self, owner_key: str, limit: int, cursor: str | None) -> tuple[list[str], str | None]:
        """Job ids, newest first. The cursor is `created_at` and id of the last one seen."""
        more: dict[str, Any] = {}
        if cursor:
            created, job_id = cursor.split(".", 1)
            more = {
                "ExclusiveStartKey": to_wire(
                    {
                        "pk": f"JOB#{job_id}",
                        "sk": META,
                        "owner_shard": owner_key,
                        "created_at": int(created),
                    }
                )
            }
        with answered():
            page = self._client.query(
                TableName=self._table,
                IndexName="owner",
                Limit=limit,
                ScanIndexForward=False,
                KeyConditionExpression="owner_shard = :owner",
                ExpressionAttributeValues=to_wire({":owner": owner_key}),
                **more,
            )
        ids = [from_wire(item)["pk"].split("#", 1)[1] for item in page["Items"]]
        last = page.get("LastEvaluatedKey")
        if last is None:
            return ids, None
        end = from_wire(last)
        return ids, f"{end['created_at']}.{end['pk'].split('#', 1)[1]}"

    def record_delivery(self, delivery: Delivery) -> Delivery | None:
        """Put if absent; what was there before, if anything."""
        try:
            with answered(StoreUnavailable, CONDITION_FAILED):
                self._client.put_item(
                    TableName=self._table,
                    Item=to_wire(delivery_attributes(delivery)),
                    ConditionExpression=when.absent().text,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ClientError as error:
            item = old_item(error)
            return delivery_of(item) if item else None
        return None

    def delivery(self, delivery_id: str) -> Delivery | None:
        """One delivery, read consistently."""
        with answered():
            item = self._client.get_item(
                TableName=self._table,
                Key=_delivery_key(delivery_id),
                ConsistentRead=True,
            ).get("Item")
        return delivery_of(item) if item else None

    def update_delivery(self, before: Delivery, after: Delivery) -> bool:
        """Replace the item. Condition: `due_at` as read, not yet processed; never creates one."""
        condition = when.Condition(when.EXISTS) & when.Condition(when.NOT_PROCESSED)
        if before.due_at is not None:
            condition &= when.Condition(when.DUE_AS_READ, {":read_due": before.due_at})
        return self._replace_delivery(after, condition)

    def reopen_delivery(self, before: Delivery, after: Delivery) -> bool:
        """Put an unprocessed record in place of a processed one. Condition: `processed_at` as read."""
        return self._replace_delivery(
            after, when.Condition(when.PROCESSED_AS_READ, {":read_processed": before.processed_at})
        )

    def _replace_delivery(self, after: Delivery, condition: when.Condition) -> bool:
        try:
            with answered(StoreUnavailable, CONDITION_FAILED):
                self._client.put_item(
                    TableName=self._table,
                    Item=to_wire(delivery_attributes(after)),
                    ConditionExpression=condition.text,
                    **({"ExpressionAttributeValues": to_wire(condition.values)} if condition.values else {}),
                )
        except ClientError:
            return False
        return True

    def put_provider_job(self, known: ProviderJob) -> ProviderJob:
        """Put if absent; what stands there afterwards."""
        try:
            with answered(StoreUnavailable, CONDITION_FAILED):
                self._client.put_item(
                    TableName=self._table,
                    Item=to_wire(provider_job_attributes(known)),
                    ConditionExpression=when.absent().text,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ClientError as error:
            item = old_item(error)
            return provider_job_of(item) if item else known
        return known

    def provider_job(self, endpoint: str, provider_job_id: str) -> ProviderJob | None:
        """Whose a provider job is, read consistently."""
        with answered():
            item = self._client.get_item(
                TableName=self._table,
                Key={"pk": {"S": f"PROVIDER#{endpoint}#{provider_job_id}"}, "sk": {"S": META}},
                ConsistentRead=True,
            ).get("Item")
        return provider_job_of(item) if item else None

    def route(self, route_key: str) -> RouteState | None:
        """The state of a route."""
        with answered():
            item = self._client.get_item(
                TableName=self._table,
                Key=_route_key(route_key),
                ConsistentRead=True,
            ).get("Item")
        return route_of(item) if item else None

    def put_route(self, before: RouteState | None, after: RouteState) -> bool:
        """Condition: `rev` as read, or absent."""
        condition = when.absent() if before is None else when.rev_as_read(before.rev)
        stamp = self._new_id()
        plain = route_attributes(after) | {"rev": (before.rev if before else 0) + 1, "write_id": stamp}
        names = {"ExpressionAttributeNames": {"#rev": "rev"}} if before else {}
        values = {"ExpressionAttributeValues": to_wire(condition.values)} if condition.values else {}
        try:
            with answered(StoreUnavailable, CONDITION_FAILED):
                self._client.put_item(
                    TableName=self._table,
                    Item=to_wire(plain),
                    ConditionExpression=condition.text,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **names,
                    **values,
                )
        except ClientError as error:
            standing = old_item(error)  # a repeat of a write that landed meets itself, and has its consequences
            return standing is not None and standing.get("write_id") == {"S": stamp}
        return True

    def count_usage(self, line: Mapping[str, Any]) -> bool:
        """The line (put if absent) and its total in one transaction, so each execution counts exactly once.

        One total a workflow and period: what an owner spent in all is their sum, which a read makes and no write pays.
        """
        pk = f"OWNER#{line['owner_key']}"
        item = {"pk": pk, "sk": f"USAGE#{line['period']}#{line['execution_id']}", **line}
        put = {
            "Put": {
                "TableName": self._table,
                "Item": to_wire(item),
                "ConditionExpression": when.absent().text,
            }
        }
        add = self._add(pk, f"{line['period']}#{line['workflow']}", line)
        try:
            with answered(StoreUnavailable, TRANSACTION_CANCELLED):
                self._client.transact_write_items(TransactItems=[put, add])
        except ClientError as error:
            reasons = error.response.get("CancellationReasons") or [{}]
            if reasons[0].get("Code") == "ConditionalCheckFailed":
                return False
            raise StoreUnavailable("the usage transaction was cancelled") from error
        return True

    def _add(self, pk: str, total: str, line: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "Update": {
                "TableName": self._table,
                "Key": to_wire({"pk": pk, "sk": f"TOTAL#{total}"}),
                "UpdateExpression": "ADD executions :one, cost_micros :cost, usage_units :units, input_tokens :in, "
                "output_tokens :out",
                "ExpressionAttributeValues": to_wire(
                    {
                        ":one": 1,
                        ":cost": line.get("cost_micros", 0),
                        ":units": line.get("usage_units", 0),
                        ":in": line.get("input_tokens", 0),
                        ":out": line.get("output_tokens", 0),
                    }
                ),
            }
        }

    def usage(self, owner_key: str, prefix: str) -> list[Mapping[str, Any]]:
        """Totals of an owner whose name starts with `prefix`, in order."""
        with answered():
            page = self._client.query(
                TableName=self._table,
                KeyConditionExpression="pk = :pk AND begins_with(sk, :prefix)",
                ExpressionAttributeValues=to_wire({":pk": f"OWNER#{owner_key}", ":prefix": f"TOTAL#{prefix}"}),
            )
        return [from_wire(item) for item in page["Items"]]


def _due_item(plain: Mapping[str, Any]) -> DueItem:
    kind, _, item_id = plain["pk"].partition("#")
    return DueItem(_KINDS.get(kind, "unknown"), item_id, plain["due_at"])


def _delivery_key(delivery_id: str) -> dict[str, Any]:
    return {"pk": {"S": f"DELIVERY#{delivery_id}"}, "sk": {"S": META}}


def _route_key(route_key: str) -> dict[str, Any]:
    return {"pk": {"S": f"ROUTE#{route_key}"}, "sk": {"S": META}}
