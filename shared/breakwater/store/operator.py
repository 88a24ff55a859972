"""What may only operators write? Keys and their list, owners' settings, and the audit, in the control table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from breakwater.domain.audit import Entry, entry_of
from breakwater.domain.errors import StoreUnavailable
from breakwater.domain.records import ApiKey
from breakwater.store.client import CONDITION_FAILED, TRANSACTION_CANCELLED, answered
from breakwater.store.items import META
from breakwater.store.wire import from_wire, to_wire

_ABSENT = "attribute_not_exists(pk)"


def key_of(plain: Mapping[str, Any]) -> ApiKey:
    """An item as a key's record."""
    known = {name: plain[name] for name in ApiKey.__dataclass_fields__ if name in plain}
    return ApiKey(**{**known, "scopes": frozenset(plain.get("scopes", ()))})


def key_items(key: ApiKey) -> tuple[dict[str, Any], dict[str, Any]]:
    """A key's record under its hash, and its line in the list of keys."""
    plain = {name: value for name in ApiKey.__dataclass_fields__ if (value := getattr(key, name)) is not None}
    plain["scopes"] = sorted(key.scopes)
    return {**plain, "pk": f"KEY#{key.key_hash}", "sk": META}, {**plain, "pk": "KEYS", "sk": _listed(key)}


def _listed(key: ApiKey) -> str:
    return f"{key.owner_key}#{key.key_id}"


class OperatorTable:
    """`operator_ports.OperatorStore` over the control table."""

    def __init__(self, client: Any, table: str) -> None:
        self._client, self._table = client, table

    def put_audit(self, entry: Entry) -> bool:
        """Put if absent."""
        item = {"pk": f"AUDIT#{entry.month}", "sk": entry.sk, **entry.data()}
        try:
            with answered(StoreUnavailable, CONDITION_FAILED):
                self._client.put_item(TableName=self._table, Item=to_wire(item), ConditionExpression=_ABSENT)
        except ClientError:
            return False
        return True

    def audit(self, month: str, limit: int, cursor: str | None = None) -> tuple[list[Entry], str | None]:
        """Entries of a month, newest first; the cursor is the last key seen."""
        start = {"ExclusiveStartKey": to_wire({"pk": f"AUDIT#{month}", "sk": cursor})} if cursor else {}
        with answered():
            page = self._client.query(
                TableName=self._table,
                ConsistentRead=True,
                ScanIndexForward=False,
                Limit=limit,
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues=to_wire({":pk": f"AUDIT#{month}"}),
                **start,
            )
        last = page.get("LastEvaluatedKey")
        return [entry_of(from_wire(item)) for item in page["Items"]], str(from_wire(last)["sk"]) if last else None

    def put_api_key(self, key: ApiKey) -> None:
        """The record and its line in the list, both or none. Raises `StoreUnavailable` when the hash is there."""
        puts = [
            {"Put": {"TableName": self._table, "Item": to_wire(item), "ConditionExpression": _ABSENT}}
            for item in key_items(key)
        ]
        with answered():
            self._client.transact_write_items(TransactItems=puts)

    def api_keys(self, owner_key: str | None = None) -> list[ApiKey]:
        """Listed keys by owner; revoked ones too."""
        found: list[ApiKey] = []
        start: Mapping[str, Any] | None = None
        while True:
            with answered():
                page = self._client.query(
                    TableName=self._table,
                    ConsistentRead=True,
                    KeyConditionExpression="pk = :pk AND begins_with(sk, :prefix)" if owner_key else "pk = :pk",
                    ExpressionAttributeValues=to_wire(
                        {":pk": "KEYS", **({":prefix": f"{owner_key}#"} if owner_key else {})}
                    ),
                    **({"ExclusiveStartKey": start} if start else {}),
                )
            found += [key_of(from_wire(item)) for item in page["Items"]]
            start = page.get("LastEvaluatedKey")
            if start is None:
                return found

    def revoke_api_key(self, key: ApiKey, at: int) -> bool:
        """Record and line together; False when it was revoked before."""
        keys = ({"pk": f"KEY#{key.key_hash}", "sk": META}, {"pk": "KEYS", "sk": _listed(key)})
        updates = [
            {
                "Update": {
                    "TableName": self._table,
                    "Key": to_wire(one),
                    "UpdateExpression": "SET revoked_at = :at",
                    "ConditionExpression": "attribute_exists(pk) AND attribute_not_exists(revoked_at)",
                    "ExpressionAttributeValues": to_wire({":at": at}),
                }
            }
            for one in keys
        ]
        try:
            with answered(StoreUnavailable, TRANSACTION_CANCELLED):
                self._client.transact_write_items(TransactItems=updates)
        except ClientError:
            return False
        return True

    def owner_now(self, owner_key: str) -> Mapping[str, Any]:
        """An owner's settings as they stand."""
        with answered():
            item = self._client.get_item(
                TableName=self._table,
                Key=to_wire({"pk": f"OWNER#{owner_key}", "sk": "CONFIG"}),
                ConsistentRead=True,
            ).get("Item")
        return {name: value for name, value in from_wire(item or {}).items() if name not in ("pk", "sk")}

    def put_owner(self, owner_key: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        """An owner's settings under a revision of their own."""
        rev = int(before.get("rev", 0))
        settings = {name: value for name, value in after.items() if name not in ("pk", "sk")}
        item = {**settings, "pk": f"OWNER#{owner_key}", "sk": "CONFIG", "rev": rev + 1}
        seen = {"ExpressionAttributeNames": {"#rev": "rev"}, "ExpressionAttributeValues": to_wire({":rev": rev})}
        try:
            with answered(StoreUnavailable, CONDITION_FAILED):
                self._client.put_item(
                    TableName=self._table,
                    Item=to_wire(item),
                    ConditionExpression="#rev = :rev" if before.get("rev") else "attribute_not_exists(#rev)",
                    **(seen if before.get("rev") else {"ExpressionAttributeNames": {"#rev": "rev"}}),
                )
        except ClientError:
            return False
        return True
