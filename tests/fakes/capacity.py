"""Slots, waiters, rates and newest facts in memory; a part of `FakeJobStore`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from breakwater.domain.job import SlotRef
from breakwater.domain.release import turn_name
from breakwater.domain.slots import Slot
from breakwater.domain.states import Lane
from breakwater.ports import Backlog, Waiter
from breakwater.store.items import RANK_UNIT


class FakeCapacity:
    """`ports.CapacityStore`, over the items of the store it is part of."""

    items: dict[tuple[str, str], dict[str, Any]]
    _hook: Callable[[str, str], None]

    def __init__(self) -> None:
        self.taken: dict[tuple[str, int], Slot] = {}
        self.rates: dict[str, int] = {}
        self.newest: dict[str, tuple[int, dict[str, Any]]] = {}

    def slots(self, scope: str) -> list[Slot]:
        self._hook("slots", "before")
        return [slot for (name, _), slot in sorted(self.taken.items()) if name == scope]

    def take_slot(self, slot: Slot, instead_of: Slot | None = None) -> bool:
        self._hook("take_slot", "before")
        standing = self.taken.get((slot.scope, slot.n))
        if standing != instead_of:
            return standing == slot
        self.taken[slot.scope, slot.n] = slot
        self._hook("take_slot", "after")
        return True

    def keep_slot(self, slot: Slot, verify_at: int) -> bool:
        self._hook("keep_slot", "before")
        if self.taken.get((slot.scope, slot.n)) != slot:
            return False
        self.taken[slot.scope, slot.n] = replace(slot, verify_at=verify_at)
        return True

    def free_slot(self, scope: str, n: int, job_id: str, epoch: int) -> bool:
        self._hook("free_slot", "before")
        standing = self.taken.get((scope, n))
        if standing is None or (standing.job_id, standing.epoch) != (job_id, epoch):
            return False
        del self.taken[scope, n]
        self._hook("free_slot", "after")
        return True

    def take_slots(self, slots: Sequence[Slot]) -> list[bool]:
        return [self.take_slot(one) for one in slots]

    def free_slots(self, slots: Sequence[SlotRef], job_id: str, epoch: int) -> list[SlotRef]:
        return [one for one in slots if self.free_slot(one.scope, one.n, job_id, epoch)]

    def held_slots(self, slots: Sequence[SlotRef], job_id: str, epoch: int) -> list[SlotRef]:
        self._hook("held_slots", "before")
        standing = [(one, self.taken.get((one.scope, one.n))) for one in slots]
        return [ref for ref, slot in standing if slot is not None and (slot.job_id, slot.epoch) == (job_id, epoch)]

    def waiters(self, scope: str, limit: int) -> list[Waiter]:
        self._hook("waiters", "before")
        name = {"S": scope}
        found = [
            (int(item["ready_rank"]["N"]), pk.split("#", 1)[1])
            for (pk, sk), item in self.items.items()
            if sk == "META" and item.get("ready_scope") == name
        ]
        return [Waiter(job_id, rank // RANK_UNIT) for rank, job_id in sorted(found)[:limit]]

    def waiters_by_owner(self, scope: str, after: str, limit: int) -> tuple[list[Waiter], bool]:
        self._hook("waiters_by_owner", "before")
        name = {"S": scope}
        found = sorted(
            (item["ready_turn"]["S"], pk.split("#", 1)[1])
            for (pk, sk), item in self.items.items()
            if sk == "META" and item.get("ready_scope") == name
        )
        behind = [(turn, job_id) for turn, job_id in found if not after or turn > f"{after}#~"]
        page = [Waiter(job_id, int(turn[17:31]), turn[:16]) for turn, job_id in behind[:limit]]
        return page, len(behind) > limit

    def backlog(self, lane: Lane, owner_key: str | None, most: int) -> Backlog:
        self._hook("backlog", "before")
        mine = "" if owner_key is None else f"{turn_name(owner_key)}#"
        places = sorted(
            item["standing_place"]["S"]
            for (_, sk), item in self.items.items()
            if sk == "META" and item.get("standing_lane") == {"S": lane.value}
        )
        found = [one for one in places if one.startswith(mine)][:most]
        return Backlog(len(found), int(found[0][17:]) if len(found) >= most else None)

    def spend_rate(self, key: str, now: int, cost: int, burst: int) -> int | None:
        self._hook("spend_rate", "before")
        standing = self.rates.get(key, -1)
        if standing < now:
            self.rates[key] = now + cost
            return None
        if standing + cost <= now + burst:
            self.rates[key] = standing + cost
            return None
        return max(now, standing + cost - burst) if cost <= burst else standing

    def rate(self, key: str) -> int | None:
        self._hook("rate", "before")
        return self.rates.get(key)

    def adjust_rate(self, key: str, by: int) -> None:
        self._hook("adjust_rate", "before")
        if key in self.rates:
            self.rates[key] += by

    def put_latest(self, key: str, at: int, data: Mapping[str, Any]) -> bool:
        self._hook("put_latest", "before")
        if key in self.newest and self.newest[key][0] >= at:
            return False
        self.newest[key] = (at, dict(data))
        return True

    def latest(self, key: str) -> Mapping[str, Any] | None:
        self._hook("latest", "before")
        if key not in self.newest:
            return None
        at, data = self.newest[key]
        return {**data, "at": at}
