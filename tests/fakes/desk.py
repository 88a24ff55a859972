"""What people look at, in memory: attention, batches, and the operators' part of the control table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from breakwater.domain.audit import Entry
from breakwater.domain.errors import StoreUnavailable
from breakwater.domain.records import ApiKey, Child
from breakwater.domain.replay_batch import Batch
from breakwater.store.batches import batch_attributes, batch_of, line_attributes
from breakwater.store.items import child_of
from breakwater.store.wire import from_wire, to_wire


class FakeDesk:
    """`operator_ports.DeskStore` over the items of a `FakeJobStore`."""

    items: dict[tuple[str, str], dict[str, Any]]
    _hook: Callable[[str, str], None]

    def attention(
        self, shard: str, since: int, until: int, limit: int, cursor: str | None = None
    ) -> tuple[list[str], str | None]:
        plain = [from_wire(item) for (_, sk), item in self.items.items() if sk == "META"]
        found = [
            (one["attention_at"], one["pk"])
            for one in plain
            if one.get("attention_shard") == shard and since <= one["attention_at"] <= until
        ]
        found.sort(reverse=True)
        if cursor:
            at, pk = cursor.split(".", 1)
            found = found[found.index((int(at), pk)) + 1 :]
        page = found[:limit]
        more = f"{page[-1][0]}.{page[-1][1]}" if len(found) > limit else None
        return [pk.split("#", 1)[1] for _, pk in page], more

    def batch(self, batch_id: str) -> Batch | None:
        item = self.items.get((f"BATCH#{batch_id}", "META"))
        return batch_of(item) if item else None

    def put_batch(self, before: Batch | None, after: Batch) -> bool:
        self._hook("put_batch", "before")
        standing = self.batch(after.id)
        if (standing.rev if standing else 0) != (before.rev if before else 0):
            return False
        plain = {**batch_attributes(after), "rev": (before.rev if before else 0) + 1}
        self.items[f"BATCH#{after.id}", "META"] = to_wire(plain)
        self._hook("put_batch", "after")
        return True

    def put_batch_line(self, batch_id: str, line: Child, ttl: int | None) -> bool:
        self._hook("put_batch_line", "before")
        key = (f"BATCH#{batch_id}", line.sk)
        if key in self.items:
            return False
        self.items[key] = to_wire(line_attributes(batch_id, line, ttl))
        self._hook("put_batch_line", "after")
        return True

    def batch_lines(self, batch_id: str, prefix: str, limit: int = 1_000) -> list[Child]:
        keys = sorted(sk for pk, sk in self.items if pk == f"BATCH#{batch_id}" and sk.startswith(prefix))
        return [child_of(self.items[f"BATCH#{batch_id}", sk]) for sk in keys if sk != "META"][:limit]


@dataclass
class FakeOperatorTable:
    """`operator_ports.OperatorStore`."""

    entries: dict[tuple[str, str], Entry] = field(default_factory=dict)
    keys: dict[str, ApiKey] = field(default_factory=dict)
    owners: dict[str, dict[str, Any]] = field(default_factory=dict)
    broken: bool = False

    def put_audit(self, entry: Entry) -> bool:
        if self.broken:
            raise StoreUnavailable
        key = (entry.month, entry.sk)
        if key in self.entries:
            return False
        self.entries[key] = entry
        return True

    def audit(self, month: str, limit: int, cursor: str | None = None) -> tuple[list[Entry], str | None]:
        places = sorted((sk for at, sk in self.entries if at == month), reverse=True)
        left = [sk for sk in places if cursor is None or sk < cursor]
        page = left[:limit]
        return [self.entries[month, sk] for sk in page], page[-1] if len(left) > limit else None

    def put_api_key(self, key: ApiKey) -> None:
        if key.key_hash in self.keys:
            raise StoreUnavailable
        self.keys[key.key_hash] = key

    def api_keys(self, owner_key: str | None = None) -> list[ApiKey]:
        mine = [one for one in self.keys.values() if owner_key in (None, one.owner_key)]
        return sorted(mine, key=lambda one: (one.owner_key, one.key_id))

    def revoke_api_key(self, key: ApiKey, at: int) -> bool:
        standing = self.keys.get(key.key_hash)
        if standing is None or standing.revoked_at is not None:
            return False
        self.keys[key.key_hash] = replace(standing, revoked_at=at)
        return True

    def owner_now(self, owner_key: str) -> Mapping[str, Any]:
        return self.owners.get(owner_key, {})

    def put_owner(self, owner_key: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        rev = self.owners.get(owner_key, {}).get("rev", 0)
        if rev != before.get("rev", 0):
            return False
        self.owners[owner_key] = {**after, "rev": rev + 1}
        return True


@dataclass
class FakeAuditLines:
    """`operator_ports.AuditLines`; `broken` takes nothing."""

    written: list[dict[str, Any]] = field(default_factory=list)
    broken: bool = False

    def write(self, entries: Sequence[Entry]) -> None:
        if self.broken:
            raise StoreUnavailable
        self.written += [one.data() for one in entries]
