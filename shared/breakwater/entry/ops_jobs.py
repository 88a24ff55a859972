"""Operators' requests about jobs: look, diagnose, preview, replay, review, close, cancel, and batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from breakwater.domain.diagnosis import Condition, Layer
from breakwater.domain.errors import InvalidRequest, NotFound
from breakwater.domain.job import Job
from breakwater.domain.replay import MOST_ITEMS, SAME_ROUTE, BatchTerms, Filter, Short, Terms, Text, Why, read
from breakwater.domain.replay_batch import BatchStatus
from breakwater.domain.states import Lane, Reason
from breakwater.entry.http import json_body, response
from breakwater.entry.ops_request import cursor, filter_of, limit, page, query, rows
from breakwater.usecases import batch, diagnose, operate, preview
from breakwater.usecases.audit import Action, Desk, audited
from breakwater.usecases.cancel import cancel
from breakwater.usecases.close import close
from breakwater.usecases.read import story
from breakwater.usecases.replay import need_job, replay
from breakwater.usecases.review import approve, reject

Event = Mapping[str, Any]
Answer = dict[str, Any]
_LISTED = r"[0-9]{1,15}\.(JOB#job_[a-z2-7]{1,60}|BATCH#[^#]{1,128})"


class _Decision(BaseModel):
    """An approval: why, maybe on which route, and what speaks against a repeated effect."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    why: Text
    route: Short | None = None
    proof: Text | None = None


class _Many(BaseModel):
    """What a preview of many looks at."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    filter: Filter = Filter()
    route: Short = SAME_ROUTE
    size: Annotated[int, Field(strict=True, ge=1, le=MOST_ITEMS)] = 500


# --- looking --------------------------------------------------------------------------------------------------------


def _search(desk: Desk, event: Event) -> Answer:
    wanted = query(event)
    owner = wanted.get("owner_key")
    if owner is None:
        fix = "send `owner_key`, and `workflow` with `key` for one intent; see dead-letters and reviews for all owners"
        raise InvalidRequest("Say whose jobs.", field="owner_key", rule="required", fix=fix)
    if "key" in wanted:
        if "workflow" not in wanted:  # a key is its workflow's own: an empty answer would say that nothing arrived
            fix = "send `workflow` with `key`, and `user_ref` where the request had one"
            raise InvalidRequest("Say whose key it is.", field="workflow", rule="required", fix=fix)
        found = operate.by_key(desk.deps, owner, wanted.get("user_ref"), wanted["workflow"], wanted["key"])
        return response(200, page("jobs", found, None))
    place = cursor(event, r"[0-9]{1,15}\.job_[a-z2-7]{1,60}")
    return response(200, page("jobs", *operate.of_owner(desk.deps, owner, limit(event), place)))


def _job(desk: Desk, _event: Event, job_id: str) -> Answer:
    return response(200, operate.whole(desk.deps, need_job(desk.deps, job_id)))


def _executions(desk: Desk, _event: Event, job_id: str) -> Answer:
    return response(200, {"job_id": job_id, "executions": story(desk.deps, need_job(desk.deps, job_id))})


def _diagnosis(desk: Desk, _event: Event, job_id: str) -> Answer:
    """A job that is not there is a verdict too: it never arrived."""
    try:
        job = need_job(desk.deps, job_id)
    except NotFound as error:
        return response(200, _never_arrived(job_id, error))
    found = diagnose.diagnosis(desk.deps, job, deliveries=True)
    return response(200, diagnose.shown(found, by=("owner", "operator")))


def _never_arrived(job_id: str, error: NotFound) -> dict[str, Any]:
    return {
        "job_id": job_id,
        "layer": Layer.CLIENT.value,
        "condition": Condition.STUCK.value,
        "verdict": str(error),
        "next": {"what": "nothing: there is no job"},
        "can_do": [
            {
                "by": "operator",
                "says": "look it up by the client's own key",
                "command": "breakwater jobs --owner OWNER --workflow WORKFLOW --key KEY",
            }
        ],
        "evidence": [],
    }


def _dead_letters(desk: Desk, event: Event) -> Answer:
    found = operate.needing(desk.deps, Lane.DEAD_LETTER, filter_of(event), limit(event), cursor(event, _LISTED))
    return response(200, page("dead_letters", *found))


def _reviews(desk: Desk, event: Event) -> Answer:
    found = operate.needing(desk.deps, Lane.OWNER_REVIEW, filter_of(event), limit(event), cursor(event, _LISTED))
    return response(200, page("reviews", *found))


# --- one job --------------------------------------------------------------------------------------------------------


def _preview(desk: Desk, event: Event, job_id: str) -> Answer:
    route = query(event).get("route", SAME_ROUTE)
    return response(200, preview.shown(preview.preview(desk.deps, need_job(desk.deps, job_id), route)))


def _replay(desk: Desk, event: Event, job_id: str) -> Answer:
    terms = read(Terms, json_body(event))
    job = need_job(desk.deps, job_id)
    why = f"{terms.reason.value}: {terms.text}"

    def work() -> tuple[Answer, Mapping[str, Any]]:
        done = replay(desk.deps, job, terms, desk.name)
        shown = {**operate.brief(done.job), "repeated": done.repeated, "checks": list(done.checks)}
        return response(200 if done.repeated else 202, shown), {
            **operate.state_of(done.job),
            "replay_id": done.job.replay_id,
        }

    return audited(desk, _action("replay", job, why), work)


def _close(desk: Desk, event: Event, job_id: str) -> Answer:
    return _change(desk, "close", job_id, read(Why, json_body(event)).why, lambda job: close(desk.deps, job, desk.name))


def _cancel(desk: Desk, event: Event, job_id: str) -> Answer:
    def work(job: Job) -> Job:
        return cancel(desk.deps, job, desk.name, Reason.CANCELLED_BY_OPERATOR)

    return _change(desk, "cancel", job_id, read(Why, json_body(event)).why, work)


def _approve(desk: Desk, event: Event, job_id: str) -> Answer:
    wanted = read(_Decision, json_body(event))
    why = wanted.why if wanted.proof is None else f"{wanted.why}; proof: {wanted.proof}"

    def work(job: Job) -> Job:
        return approve(desk.deps, job, desk.name, wanted.route, proof=wanted.proof is not None)

    return _change(desk, "approve", job_id, why, work)


def _reject(desk: Desk, event: Event, job_id: str) -> Answer:
    why = read(Why, json_body(event)).why
    return _change(desk, "reject", job_id, why, lambda job: reject(desk.deps, job, desk.name))


def _change(desk: Desk, what: str, job_id: str, why: str, act: Callable[[Job], Job]) -> Answer:
    job = need_job(desk.deps, job_id)

    def work() -> tuple[Answer, Mapping[str, Any]]:
        after = act(job)
        return response(200, operate.brief(after)), operate.state_of(after)

    return audited(desk, _action(what, job, why), work)


def _action(what: str, job: Job, why: str) -> Action:
    return Action(what=what, target=f"job:{job.job_id}", why=why, before=operate.state_of(job))


# --- many -----------------------------------------------------------------------------------------------------------


def _preview_many(desk: Desk, event: Event) -> Answer:
    wanted = read(_Many, json_body(event))
    return response(200, preview.preview_many(desk.deps, wanted.filter, wanted.route, wanted.size))


def _batches(desk: Desk, event: Event) -> Answer:
    found, following = batch.listed(desk.deps, limit(event), cursor(event, _LISTED))
    return response(200, page("batches", list(found), following))


def _create_batch(desk: Desk, event: Event) -> Answer:
    wanted = read(BatchTerms, json_body(event))

    def work() -> tuple[Answer, Mapping[str, Any]]:
        made, refused = batch.create(desk.deps, wanted, desk.name, desk.who.owner_key)
        after = {"total": made.total, "refused": len(refused), "error_threshold": made.error_threshold}
        return response(202, batch.progress(desk.deps, made)), after

    why = f"{wanted.terms.reason.value}: {wanted.terms.text}"
    before = wanted.filter.model_dump(mode="json", exclude_none=True)
    action = Action(what="replay_batch", target=f"batch:{wanted.terms.request_id}", why=why, before=before)
    return audited(desk, action, work)


def _batch(desk: Desk, _event: Event, batch_id: str) -> Answer:
    return response(200, batch.progress(desk.deps, batch.need_batch(desk.deps, batch_id)))


_TURNS = {"pause": BatchStatus.PAUSED, "resume": BatchStatus.RUNNING, "abort": BatchStatus.ABORTED}


def _turn(desk: Desk, event: Event, batch_id: str, turn: str) -> Answer:
    why = read(Why, json_body(event)).why
    before = {"status": batch.need_batch(desk.deps, batch_id).status.value}

    def work() -> tuple[Answer, Mapping[str, Any]]:
        after = batch.turn(desk.deps, batch_id, _TURNS[turn], why)
        return response(200, batch.progress(desk.deps, after)), {"status": after.status.value}

    return audited(desk, Action(what=f"{turn}_batch", target=f"batch:{batch_id}", why=why, before=before), work)


_JOB = r"/jobs/(?P<job_id>[^/]{1,64})"
_BATCH = r"/batches/(?P<batch_id>[^/]{1,128})"
ROUTES = rows(
    ("GET", "/jobs", _search),
    ("GET", _JOB, _job),
    ("GET", _JOB + "/executions", _executions),
    ("GET", _JOB + "/diagnosis", _diagnosis),
    ("GET", _JOB + "/preview", _preview),
    ("POST", _JOB + "/replay", _replay),
    ("POST", _JOB + "/close", _close),
    ("POST", _JOB + "/cancel", _cancel),
    ("POST", _JOB + "/approve", _approve),
    ("POST", _JOB + "/reject", _reject),
    ("GET", "/dead-letters", _dead_letters),
    ("GET", "/reviews", _reviews),
    ("POST", "/preview", _preview_many),
    ("GET", "/batches", _batches),
    ("POST", "/batches", _create_batch),
    ("GET", _BATCH, _batch),
    ("POST", _BATCH + "/(?P<turn>pause|resume|abort)", _turn),
)
