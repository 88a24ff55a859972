"""Who may do what, and which switches are thrown? The control table, read through a short cache.

Only the operator's roles may write it. A refresh that fails serves what was known: a blip of one table must not turn
every caller away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from breakwater.domain.errors import StoreUnavailable
from breakwater.domain.records import ApiKey
from breakwater.store import conditions as when
from breakwater.store.client import CONDITION_FAILED, answered
from breakwater.store.items import META
from breakwater.store.wire import from_wire, to_wire

OWNER_CACHE_MS = 60_000
SWITCH_CACHE_MS = 5_000


class Cache:
    """Values by key for a while; serves a stale one when a refresh fails."""

    def __init__(self, monotonic: Callable[[], int]) -> None:
        self._monotonic = monotonic
        self._kept: dict[str, tuple[int, Any]] = {}

    def get(self, key: str, keep_ms: int, load: Callable[[], Any]) -> Any:
        """The cached value, or a fresh one. Raises what `load` raises only when nothing was ever known."""
        now = self._monotonic()
        kept = self._kept.get(key)
        if kept is not None and kept[0] > now:
            return kept[1]
        try:
            value = load()
        except StoreUnavailable:
            if kept is None:
                raise
            value = kept[1]
        self._kept[key] = (now + keep_ms, value)
        return value


class ControlTable:
    """`ports.Control` over the second table."""

    def __init__(self, client: Any, table: str, monotonic: Callable[[], int]) -> None:
        self._client, self._table, self._cache = client, table, Cache(monotonic)

    def api_key(self, key_hash: str) -> ApiKey | None:
        """The record behind a key's hash; not cached here, the gateway caches the authorizer's answer."""
        plain = self._item(f"KEY#{key_hash}", META)
        if not plain:
            return None
        known = {name: plain[name] for name in ApiKey.__dataclass_fields__ if name in plain}
        return ApiKey(**{**known, "scopes": frozenset(plain.get("scopes", ()))})

    def owner(self, owner_key: str) -> Mapping[str, Any]:
        """An owner's settings."""
        found: Mapping[str, Any] = self._cache.get(
            f"owner {owner_key}",
            OWNER_CACHE_MS,
            lambda: self._item(f"OWNER#{owner_key}", "CONFIG"),
        )
        return found

    def switches(self) -> Mapping[str, Any]:
        """The switches in force."""
        found: Mapping[str, Any] = self._cache.get("switches", SWITCH_CACHE_MS, lambda: self._item("SWITCH", META))
        return found

    def switches_now(self) -> Mapping[str, Any]:
        """The switches as they stand, past the cache."""
        return self._item("SWITCH", META)

    def put_switches(self, rev: int, switches: Mapping[str, Any]) -> bool:
        """Replace all switches. Condition: `rev` as read, or nothing there yet."""
        item = {**switches, "pk": "SWITCH", "sk": META, "rev": rev + 1}
        condition = when.rev_as_read(rev) if rev else when.absent()
        more: dict[str, Any] = {}
        if rev:
            more = {
                "ExpressionAttributeNames": {"#rev": "rev"},
                "ExpressionAttributeValues": to_wire(condition.values),
            }
        try:
            with answered(StoreUnavailable, CONDITION_FAILED):
                self._client.put_item(
                    TableName=self._table,
                    Item=to_wire(item),
                    ConditionExpression=condition.text,
                    **more,
                )
        except ClientError:
            return False
        return True

    def _item(self, pk: str, sk: str) -> dict[str, Any]:
        with answered():
            item = self._client.get_item(
                TableName=self._table,
                Key=to_wire({"pk": pk, "sk": sk}),
                ConsistentRead=True,
            ).get("Item")
        return from_wire(item) if item else {}
