"""What does META leave out because the rest of it tells it anyway?

Every transition pays for the whole item in started kilobytes, and a typical job should stay within the first. So a
value that another attribute already holds is not written twice: the id is the key's, an open execution repeats mostly
what its job says, a new job is ready when it was created. Hashes and UUIDs are kept as bytes. Nothing is lost: where
a value differs from the one it usually equals, it is written, as null if it is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from breakwater.domain.job import Execution, Job, Owed, execution_id

_BORN = ("round_started_at", "ready_at")  # usually the job's own birth
_SHARED = {  # what an open execution usually has from its job
    "generation": "generation",
    "attempt": "attempt",
    "epoch": "lease_epoch",
    "route_key": "route_key",
    "requested_model": "requested_model",
    "request_id": "request_id",
    "waited_from": "ready_at",
    "provider_job_id": "provider_job_id",
    "possible_duplicate": "possible_duplicate",
}
_UUIDS = ("message_id", "lambda_request_id")
_FIELDS = tuple(Execution.__dataclass_fields__)
_SHA256 = 64  # digits
_EXECUTION_PARTS = 3  # incarnation, generation, attempt


def packed(item: Mapping[str, Any], job: Job) -> dict[str, Any]:
    """META's attributes without what its key, its birth and its content hashes tell."""
    found = {name: value for name, value in item.items() if name not in ("job_id", *_BORN)}
    found |= {name: born for name in _BORN if (born := getattr(job, name)) != job.created_at}
    found["fingerprint"] = _as_bytes(job.fingerprint)
    if job.input_ref.startswith(prefix := _input_prefix(job.created_at)):
        digest = _as_bytes(job.input_ref.removeprefix(prefix))
        found["input_ref"] = digest if isinstance(digest, bytes) else job.input_ref
    return found


def unpacked(item: Mapping[str, Any]) -> dict[str, Any]:
    """The reverse: every field of a job by its name, the open execution left as it is."""
    born = item["created_at"]
    found = {**dict.fromkeys(_BORN, born), **item, "job_id": item["pk"].removeprefix("JOB#")}
    found["fingerprint"] = _as_text(item["fingerprint"])
    kept = item.get("input_ref", "")
    found["input_ref"] = _input_prefix(born) + kept.hex() if isinstance(kept, bytes) else kept
    return found


def packed_execution(execution: Execution, job: Job) -> dict[str, Any]:
    """An open execution without what its job says too."""
    found: dict[str, Any] = {}
    for name in _FIELDS:
        value = getattr(execution, name)
        usual = getattr(job, _SHARED[name]) if name in _SHARED else None
        if value != usual:
            found[name] = _uuid_bytes(value) if name in _UUIDS else value
    if execution.id == execution_id(job.job_id, job.created_at, execution.generation, execution.attempt):
        del found["id"]
    return found


def unpacked_execution(data: Mapping[str, Any], job: Mapping[str, Any]) -> Execution:
    """The reverse, beside the fields of its job by name; fields that a newer version wrote are left out."""
    found = {name: job[usual] for name, usual in _SHARED.items()}
    found |= {name: _uuid_text(value) for name, value in data.items() if name in _FIELDS}
    found.setdefault("id", execution_id(job["job_id"], job["created_at"], found["generation"], found["attempt"]))
    return Execution(**found)


def packed_owed(owed: Mapping[str, Owed], job_id: str) -> dict[str, Any]:
    """What is owed: mostly a time alone, for nothing was tried yet; true stands for the execution the key names."""
    return {key: _packed_one(key, one, job_id) for key, one in owed.items()}


def _packed_one(key: str, owed: Owed, job_id: str) -> Any:
    if owed.ref is None and not owed.tries:
        return owed.next_at
    named = owed.ref is not None and owed.ref == _named_by(key, job_id)
    return [owed.next_at, owed.tries, True if named else owed.ref]


def unpacked_owed(kept: Mapping[str, Any], job_id: str) -> dict[str, Owed]:
    """The reverse."""
    return {key: _unpacked_one(key, one, job_id) for key, one in kept.items()}


def _unpacked_one(key: str, kept: Any, job_id: str) -> Owed:
    if isinstance(kept, int):
        return Owed(next_at=kept)
    next_at, tries, ref = kept
    return Owed(next_at=next_at, tries=tries, ref=_named_by(key, job_id) if ref is True else ref)


def _named_by(key: str, job_id: str) -> str | None:
    """The execution that an effect's key names, if it names one."""
    parts = key.split("#")[1:]
    if len(parts) != _EXECUTION_PARTS or not all(part.isdecimal() for part in parts):
        return None
    return execution_id(job_id, *(int(part) for part in parts))


def _input_prefix(created_at: int) -> str:
    return f"INPUT#{created_at:013d}#"


def _as_bytes(text: str) -> bytes | str:
    """A hash as bytes; any other text stays what it is."""
    if len(text) != _SHA256:
        return text
    try:
        found = bytes.fromhex(text)
    except ValueError:
        return text
    return found if found.hex() == text else text


def _as_text(kept: bytes | str) -> str:
    return kept.hex() if isinstance(kept, bytes) else kept


def _uuid_bytes(value: str | None) -> bytes | str | None:
    """A UUID in its usual form as bytes; any other text stays what it is."""
    try:
        found = UUID(value)
    except (ValueError, TypeError, AttributeError):
        return value
    return found.bytes if str(found) == value else value


def _uuid_text(kept: Any) -> Any:
    return str(UUID(bytes=kept)) if isinstance(kept, bytes) else kept
