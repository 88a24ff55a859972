"""Who needs a person? The sparse index of dead letters, reviews and batches, newest first."""

from __future__ import annotations

from typing import Any

from breakwater.store.client import answered
from breakwater.store.items import META
from breakwater.store.wire import from_wire, to_wire


class AttentionTable:
    """Reads of the `attention` index."""

    _client: Any
    _table: str

    def attention(
        self, shard: str, since: int, until: int, limit: int, cursor: str | None = None
    ) -> tuple[list[str], str | None]:
        """Ids, newest first, and where to go on; the index is read eventually."""
        more: dict[str, Any] = {}
        if cursor:
            at, pk = cursor.split(".", 1)
            key = {"pk": pk, "sk": META, "attention_shard": shard, "attention_at": int(at)}
            more = {"ExclusiveStartKey": to_wire(key)}
        with answered():
            page = self._client.query(
                TableName=self._table,
                IndexName="attention",
                Limit=limit,
                ScanIndexForward=False,
                KeyConditionExpression="attention_shard = :shard AND attention_at BETWEEN :since AND :until",
                ExpressionAttributeValues=to_wire({":shard": shard, ":since": since, ":until": until}),
                **more,
            )
        ids = [from_wire(item)["pk"].split("#", 1)[1] for item in page["Items"]]
        last = page.get("LastEvaluatedKey")
        if last is None:
            return ids, None
        end = from_wire(last)
        return ids, f"{end['attention_at']}.{end['pk']}"
