"""Dead jobs and the words that bring them back, for tests of replays."""

from __future__ import annotations

from typing import Any

from breakwater.domain.replay import BatchTerms, Terms
from breakwater.domain.signals import ErrorClass
from tests.fakes.outside import refusal
from tests.support.world import World


def dead(world: World, workflow: str = "sync", key: str = "k-1", **more: Any) -> str:
    """A job whose every attempt failed at the provider."""
    job_id = world.submit(workflow, key, **more).job.job_id
    world.provider.script = [refusal(ErrorClass.SERVER_FAULT, 500)] * 20
    world.settle()
    world.provider.script = []
    assert world.job(job_id).status.value == "dead_letter"
    return job_id


def terms(request_id: str = "req-1", **more: Any) -> Terms:
    """What an operator says, complete."""
    base = {
        "owner": "alex",
        "reason": "provider_recovery",
        "text": "status page is green",
        "cost_reviewed": True,
        "stop": {"max_attempts": 2},
        "request_id": request_id,
    }
    return Terms.model_validate({**base, **more})


def batch_terms(request_id: str = "batch-1", **more: Any) -> BatchTerms:
    """A replay of every dead job of the workflow `sync`."""
    base: dict[str, Any] = {
        "terms": terms(request_id).model_dump(mode="json", exclude_none=True),
        "filter": {"workflow": "sync"},
        "rate_per_minute": 6_000,
        "error_threshold": 10,
    }
    return BatchTerms.model_validate({**base, **more})
