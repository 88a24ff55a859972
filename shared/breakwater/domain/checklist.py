"""May this dead job come back? A checklist with a verdict for each item, from facts alone.

`no` on input, policy, contract or idempotency refuses a replay. `unknown` on idempotency needs the operator's proof,
one job at a time. `no` on the cause means that nothing has changed: only an owner's override goes on, never a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Any

from breakwater.domain.contract import Verdict as ContractVerdict
from breakwater.domain.contract import not_kept, verdict
from breakwater.domain.job import Job
from breakwater.domain.policy import Policy
from breakwater.domain.records import RouteState
from breakwater.domain.routes import Route
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Reason
from breakwater.domain.values import dataclass


class Verdict(StrEnum):
    """What an item comes to."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Item(StrEnum):
    """What is checked, in the order people read it."""

    CAUSE_FIXED = "cause_fixed"
    CREDENTIALS = "credentials_valid"
    QUOTA = "quota_and_budget_free"
    INPUT = "input_retained"
    VERSIONS = "policy_and_code"
    IDEMPOTENCY = "idempotency"
    CONTRACT = "route_contract"


@dataclass(frozen=True, slots=True)
class Check:
    """One verdict and its reason."""

    item: Item
    verdict: Verdict
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything the checklist looks at. `cancels`: what became of cancels at the provider, by execution id."""

    job: Job
    now: int
    policy: Policy | None
    route: Route | None  # the one the replay would take
    state: RouteState | None
    input_present: bool
    executions: tuple[Mapping[str, Any], ...] = ()
    cancels: Mapping[str, str] = field(default_factory=dict)  # owed, confirmed, given_up
    code_version: str = ""
    budget_micros: int | None = None
    spent_micros: int = 0
    clauses: Mapping[str, bool | None] | None = None  # None: its own route
    route_allowed: bool = True


def checks(facts: Facts) -> tuple[Check, ...]:
    """Every item with its verdict."""
    return tuple(Check(item, *rule(facts)) for item, rule in _RULES.items())


def blocking(found: tuple[Check, ...], *, proof: bool = False, override: bool = False) -> Check | None:
    """The item that refuses a replay, if one does."""
    for one in found:
        if one.verdict is Verdict.NO and not (one.item in _OVERRIDABLE and override):
            return one
        if one.verdict is Verdict.UNKNOWN and one.item is Item.CONTRACT:
            return one
        if one.verdict is Verdict.UNKNOWN and one.item is Item.IDEMPOTENCY and not proof:
            return one
    return None


_OVERRIDABLE = frozenset({Item.CAUSE_FIXED, Item.CREDENTIALS, Item.QUOTA})
Told = tuple[Verdict, str]

# Repeating these gives the same answer, unless what judged them was changed.
_SAME_AGAIN = frozenset(
    {
        Reason.CALLER_FAULT,
        Reason.CONTENT_REFUSED,
        Reason.ANSWER_TRUNCATED,
        Reason.DATA_BOUNDARY_MISMATCH,
        Reason.FALLBACK_CONTRACT_MISMATCH,
        Reason.SERVED_MODEL_MISMATCH,
        Reason.CRASHED_REPEATEDLY,
    }
)


def _cause(facts: Facts) -> Told:
    state, job = facts.state, facts.job
    if state is not None and state.closed(facts.now):
        return Verdict.NO, f"the route is still closed: {state.reason or 'no reason given'}"
    if job.reason in _SAME_AGAIN:
        if facts.clauses is not None:
            return Verdict.UNKNOWN, "another route may answer differently"
        if _changed(facts):
            return Verdict.UNKNOWN, f"{job.reason.value}: the policy or the code has changed since"
        return Verdict.NO, f"{job.reason.value}: nothing has changed, so the answer will be the same"
    if state is not None and state.limit is not None:
        return Verdict.UNKNOWN, "the route is open again and still being tried out"
    return Verdict.YES, "the route is open"


def _credentials(facts: Facts) -> Told:
    if facts.route is None:
        return Verdict.NO, "the route is not deployed"
    state = facts.state
    about_key = {ErrorClass.CREDENTIAL.value, ErrorClass.PERMISSION.value}
    if state is not None and state.closed(facts.now) and any(word in (state.reason or "") for word in about_key):
        return Verdict.NO, f"the provider refused the credential {facts.route.credential}"
    if facts.job.last_error_class in about_key:
        return Verdict.UNKNOWN, f"the last answer refused the credential {facts.route.credential}; the route was opened"
    return Verdict.YES, f"nothing speaks against the credential {facts.route.credential}"


def _quota(facts: Facts) -> Told:
    if facts.budget_micros is not None and facts.spent_micros >= facts.budget_micros:
        return Verdict.NO, f"the owner's budget of {facts.budget_micros} is spent"
    if facts.job.last_error_class in (ErrorClass.QUOTA.value, ErrorClass.SPEND.value):
        return Verdict.UNKNOWN, "the provider said that quota or credit was used up: look at its billing page"
    return Verdict.YES, "no quota or budget stands against it"


def _input(facts: Facts) -> Told:
    if not facts.input_present:
        return Verdict.NO, "the input is gone"
    ttl = facts.job.ttl
    if ttl is not None and ttl * 1000 <= facts.now:
        return Verdict.NO, "the job is past its retention"
    return Verdict.YES, "the input is still there"


def _versions(facts: Facts) -> Told:
    if facts.policy is None:
        return Verdict.NO, "the workflow's policy is not deployed"
    if not facts.executions:
        return Verdict.YES, "it never ran; the deployed policy and code hold"
    return Verdict.YES, "changed since the last execution" if _changed(facts) else "the same as at the last execution"


def _changed(facts: Facts) -> bool:
    last = facts.executions[-1] if facts.executions else {}
    policy = facts.policy.hash if facts.policy else ""
    return last.get("policy_hash") != policy or last.get("code_version", "") != facts.code_version


def _contract(facts: Facts) -> Told:
    if not facts.route_allowed:
        return (
            Verdict.NO,
            "the route is neither the workflow's own, nor one with the same model, nor an approved fallback",
        )
    if facts.clauses is None:
        return Verdict.YES, "the workflow's own route"
    found = verdict(facts.clauses)
    if found is ContractVerdict.HOLDS:
        return Verdict.YES, "every clause is kept"
    named = ", ".join(not_kept(facts.clauses))
    mismatch = found is ContractVerdict.MISMATCH
    return (Verdict.NO, f"broken: {named}") if mismatch else (Verdict.UNKNOWN, f"nobody has checked: {named}")


# --- idempotency ----------------------------------------------------------------------------------------------------


def result_waits(job: Job, executions: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a replay settles with a result that came too late; one of the wrong model is no result."""
    return job.reason is not Reason.SERVED_MODEL_MISMATCH and any(
        one.get("outcome") == "completed" for one in executions
    )


_MAYBE_DONE = frozenset({"unknown", "lost", "crashed", "provider_deadline", "overtaken", "cancelled"})


def _idempotency(facts: Facts) -> Told:
    """The worst that any execution of any generation says; an outside effect is never repeated on a guess."""
    if result_waits(facts.job, facts.executions):
        return Verdict.YES, "a paid result is there: a replay takes it and calls nobody"
    told = [_execution(facts, one) for one in facts.executions]
    for worst in (Verdict.NO, Verdict.UNKNOWN):
        if found := next((one for one in told if one[0] is worst), None):
            return found
    job = facts.job
    if job.partial_output_committed or job.reason is Reason.PARTIAL_OUTPUT_COMMITTED:
        return Verdict.UNKNOWN, "part of an answer was seen; a replay gives a second one"
    if job.reason is Reason.NOT_IDEMPOTENT:
        return Verdict.UNKNOWN, "the policy holds it for not repeatable"
    paid = any(one.get("outcome") == "completed" for one in facts.executions)
    maybe = any(one.get("outcome") in _MAYBE_DONE for one in facts.executions)
    if paid or maybe:
        return Verdict.YES, "no outside effect; " + ("an answer" if paid else "a call") + " may be paid a second time"
    return Verdict.YES, "no execution had an effect"


def _execution(facts: Facts, one: Mapping[str, Any]) -> Told:
    """What one execution says about doing it again."""
    cancel = facts.cancels.get(str(one.get("id")))
    if cancel == "owed":
        return Verdict.NO, f"its provider job {one.get('provider_job_id')} may still run: the cancel is not confirmed"
    if cancel == "given_up":
        return Verdict.UNKNOWN, f"its provider job {one.get('provider_job_id')} could not be cancelled"
    if facts.job.side_effects == "none":
        return Verdict.YES, "nothing outside depends on it"
    if one.get("outcome") == "completed":
        return Verdict.NO, f"attempt {one.get('attempt')} was done: its {facts.job.side_effects} effect happened"
    if one.get("outcome") in _MAYBE_DONE:
        return Verdict.UNKNOWN, f"attempt {one.get('attempt')} may have had its {facts.job.side_effects} effect"
    return Verdict.YES, "refused before any effect"


_RULES: Mapping[Item, Callable[[Facts], Told]] = {
    Item.CAUSE_FIXED: _cause,
    Item.CREDENTIALS: _credentials,
    Item.QUOTA: _quota,
    Item.INPUT: _input,
    Item.VERSIONS: _versions,
    Item.IDEMPOTENCY: _idempotency,
    Item.CONTRACT: _contract,
}
