"""How is META written? One fenced update that says what it believes.

Theory of operation. A write is the difference between the item as read and the item as it will be: changed attributes
are SET, vanished ones REMOVED, `rev` is raised and a fresh `write_id` stamped. The condition always holds `rev` as
read, so of two writers one wins, and the loser gets the item as it stands and recomputes. A lost answer is found by
`write_id`: the SDK's own repeat then fails against an item that bears our stamp, and that counts as committed.

What is unpleasant: a difference hides intent, so what a move may change is said in `domain/apply.py`, not here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from breakwater.domain.errors import StoreUnavailable
from breakwater.domain.job import Job
from breakwater.domain.records import Child
from breakwater.ports import AS_READ, Committed, Conflicted, Guard
from breakwater.store import conditions as when
from breakwater.store import statements
from breakwater.store.client import CONDITION_FAILED, answered, old_item
from breakwater.store.items import META, child_attributes, child_of, job_attributes, job_key, job_of
from breakwater.store.wire import to_wire


class MetaTable:
    """META and its children in the jobs table."""

    def __init__(self, client: Any, table: str, new_id: Callable[[], str], renewals: Any = None) -> None:
        self._client, self._table, self._new_id = client, table, new_id
        self._renewals = renewals or client

    def create(self, job: Job, now: int) -> Committed | Conflicted:
        """Condition: nothing under this key, or what stands there is past its retention."""
        job = job.with_(rev=1, write_id=self._new_id())
        condition = when.absent() | when.past_retention(now // 1000)
        try:
            with answered(StoreUnavailable, CONDITION_FAILED):
                self._client.put_item(
                    TableName=self._table,
                    Item=to_wire(job_attributes(job)),
                    ConditionExpression=condition.text,
                    ExpressionAttributeNames={"#ttl": "ttl"},
                    ExpressionAttributeValues=to_wire(condition.values),
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ClientError as error:
            return self._settle(error, job)
        return Committed(job)

    def get(self, job_id: str) -> Job | None:
        """META, read consistently."""
        with answered():
            item = self._client.get_item(
                TableName=self._table,
                Key=job_key(job_id),
                ConsistentRead=True,
            ).get("Item")
        return job_of(item) if item else None

    def get_with(self, job_id: str, prefix: str, most: int) -> tuple[Job | None, list[Child]]:
        """META and the children next to it: neighbours of one partition cost one read of their sizes' sum.

        META comes first, from whichever side: a page ends at `most`, or at a megabyte.
        """
        first, last = sorted((prefix, META))
        with answered():
            page = self._client.query(
                TableName=self._table,
                ConsistentRead=True,
                KeyConditionExpression="pk = :pk AND sk BETWEEN :first AND :last",
                ExpressionAttributeValues=to_wire({":pk": f"JOB#{job_id}", ":first": first, ":last": last + "~"}),
                ScanIndexForward=first == META,
                Limit=most + 1,
            )
        items = {item["sk"]["S"]: item for item in page["Items"]}
        meta = items.get(META)
        children = [child_of(item) for sk, item in items.items() if sk.startswith(prefix)]
        return (job_of(meta) if meta else None), children

    def get_many(self, job_ids: Sequence[str]) -> dict[str, Job]:
        """META of up to 100 jobs."""
        wanted = [job_key(one) for one in job_ids]
        found: dict[str, Job] = {}
        while wanted:
            with answered():
                answer = self._client.batch_get_item(RequestItems={self._table: {"Keys": wanted}})
            for item in answer["Responses"].get(self._table, ()):
                job = job_of(item)
                found[job.job_id] = job
            wanted = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])
        return found

    def commit(self, before: Job, after: Job, guard: Guard = AS_READ) -> Committed | Conflicted:
        """Write the difference under `rev` as read, and what `guard` says."""
        after = after.with_(rev=before.rev + 1, write_id=self._new_id())
        condition = _condition(before, guard)
        update, names, values = _difference(job_attributes(before), job_attributes(after))
        try:
            with answered(StoreUnavailable, CONDITION_FAILED):
                self._client.update_item(
                    TableName=self._table,
                    Key=job_key(before.job_id),
                    UpdateExpression=update,
                    ConditionExpression=condition.text,
                    ExpressionAttributeNames={"#rev": "rev", **names},
                    ExpressionAttributeValues=to_wire({**values, **condition.values}),
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ClientError as error:
            return self._settle(error, after)
        return Committed(after)

    def _settle(self, error: ClientError, wanted: Job) -> Committed | Conflicted:
        """A failed condition: did our own first try land, or is the belief wrong?"""
        item = old_item(error)
        if item is None:
            return Conflicted(None)
        standing = job_of(item)
        return Committed(standing) if standing.write_id == wanted.write_id else Conflicted(standing)

    def renew(self, job_id: str, epoch: int, now: int, locked_until: int) -> bool:
        """Move the lease end, and nothing else. Condition: same epoch and not yet expired.

        Goes through a client of its own: one try, with a time-out that ends well before the lease does.
        """
        condition = when.holds_epoch(epoch) & when.not_expired(now)
        try:
            with answered(StoreUnavailable, CONDITION_FAILED):
                self._renewals.update_item(
                    TableName=self._table,
                    Key=job_key(job_id),
                    UpdateExpression="SET locked_until = :until",
                    ConditionExpression=condition.text,
                    ExpressionAttributeValues=to_wire({":until": locked_until, **condition.values}),
                )
        except ClientError:
            return False
        return True

    def put_child(self, job_id: str, child: Child, ttl: int | None) -> Child:
        """Put if absent; what stands there afterwards."""
        try:
            with answered(StoreUnavailable, CONDITION_FAILED):
                self._client.put_item(
                    TableName=self._table,
                    Item=to_wire(child_attributes(job_id, child, ttl)),
                    ConditionExpression=when.absent().text,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ClientError as error:
            item = old_item(error)
            return child_of(item) if item else child
        return child

    def put_children(self, job_id: str, children: Sequence[Child], ttl: int | None) -> list[bool]:
        """Put if absent, each of them."""
        if len(children) == 1:
            return [self.put_child(job_id, children[0], ttl) is children[0]]
        items = [child_attributes(job_id, one, ttl) for one in children]
        return statements.run(self._client, [statements.insert(self._table, item) for item in items])

    def keep_child(self, job_id: str, sk: str, ttl: int) -> bool:
        """Condition: it stands there, and would go sooner."""
        condition = when.goes_sooner(ttl)
        try:
            with answered(StoreUnavailable, CONDITION_FAILED):
                self._client.update_item(
                    TableName=self._table,
                    Key={"pk": {"S": f"JOB#{job_id}"}, "sk": {"S": sk}},
                    UpdateExpression="SET #ttl = :wanted_ttl",
                    ConditionExpression=condition.text,
                    ExpressionAttributeNames={"#ttl": "ttl"},
                    ExpressionAttributeValues=to_wire(condition.values),
                )
        except ClientError:
            return False
        return True

    def child(self, job_id: str, sk: str) -> Child | None:
        """One child, read consistently."""
        with answered():
            item = self._client.get_item(
                TableName=self._table,
                Key={"pk": {"S": f"JOB#{job_id}"}, "sk": {"S": sk}},
                ConsistentRead=True,
            ).get("Item")
        return child_of(item) if item else None

    def children(self, job_id: str, prefix: str, limit: int = 200) -> list[Child]:
        """Children in key order, at most `limit`."""
        found = under(self._client, self._table, f"JOB#{job_id}", prefix, limit)
        return [one for one in found if one.sk != META]

    def children_after(self, job_id: str, prefix: str, after: str | None, limit: int) -> list[Child]:
        """Children in key order, from the first key behind `after` on."""
        first = prefix if after is None else after + "\x01"
        with answered():
            page = self._client.query(
                TableName=self._table,
                ConsistentRead=True,
                KeyConditionExpression="pk = :pk AND sk BETWEEN :first AND :last",
                Limit=limit,
                ExpressionAttributeValues=to_wire({":pk": f"JOB#{job_id}", ":first": first, ":last": prefix + "~"}),
            )
        return [child_of(item) for item in page["Items"]]


def under(client: Any, table: str, pk: str, prefix: str, limit: int) -> list[Child]:
    """Records of one partition whose key starts with `prefix`, in key order, page after page up to `limit`."""
    found: list[Child] = []
    start: Mapping[str, Any] | None = None
    while len(found) < limit:
        more = {"ExclusiveStartKey": start} if start else {}
        with answered():
            page = client.query(
                TableName=table,
                ConsistentRead=True,
                KeyConditionExpression="pk = :pk AND begins_with(sk, :prefix)",
                Limit=limit - len(found),
                ExpressionAttributeValues=to_wire({":pk": pk, ":prefix": prefix}),
                **more,
            )
        found += [child_of(item) for item in page["Items"]]
        start = page.get("LastEvaluatedKey")
        if start is None:
            break
    return found


def _condition(before: Job, guard: Guard) -> when.Condition:
    condition = when.rev_as_read(before.rev) & when.same_life(before.created_at)
    if guard.epoch is not None:
        condition &= when.holds_epoch(guard.epoch)
    if guard.locked_until is not None:
        condition &= when.lease_as_read(guard.locked_until)
    return condition


def _difference(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> tuple[str, dict[str, str], dict[str, Any]]:
    """SET what changed, REMOVE what vanished, as an update expression with its names and values."""
    names: dict[str, str] = {}
    values: dict[str, Any] = {}
    sets, removes = [], []
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) == after.get(name):
            continue
        names[f"#{name}"] = name
        if name in after:
            sets.append(f"#{name} = :{name}")
            values[f":{name}"] = after[name]
        else:
            removes.append(f"#{name}")
    text = "SET " + ", ".join(sets)
    return (text + (" REMOVE " + ", ".join(removes) if removes else ""), names, values)
