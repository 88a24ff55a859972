"""Which beliefs can a write state? Each clause by name, with the values it needs.

A claim in time (`>` is the order of the wall clock, allowed to be 5 s off):

    locked_until of the last holder > (+ skew) sweep sees it > takeover: rev and locked_until still as read
    ready_at passed > claim: rev as read, epoch + 1

`rev` rises with every META write, so "rev as read" already says: nobody moved the job since. What it can't say is
stated beside it: a renewal moves `locked_until` alone, and a holder must still be the holder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from breakwater.domain.values import dataclass

ABSENT = "attribute_not_exists(pk)"
PAST_RETENTION = "(attribute_exists(#ttl) AND #ttl <= :now_s)"
EXISTS = "attribute_exists(pk)"
REV_AS_READ = "#rev = :read_rev"
HOLDS_EPOCH = "lease_epoch = :held_epoch"
SAME_LIFE = "created_at = :read_birth"
LEASE_AS_READ = "locked_until = :read_locked_until"
NOT_EXPIRED = "locked_until > :now"
DUE_AS_READ = "due_at = :read_due"
NOT_PROCESSED = "attribute_not_exists(processed_at)"
PROCESSED_AS_READ = "processed_at = :read_processed"
HELD_AS_READ = "job_id = :held_by AND epoch = :held_epoch"
VERIFY_AS_READ = "verify_at = :read_verify"
OLDER = "noted_at < :newer"
GOES_SOONER = "#ttl < :wanted_ttl"


@dataclass(frozen=True, slots=True)
class Condition:
    """An expression and its values."""

    text: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def __and__(self, other: Condition) -> Condition:
        return Condition(f"{self.text} AND {other.text}", {**self.values, **other.values})

    def __or__(self, other: Condition) -> Condition:
        return Condition(f"({self.text} OR {other.text})", {**self.values, **other.values})


def absent() -> Condition:
    """Nothing stands under this key."""
    return Condition(ABSENT)


def past_retention(now_s: int) -> Condition:
    """What stands there is past its retention and only waits for the cleaner."""
    return Condition(PAST_RETENTION, {":now_s": now_s})


def rev_as_read(rev: int) -> Condition:
    """Nobody wrote META since it was read; an update never creates what it does not find."""
    return Condition(f"{EXISTS} AND {REV_AS_READ}", {":read_rev": rev})


def goes_sooner(ttl: int) -> Condition:
    """It stands there, and would be cleaned away before that; what has no end is kept anyway."""
    return Condition(GOES_SOONER, {":wanted_ttl": ttl})


def same_life(created_at: int) -> Condition:
    """It is the job that was read, not another that took its key after its retention."""
    return Condition(SAME_LIFE, {":read_birth": created_at})


def holds_epoch(epoch: int) -> Condition:
    """The writer still holds this lease."""
    return Condition(HOLDS_EPOCH, {":held_epoch": epoch})


def lease_as_read(locked_until: int) -> Condition:
    """The lease was not renewed since it was read."""
    return Condition(LEASE_AS_READ, {":read_locked_until": locked_until})


def not_expired(now: int) -> Condition:
    """The lease still runs."""
    return Condition(NOT_EXPIRED, {":now": now})
