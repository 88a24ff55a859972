"""What do operators' use cases need from the outside, beside what every job needs?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from breakwater.domain.audit import Entry
from breakwater.domain.records import ApiKey, Child
from breakwater.domain.replay_batch import Batch


class DeskStore(Protocol):
    """The part of the jobs table that people look at: what needs attention, and replays of many."""

    def attention(
        self, shard: str, since: int, until: int, limit: int, cursor: str | None = None
    ) -> tuple[list[str], str | None]:
        """Ids that need a person (`dead_letter`, `owner_review`) or are batches (`batch`), newest first.

        The index lags: read each again before acting.
        """
        ...

    def batch(self, batch_id: str) -> Batch | None:
        """One batch, read consistently."""
        ...

    def put_batch(self, before: Batch | None, after: Batch) -> bool:
        """Condition: `rev` as read, or absent. False: somebody else was faster."""
        ...

    def put_batch_line(self, batch_id: str, line: Child, ttl: int | None) -> bool:
        """Put if absent: a piece of the selection, or what became of one job. False: it stood there."""
        ...

    def batch_lines(self, batch_id: str, prefix: str, limit: int = 1_000) -> list[Child]:
        """Lines whose key starts with `prefix`, in key order."""
        ...


class OperatorStore(Protocol):
    """The part of the control table that only operators write."""

    def put_audit(self, entry: Entry) -> bool:
        """Put if absent. False: this very entry stood there."""
        ...

    def audit(self, month: str, limit: int, cursor: str | None = None) -> tuple[list[Entry], str | None]:
        """Entries of a month, newest first."""
        ...

    def put_api_key(self, key: ApiKey) -> None:
        """Store a new key's record and list it. Condition: the hash is not there yet."""
        ...

    def api_keys(self, owner_key: str | None = None) -> list[ApiKey]:
        """Listed keys, of one owner or of all; revoked ones too."""
        ...

    def revoke_api_key(self, key: ApiKey, at: int) -> bool:
        """Mark the record and its listing. False: it was revoked before."""
        ...

    def owner_now(self, owner_key: str) -> Mapping[str, Any]:
        """An owner's settings, past every cache, with the `rev` that `put_owner` needs."""
        ...

    def put_owner(self, owner_key: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        """An owner's settings. Condition: as read."""
        ...


class AuditLines(Protocol):
    """The log group of operators' actions, which no function may alter."""

    def write(self, entries: Sequence[Entry]) -> None:
        """Append; raises `StoreUnavailable` when the service does not take it."""
        ...
