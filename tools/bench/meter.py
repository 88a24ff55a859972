"""What goes over the wire? Hooks in botocore clients that count requests and DynamoDB's units.

The emulator reports no true consumption, so the units are worked out from the items themselves, read before and after
each write through a second client that nobody counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tools.bench.units import Item, Keys, item_size, read_units, write_units

INDEXES: tuple[Keys, ...] = (
    ("due_shard", "due_at"),
    ("ready_scope", "ready_rank"),
    ("ready_scope", "ready_turn"),
    ("standing_lane", "standing_place"),
    ("owner_shard", "created_at"),
    ("attention_shard", "attention_at"),
)
_KEYS_BYTES = 130  # of one entry of an index that has keys only
_WRITES = ("PutItem", "UpdateItem", "DeleteItem")


@dataclass
class Meter:
    """Counts since the last `take`."""

    peek: Any  # a client nobody counts
    requests: Counter[str] = field(default_factory=Counter)
    writes: float = 0
    reads: float = 0
    log: list[str] = field(default_factory=list)
    largest: int = 0  # of META, in bytes
    muted: bool = False
    _before: list[tuple[str, Item, Item]] = field(default_factory=list)

    def attach(self, client: Any) -> Any:
        """Count what this client sends."""
        service = client.meta.service_model.service_id.hyphenize()
        client.meta.events.register(f"before-parameter-build.{service}", self._plan)
        client.meta.events.register(f"before-send.{service}", self._sent)
        client.meta.events.register(f"after-call.{service}", self._done)
        return client

    def count(self, name: str, number: int = 1) -> None:
        """A request that is made elsewhere."""
        if self.muted:
            return
        self.requests[name] += number
        self.log += [name] * number

    def _plan(self, params: Mapping[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        context["bench"] = dict(params)
        self._before = [(table, key, self._item(table, key)) for table, key in _written(model.name, params)]

    def _item(self, table: str, key: Item) -> Item:
        found: Item = self.peek.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item", {})
        return found

    def _sent(self, request: Any, event_name: str, **_: Any) -> None:
        if self.muted:
            return
        service, operation = event_name.split(".")[1:3]
        self.requests[f"{service} {operation}"] += 1
        del request

    def _done(self, parsed: Mapping[str, Any], model: Any, context: Mapping[str, Any], **_: Any) -> None:
        params = context["bench"]
        if self.muted:
            return
        twice = 2 if model.name == "TransactWriteItems" else 1
        spent = 0.0
        for table, key, before in self._before:
            after = self._item(table, key)
            spent += twice * write_units(before, after, INDEXES)
            if after.get("sk") == {"S": "META"} and after["pk"]["S"].startswith("JOB#"):
                self.largest = max(self.largest, item_size(after))
        self.writes += spent
        read = _read(model.name, params, parsed)
        self.reads += read
        self.log.append(f"{model.name} {_about(params)} w={spent:g} r={read:g}" + (" !" if "Error" in parsed else ""))
        self._before = []


def _written(operation: str, params: Mapping[str, Any]) -> Iterable[tuple[str, Item]]:
    if operation == "TransactWriteItems":
        for one in params["TransactItems"]:
            kind, inner = next(iter(one.items()))
            yield from _written(f"{kind}Item", inner)
    elif operation == "BatchExecuteStatement":
        for one in params["Statements"]:  # ours name the keys first
            yield one["Statement"].split('"')[1], dict(zip(("pk", "sk"), one["Parameters"], strict=False))
    elif operation in _WRITES:
        key = params.get("Key") or {name: params["Item"][name] for name in ("pk", "sk")}
        yield params["TableName"], key


def _read(operation: str, params: Mapping[str, Any], parsed: Mapping[str, Any]) -> float:
    consistent = bool(params.get("ConsistentRead"))
    if operation == "GetItem":
        return read_units(item_size(parsed.get("Item", {})), consistent=consistent)
    if operation == "Query" and params.get("Select") == "COUNT":
        return read_units(int(parsed.get("Count", 0)) * _KEYS_BYTES, consistent=consistent)
    if operation == "Query":
        return read_units(sum(map(item_size, parsed.get("Items", []))), consistent=consistent)
    if operation == "BatchGetItem":
        return sum(map(_batch_units, params["RequestItems"].values(), parsed.get("Responses", {}).values()))
    return 0.0


def _batch_units(wanted: Mapping[str, Any], found: Sequence[Item]) -> float:
    """Each key costs, whether something stands there or not."""
    consistent = bool(wanted.get("ConsistentRead"))
    sizes = [*map(item_size, found), *[0] * (len(wanted["Keys"]) - len(found))]
    return sum(read_units(one, consistent=consistent) for one in sizes)


def _about(params: Mapping[str, Any]) -> str:
    where = params.get("Key") or params.get("Item") or {}
    names = [next(iter(where[name].values())) for name in ("pk", "sk") if name in where]
    if names:
        return " ".join(one.split("#")[0] + ("#…" if "#" in one else "") for one in names)
    return str(params.get("IndexName") or params.get("ExpressionAttributeValues", {}).get(":pk", {}).get("S", ""))
