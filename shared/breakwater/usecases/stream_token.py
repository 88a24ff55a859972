"""How does a browser get to read a stream? With a token that whoever holds the key asks for."""

from __future__ import annotations

from typing import Any

from breakwater.domain.errors import SecretUnavailable
from breakwater.domain.job import Job
from breakwater.domain.stream_token import LIFE_MS, secrets_of, sign
from breakwater.usecases.deps import Deps


def stream_token(deps: Deps, job: Job) -> dict[str, Any]:
    """A token for one job's stream. Raises `SecretUnavailable` where nothing to sign with can be read."""
    secrets = secrets_of(deps.stream_secrets())
    if not secrets:
        raise SecretUnavailable("there is no secret for stream tokens")
    until = deps.now() + LIFE_MS
    token = sign(secrets[0], job.job_id, job.owner_key, until)
    url = f"/v1/jobs/{job.job_id}/stream?token={token}"
    return {"token": token, "expires_at": until, "expires_in_ms": LIFE_MS, "url": url}
