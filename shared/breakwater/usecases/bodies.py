"""Where do inputs and results live, and how are they read back?

Small bodies stand in the table beside META, large ones in the object store under a key that names their content. The
limit is where a kilobyte in the table starts to cost more than an object.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from breakwater.domain.errors import CorruptItem, Unavailable
from breakwater.domain.identity import input_sha
from breakwater.domain.job import Job
from breakwater.domain.records import Child
from breakwater.domain.sizes import INLINE_BYTES, SPARE_INLINE_BYTES
from breakwater.usecases.deps import Deps


def child_with_body(deps: Deps, job_id: str, sk: str, body: bytes, data: Mapping[str, Any]) -> Child:
    """A child that carries `body` inline, or a pointer after the body was stored; storing comes first."""
    if len(body) <= INLINE_BYTES:
        return Child(sk=sk, data=data, body=body.decode())
    key = f"payloads/{job_id}/{sk.replace('#', '/')}-{input_sha(body)[:16]}.json"
    return Child(sk=sk, data=data, blob=deps.payloads.put(key, body))


def paid_child(deps: Deps, job_id: str, sk: str, body: bytes, data: Mapping[str, Any]) -> Child:
    """The same for what was paid for: where the object store is away, the table takes what fits into an item."""
    try:
        return child_with_body(deps, job_id, sk, body, data)
    except Unavailable as error:
        if len(body) > SPARE_INLINE_BYTES:
            raise
        deps.log.note("body_kept_in_table", job_id=job_id, body_bytes=len(body), error=type(error).__name__)
        return Child(sk=sk, data=data, body=body.decode())


def read_body(deps: Deps, child: Child) -> bytes | None:
    """The body of a child, wherever it stands; None when retention removed it."""
    if child.body is not None:
        return child.body.encode()
    return deps.payloads.get(child.blob) if child.blob else None


def read_input(deps: Deps, job: Job, known: Iterable[Child] = ()) -> Mapping[str, Any] | None:
    """The input as admitted; None when it is gone. `known`: children that were read with the job."""
    child = next((one for one in known if one.sk == job.input_ref), None)
    child = child or deps.store.child(job.job_id, job.input_ref)
    body = read_body(deps, child) if child else None
    if body is None:
        return None
    value = json.loads(body)
    if not isinstance(value, dict):
        raise CorruptItem("the input is no JSON object", job=job.job_id)
    return value
