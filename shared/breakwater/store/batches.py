"""Where does a replay of many stand? One item that moves under its revision, and lines that never change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from breakwater.domain.errors import StoreUnavailable
from breakwater.domain.records import Child
from breakwater.domain.replay_batch import Batch, BatchStatus, Ref
from breakwater.store import conditions as when
from breakwater.store.client import CONDITION_FAILED, answered
from breakwater.store.items import META, due_shard
from breakwater.store.jobs import under
from breakwater.store.wire import from_wire, to_wire

SHARD = "batch"


def batch_attributes(batch: Batch) -> dict[str, Any]:
    """A batch as an item: listed in `due` until it is over, and in `attention` for good."""
    item = {name: value for name in Batch.__dataclass_fields__ if (value := getattr(batch, name)) is not None}
    item |= {"status": batch.status.value, "open": [f"{one.job_id}|{one.generation}" for one in batch.open]}
    item |= {"pk": f"BATCH#{batch.id}", "sk": META, "attention_shard": SHARD, "attention_at": batch.created_at}
    return item | ({"due_shard": due_shard(batch.id)} if batch.due_at is not None else {})


def batch_of(item: Mapping[str, Any]) -> Batch:
    """An item as a batch."""
    plain = from_wire(item)
    known = {name: plain[name] for name in Batch.__dataclass_fields__ if name in plain}
    pairs = (one.rsplit("|", 1) for one in known["open"])
    open_ = tuple(Ref(job_id=job_id, generation=int(generation)) for job_id, generation in pairs)
    return Batch(**{**known, "status": BatchStatus(known["status"]), "open": open_})


def line_attributes(batch_id: str, line: Child, ttl: int | None) -> dict[str, Any]:
    """A line as an item."""
    item: dict[str, Any] = {"pk": f"BATCH#{batch_id}", "sk": line.sk, "data": dict(line.data)}
    return item | ({"ttl": ttl} if ttl is not None else {})


class BatchTable:
    """Batches and their lines in the jobs table."""

    _client: Any
    _table: str

    def batch(self, batch_id: str) -> Batch | None:
        """One batch, read consistently."""
        with answered():
            item = self._client.get_item(
                TableName=self._table,
                Key={"pk": {"S": f"BATCH#{batch_id}"}, "sk": {"S": META}},
                ConsistentRead=True,
            ).get("Item")
        return batch_of(item) if item else None

    def put_batch(self, before: Batch | None, after: Batch) -> bool:
        """Condition: `rev` as read, or absent."""
        condition = when.absent() if before is None else when.rev_as_read(before.rev)
        plain = {**batch_attributes(after), "rev": (before.rev if before else 0) + 1}
        more: dict[str, Any] = {}
        if before is not None:
            more["ExpressionAttributeNames"] = {"#rev": "rev"}
            more["ExpressionAttributeValues"] = to_wire(condition.values)
        return self._put_batch_item(plain, condition.text, more)

    def put_batch_line(self, batch_id: str, line: Child, ttl: int | None) -> bool:
        """Put if absent."""
        return self._put_batch_item(line_attributes(batch_id, line, ttl), when.absent().text, {})

    def _put_batch_item(self, plain: Mapping[str, Any], condition: str, more: Mapping[str, Any]) -> bool:
        try:
            with answered(StoreUnavailable, CONDITION_FAILED):
                self._client.put_item(TableName=self._table, Item=to_wire(plain), ConditionExpression=condition, **more)
        except ClientError:
            return False
        return True

    def batch_lines(self, batch_id: str, prefix: str, limit: int = 1_000) -> list[Child]:
        """Lines in key order."""
        return under(self._client, self._table, f"BATCH#{batch_id}", prefix, limit)
