"""What is a reader told at the end of a stream? Always one of three events, with the reason and what to do.

`done`: the answer is complete. `cancelled`: somebody stopped it. `failed`: everything else, also where a person must
decide first, since a reader is told now and not in a week.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from breakwater.domain.job import Job
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Reason, Status

DONE, FAILED, CANCELLED = "done", "failed", "cancelled"

_SAFE = "Nothing was shown and nothing was done: ask again with a new key."
_LATER = "Nothing was shown: ask again later."
_PERSON = "A person must decide; read the job to see how it goes on."
_PARTIAL = (
    "Part of the answer was shown and nothing is sent again: keep or drop what was shown, and ask anew with a new key."
)
ADVICE: Mapping[Reason, str] = {
    Reason.COMPLETED: "The answer is complete.",
    Reason.PARTIAL_OUTPUT_COMMITTED: _PARTIAL,
    Reason.ANSWER_TRUNCATED: "The answer stopped at its token limit: ask for less, or allow more tokens.",
    Reason.CONTENT_REFUSED: "A content filter or the model refused: change the request.",
    Reason.CALLER_FAULT: "The request is wrong: correct it and send it with a new key.",
    Reason.DEADLINE_EXCEEDED: _LATER,
    Reason.RETRY_AFTER_EXCEEDS_DEADLINE: _LATER,
    Reason.MAX_ATTEMPTS_EXHAUSTED: _LATER,
    Reason.MAX_QUEUE_AGE_EXCEEDED: _LATER,
    Reason.SHED_LOW_PRIORITY: _LATER,
    Reason.CANCELLED_BY_USER: "It was stopped as asked.",
    Reason.CANCELLED_BY_OPERATOR: "An operator stopped it: ask your team.",
    Reason.CANCELLED_AT_PROVIDER: "The provider stopped it: " + _SAFE[0].lower() + _SAFE[1:],
    Reason.REPLAYED: "The job began anew: open the stream again without `Last-Event-ID`.",
}


def ending(job: Job) -> str | None:
    """Which event ends the stream now; None while the answer may still come."""
    if job.status is Status.SUCCEEDED:
        return DONE
    if job.status is Status.CANCELLED:
        return CANCELLED
    return FAILED if job.final or job.in_review else None


def advice(job: Job) -> str:
    """What whoever reads this should do."""
    if job.in_review:
        return _PERSON
    if job.reason is Reason.PARTIAL_OUTPUT_COMMITTED and job.last_error_class in _OWN_WORDS:
        return ADVICE[_OWN_WORDS[job.last_error_class]]
    return ADVICE.get(job.reason, "Read the job: its reason and diagnosis say what to do.")


_OWN_WORDS = {
    ErrorClass.TRUNCATED.value: Reason.ANSWER_TRUNCATED,
    ErrorClass.CONTENT_REFUSED.value: Reason.CONTENT_REFUSED,
}


def terminal(job: Job, *, segments: int, characters: int, provider_request_id: str | None) -> dict[str, Any]:
    """The data of the terminal event. `segments` and `characters` say how far it got."""
    facts = {
        "job_id": job.job_id,
        "status": job.status.value,
        "lane": job.lane.value,
        "reason": job.reason.value,
        "final": job.final,
        "complete": job.status is Status.SUCCEEDED,
        "partial": job.partial_output_committed and job.status is not Status.SUCCEEDED,
        "segments": segments,
        "characters": characters,
        "request_id": job.request_id,
        "provider_request_id": provider_request_id,
        "finish_reason": job.finish_reason,
        "last_error_type": job.last_error_type,
        "last_error_class": job.last_error_class,
        "usage_units": job.usage_units,
        "cost_micros": job.cost_micros,
        "job": f"/v1/jobs/{job.job_id}",
        "what_to_do": advice(job),
    }
    return {name: value for name, value in facts.items() if value is not None}
