"""The jobs table in memory. Items are kept in wire form, so that every value passes through the real codec."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from breakwater.domain.job import Job
from breakwater.domain.records import Child, Delivery, ProviderJob, RouteState
from breakwater.ports import AS_READ, Committed, Conflicted, DueItem, Guard
from breakwater.store.items import (
    DUE_SHARDS,
    child_attributes,
    child_of,
    delivery_attributes,
    delivery_of,
    due_name,
    due_shard,
    job_attributes,
    job_of,
    provider_job_attributes,
    provider_job_of,
    route_attributes,
    route_of,
)
from breakwater.store.wire import from_wire, to_wire
from tests.fakes.capacity import FakeCapacity
from tests.fakes.desk import FakeDesk
from tests.fakes.schedules import FakeSchedules

_ids = itertools.count(1)


class FakeJobStore(FakeCapacity, FakeDesk, FakeSchedules):
    """`ports.JobStore`; `before` and `after` are called around every operation, for crashes and lost answers."""

    def __init__(self, hook: Callable[[str, str], None] | None = None) -> None:
        self.items: dict[tuple[str, str], dict[str, Any]] = {}
        super().__init__()
        self.lines: dict[str, Mapping[str, Any]] = {}
        self.totals: dict[tuple[str, str], dict[str, int]] = {}
        self._hook = hook or (lambda _name, _when: None)

    # --- META

    def create(self, job: Job, now: int) -> Committed | Conflicted:
        self._hook("create", "before")
        key = (f"JOB#{job.job_id}", "META")
        standing = self.items.get(key)
        if standing is not None:
            current = job_of(standing)
            if current.ttl is None or current.ttl > now // 1000:
                return Conflicted(current)
        job = job.with_(rev=1, write_id=f"w{next(_ids)}")
        self.items[key] = to_wire(job_attributes(job))
        self._hook("create", "after")
        return Committed(job)

    def get(self, job_id: str) -> Job | None:
        self._hook("get", "before")
        item = self.items.get((f"JOB#{job_id}", "META"))
        return job_of(item) if item else None

    def get_with(self, job_id: str, prefix: str, most: int) -> tuple[Job | None, list[Child]]:
        first, last = sorted((prefix, "META"))
        page = sorted((sk for pk, sk in self.items if pk == f"JOB#{job_id}" and first <= sk <= last + "~"))
        page = (
            page[: most + 1] if first == "META" else page[::-1][: most + 1]
        )  # neighbours of other kinds count as well
        children = [child_of(self.items[f"JOB#{job_id}", sk]) for sk in page if sk.startswith(prefix)]
        return self.get(job_id), children

    def get_many(self, job_ids: Sequence[str]) -> dict[str, Job]:
        return {one: job for one in job_ids if (job := self.get(one)) is not None}

    def commit(self, before: Job, after: Job, guard: Guard = AS_READ) -> Committed | Conflicted:
        self._hook("commit", "before")
        key = (f"JOB#{before.job_id}", "META")
        item = self.items.get(key)
        if item is None:
            return Conflicted(None)
        current = job_of(item)
        holds = (
            current.rev == before.rev
            and current.created_at == before.created_at
            and (guard.epoch is None or current.lease_epoch == guard.epoch)
            and (guard.locked_until is None or current.locked_until == guard.locked_until)
        )
        if not holds:
            return Conflicted(current)
        # Only the difference is written: what a renewal did to `locked_until` meanwhile stays.
        old, new = job_attributes(before), job_attributes(after)
        merged = from_wire(item)
        for name in old.keys() | new.keys():
            if old.get(name) != new.get(name):
                merged.pop(name, None) if name not in new else merged.__setitem__(name, new[name])
        merged["rev"], merged["write_id"] = before.rev + 1, f"w{next(_ids)}"
        self.items[key] = to_wire(merged)
        self._hook("commit", "after")
        return Committed(replace(after, rev=before.rev + 1, write_id=merged["write_id"]))

    def renew(self, job_id: str, epoch: int, now: int, locked_until: int) -> bool:
        self._hook("renew", "before")
        key = (f"JOB#{job_id}", "META")
        current = job_of(self.items[key]) if key in self.items else None
        if current is None or current.lease_epoch != epoch or (current.locked_until or 0) <= now:
            return False
        self.items[key] = to_wire({**from_wire(self.items[key]), "locked_until": locked_until})
        return True

    # --- children

    def put_child(self, job_id: str, child: Child, ttl: int | None) -> Child:
        self._hook("put_child", "before")
        key = (f"JOB#{job_id}", child.sk)
        if key in self.items:
            return child_of(self.items[key])
        self.items[key] = to_wire(child_attributes(job_id, child, ttl))
        self._hook("put_child", "after")
        return child

    def keep_child(self, job_id: str, sk: str, ttl: int) -> bool:
        self._hook("keep_child", "before")
        item = self.items.get((f"JOB#{job_id}", sk))
        plain = from_wire(item) if item else {}
        if plain.get("ttl", ttl) >= ttl:
            return False
        self.items[f"JOB#{job_id}", sk] = to_wire({**plain, "ttl": ttl})
        self._hook("keep_child", "after")
        return True

    def put_children(self, job_id: str, children: Sequence[Child], ttl: int | None) -> list[bool]:
        return [self.put_child(job_id, one, ttl) is one for one in children]

    def child(self, job_id: str, sk: str) -> Child | None:
        self._hook("child", "before")
        item = self.items.get((f"JOB#{job_id}", sk))
        return child_of(item) if item else None

    def children(self, job_id: str, prefix: str, limit: int = 200) -> list[Child]:
        keys = sorted(sk for pk, sk in self.items if pk == f"JOB#{job_id}" and sk.startswith(prefix) and sk != "META")
        return [child_of(self.items[f"JOB#{job_id}", sk]) for sk in keys[:limit]]

    def children_after(self, job_id: str, prefix: str, after: str | None, limit: int) -> list[Child]:
        self._hook("children_after", "before")
        mine = sorted(sk for pk, sk in self.items if pk == f"JOB#{job_id}" and sk.startswith(prefix))
        return [child_of(self.items[f"JOB#{job_id}", sk]) for sk in mine if after is None or sk > after][:limit]

    # --- indexes

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
        self._hook("due", "before")
        assert 0 <= shard < DUE_SHARDS
        name, after = {"S": f"{due_name(again=again)}#{shard}"}, tuple(cursor["after"]) if cursor else None
        found = [
            (int(item["due_at"]["N"]), pk)
            for (pk, sk), item in self.items.items()
            if sk == "META" and item.get("due_shard") == name and int(item["due_at"]["N"]) <= until
        ]
        found.sort(reverse=newest)
        if after is not None:  # by key, like the real index: what moved meanwhile shifts nothing
            found = [one for one in found if (one < after if newest else one > after)]
        page = found[:limit]
        items = [DueItem(pk.split("#", 1)[0].lower(), pk.split("#", 1)[1], at) for at, pk in page]
        return items, {"after": page[-1]} if len(found) > limit else None

    def by_owner(self, owner_key: str, limit: int, cursor: str | None) -> tuple[list[str], str | None]:
        jobs = [job_of(item) for (_, sk), item in self.items.items() if sk == "META" and "owner_shard" in item]
        mine = sorted((job for job in jobs if job.owner_key == owner_key), key=lambda job: -job.created_at)
        if cursor:
            created, job_id = cursor.split(".", 1)
            at = next(n for n, job in enumerate(mine) if (str(job.created_at), job.job_id) == (created, job_id))
            mine = mine[at + 1 :]
        page = mine[:limit]
        following = f"{page[-1].created_at}.{page[-1].job_id}" if len(mine) > limit else None
        return [job.job_id for job in page], following

    # --- deliveries, routes, usage

    def record_delivery(self, delivery: Delivery) -> Delivery | None:
        self._hook("record_delivery", "before")
        key = (f"DELIVERY#{delivery.id}", "META")
        if key in self.items:
            return delivery_of(self.items[key])
        self.items[key] = to_wire(delivery_attributes(delivery))
        self._hook("record_delivery", "after")
        return None

    def delivery(self, delivery_id: str) -> Delivery | None:
        self._hook("delivery", "before")
        item = self.items.get((f"DELIVERY#{delivery_id}", "META"))
        return delivery_of(item) if item else None

    def update_delivery(self, before: Delivery, after: Delivery) -> bool:
        self._hook("update_delivery", "before")
        key = (f"DELIVERY#{before.id}", "META")
        if key not in self.items:
            return False
        current = delivery_of(self.items[key])
        if current.processed_at is not None or (before.due_at is not None and current.due_at != before.due_at):
            return False
        self.items[key] = to_wire(delivery_attributes(after))
        self._hook("update_delivery", "after")
        return True

    def reopen_delivery(self, before: Delivery, after: Delivery) -> bool:
        self._hook("reopen_delivery", "before")
        key = (f"DELIVERY#{before.id}", "META")
        current = delivery_of(self.items[key]) if key in self.items else None
        if current is None or current.processed_at is None or current.processed_at != before.processed_at:
            return False
        self.items[key] = to_wire(delivery_attributes(after))
        self._hook("reopen_delivery", "after")
        return True

    def put_provider_job(self, known: ProviderJob) -> ProviderJob:
        self._hook("put_provider_job", "before")
        item = provider_job_attributes(known)
        standing = self.items.setdefault((item["pk"], item["sk"]), to_wire(item))
        self._hook("put_provider_job", "after")
        return provider_job_of(standing)

    def provider_job(self, endpoint: str, provider_job_id: str) -> ProviderJob | None:
        self._hook("provider_job", "before")
        item = self.items.get((f"PROVIDER#{endpoint}#{provider_job_id}", "META"))
        return provider_job_of(item) if item else None

    def route(self, route_key: str) -> RouteState | None:
        self._hook("route", "before")
        item = self.items.get((f"ROUTE#{route_key}", "META"))
        return route_of(item) if item else None

    def put_route(self, before: RouteState | None, after: RouteState) -> bool:
        self._hook("put_route", "before")
        key = (f"ROUTE#{after.route_key}", "META")
        standing = route_of(self.items[key]) if key in self.items else None
        if (standing.rev if standing else 0) != (before.rev if before else 0):
            return False
        self.items[key] = to_wire(route_attributes(replace(after, rev=(before.rev if before else 0) + 1)))
        self._hook("put_route", "after")
        return True

    def count_usage(self, line: Mapping[str, Any]) -> bool:
        self._hook("count_usage", "before")
        name = f"{line['owner_key']}/{line['period']}/{line['execution_id']}"
        if name in self.lines:
            return False
        self.lines[name] = dict(line)
        kept = self.totals.setdefault((line["owner_key"], f"{line['period']}#{line['workflow']}"), {})
        added = {
            "executions": 1,
            "cost_micros": line.get("cost_micros", 0),
            "usage_units": line.get("usage_units", 0),
            "input_tokens": line.get("input_tokens", 0),
            "output_tokens": line.get("output_tokens", 0),
        }
        for field, value in added.items():
            kept[field] = kept.get(field, 0) + value
        self._hook("count_usage", "after")
        return True

    def usage(self, owner_key: str, prefix: str) -> list[Mapping[str, Any]]:
        return [
            {"sk": f"TOTAL#{name}", **kept}
            for (owner, name), kept in sorted(self.totals.items())
            if owner == owner_key and name.startswith(prefix)
        ]

    # --- for tests

    def shard_of(self, item_id: str) -> int:
        return int(due_shard(item_id).split("#")[1])
