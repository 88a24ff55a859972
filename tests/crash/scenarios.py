"""What happens to jobs, told from outside; each scenario is run once for every call it makes and every way to die."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from breakwater.domain.callbacks import Retry
from breakwater.domain.errors import Rejected, TooLate
from breakwater.domain.job import Job
from breakwater.domain.records import effect_child_key
from breakwater.domain.routes import Catalogue
from breakwater.domain.schedules import load_schedules
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Reason, Status
from breakwater.usecases.again import again
from breakwater.usecases.budgets import next_period, period_of
from breakwater.usecases.effects import effect_id
from breakwater.usecases.redeliver import redeliver
from breakwater.usecases.replay import replay
from breakwater.usecases.review import approve
from breakwater.usecases.tick import tick
from tests.crash import checks
from tests.crash.stage import Stage
from tests.fakes.outside import refusal
from tests.support.catalogue import policy, route
from tests.support.dead import terms as operators_terms
from tests.support.limited import run_in
from tests.support.told import ENDPOINTS

_HOOK: dict[str, Any] = {
    "background": True, "webhook": "openai", "tools": True, "json_schema": True, "context_window": 400_000,
}  # fmt: skip


_TELLING = ("knows_us", "own_id")  # providers that are never asked: by our metadata, by their own id
_PEOPLE: dict[str, Any] = {
    "lanes": {
        "interactive_admission": {"max_wait_ms": 4000, "max_attempts": 2},
        "background_retry": {"max_queue_age_ms": 900_000, "max_attempts": 3, "require_idempotency_key": False},
    },
}


def catalogue() -> Catalogue:
    """Every workflow of the scenarios; each attempt takes two slots."""
    scarce = {"limits": {"concurrency": 2, "per_owner": 2}}
    routes = [
        route("plain", **scarce),
        route("other", credential="second", **scarce),
        route("hook", capabilities=_HOOK, **scarce),
        route("poll", capabilities={"background": True, "context_window": 400_000}, **scarce),
        route("narrow", limits={"concurrency": 1}),
        route("paced", limits={"requests_per_minute": 10}),
        *(route(name, capabilities={**_HOOK, "webhook": name}, **scarce) for name in _TELLING),
    ]
    fallback = {
        "name": "second_account", "route": "other", "approved_by": "ops", "approved_on": "2026-11-01",
        "contract_version": "1",
    }  # fmt: skip
    policies = [
        policy("sync"),
        policy("narrow", route="narrow"),
        policy("paced", route="paced"),
        policy("summary", route="hook", mode="background", webhook_grace_ms=120_000),
        policy("polled", route="poll", mode="background"),
        policy("paid", side_effects="paid"),
        policy("external", route="hook", mode="background", side_effects="external", webhook_grace_ms=120_000),
        policy("fallback", fallbacks=[fallback]),
        policy("guarded", requires_approval=True),
        policy("chat", ai_api_queueing_strategy=_PEOPLE),
        *(policy(name, route=name, mode="background", provider_deadline_ms=600_000) for name in _TELLING),
        *(policy(f"paid_{name}", route=name, mode="background", side_effects="paid") for name in _TELLING),
    ]
    return Catalogue(
        routes={one.route_key: one for one in routes},
        policies={one.workflow: one for one in policies},
        endpoints=list(ENDPOINTS),
        default_route="plain",
    )


@dataclass(frozen=True)
class Scenario:
    """`play` runs it to the end. `ends` lists what the job may be afterwards, beside `usual` where nothing fails."""

    play: Callable[[Stage], None]
    usual: Status
    ends: frozenset[Status]
    most_calls: int  # the policy's bound on calls to the provider, whatever fails
    check: Callable[[Stage, Job], None] = lambda _stage, _job: None


def _play(workflow: str) -> Callable[[Stage], None]:
    def play(stage: Stage) -> None:
        stage.ask_for(workflow)
        stage.run()

    return play


def _failing(workflow: str, *errors: tuple[ErrorClass, int]) -> Callable[[Stage], None]:
    def play(stage: Stage) -> None:
        stage.provider.script = [refusal(error, status) for error, status in errors]
        stage.ask_for(workflow)
        stage.run()

    return play


def _polled(stage: Stage) -> None:
    stage.provider_tells = False
    stage.ask_for("polled")
    stage.run()


def _lost_webhook(stage: Stage) -> None:
    stage.provider_tells = False
    stage.ask_for("summary")
    stage.run()


def _replayed_webhook(stage: Stage) -> None:
    """The same delivery three times, then a reordered and a very late one."""
    stage.provider_tells = False
    job_id = stage.ask_for("summary")
    start = stage.clock.now()
    for delay, name in ((21_000, "wh-1"), (21_000, "wh-1"), (25_000, "wh-1"), (26_000, "wh-2"), (7_200_000, "wh-3")):
        stage.later(start + delay, lambda name=name: stage.tell("resp_1", name) if stage.provider.jobs else None)
    stage.run()
    assert stage.job(job_id).final


def _early_webhook(stage: Stage) -> None:
    """The provider is done, and says so, before the create call is answered."""

    def hurry(call: Any) -> Any:
        taken = stage.provider.accept(call)
        stage.provider.finish(taken.provider_job_id)
        stage.tell(taken.provider_job_id)
        stage.pump()
        return taken

    stage.provider.script = [hurry]
    stage.ask_for("summary")
    stage.run()


def _carried(workflow: str, *, early: bool = False) -> Callable[[Stage], None]:
    """The webhook is the result; told three times, and `early` once before the create call is answered."""

    def play(stage: Stage) -> None:
        stage.carried_to = workflow.removeprefix("paid_")

        def hurry(call: Any) -> Any:
            taken = stage.provider.accept(call)
            stage.provider.finish(taken.provider_job_id)
            stage.tell(taken.provider_job_id, f"wh-{taken.provider_job_id}")
            stage.pump()
            return taken

        stage.provider.script = [hurry] if early else []
        stage.ask_for(workflow)
        start = stage.clock.now()
        for delay, name in ((21_000, "wh-1"), (25_000, "wh-1"), (7_200_000, "wh-2")):
            stage.later(start + delay, lambda name=name: stage.tell("resp_1", name) if stage.provider.jobs else None)
        stage.run()

    return play


def _never_asked(stage: Stage, job: Job) -> None:
    assert stage.provider.fetched == []
    _noted_by_its_own_id(stage, job)


def _noted_by_its_own_id(stage: Stage, job: Job) -> None:
    """Where the provider can't name our job, its own id leads to it."""
    noted = {pk.rpartition("#")[2] for pk, _ in stage.store.items if pk.startswith("PROVIDER#")}
    taken = {job.provider_job_id} if job.provider_job_id and job.workflow.endswith("own_id") else set()
    assert taken <= noted


def _told_and_paid(stage: Stage, job: Job) -> None:
    _reviewed_when_unknown(stage, job)
    _never_asked(stage, job)


def _cancel_pending(stage: Stage) -> None:
    job_id = stage.ask_for("sync")
    stage.ask_to_cancel(job_id)
    stage.ask_to_cancel(job_id)
    stage.run()


def _cancel_waiting(stage: Stage) -> None:
    stage.provider.script = [refusal(ErrorClass.OVERLOAD, 503, retry_after_ms=60_000)]
    job_id = stage.ask_for("sync")
    stage.later(stage.clock.now() + 20_000, lambda: stage.ask_to_cancel(job_id))
    stage.run()


def _cancel_leased(stage: Stage) -> None:
    """The user cancels while a worker waits for the provider's answer."""
    answers: list[Any] = []

    def cancelled_meanwhile(call: Any) -> Any:
        answers.append(stage.ask_to_cancel(call.job_id))
        return stage.provider._next(call)

    stage.provider.script = [cancelled_meanwhile]
    stage.ask_for("sync")
    stage.run()


def _cancel_accepted(stage: Stage) -> None:
    """The same, where the provider then takes the work in the background."""

    def cancelled_meanwhile(call: Any) -> Any:
        stage.ask_to_cancel(call.job_id)
        return stage.provider.accept(call)

    stage.provider.script = [cancelled_meanwhile]
    stage.ask_for("summary")
    stage.run()


def _cancel_at_provider(stage: Stage) -> None:
    job_id = stage.ask_for("summary")
    stage.later(stage.clock.now() + 10_000, lambda: stage.ask_to_cancel(job_id))
    stage.run()


def _cancel_in_review(stage: Stage) -> None:
    job_id = stage.ask_for("guarded")
    stage.later(stage.clock.now() + 10_000, lambda: stage.ask_to_cancel(job_id))
    stage.run()


def _manual_retry(stage: Stage) -> None:
    """A dead letter that its user brings back, once."""
    stage.provider.script = [refusal(ErrorClass.SERVER_FAULT, 500)] * 3
    job_id = stage.ask_for("sync")
    stage.run()

    def retry() -> Any:
        job, policy = stage.job(job_id), stage.deps.catalogue.need_policy("sync")
        return again(stage.deps, job, policy, "acme")

    if stage.job(job_id).status is Status.DEAD_LETTER:
        first, second = stage.client(retry), stage.client(retry)
        assert not isinstance(first, Rejected) or isinstance(second, Rejected)
        stage.run()
        assert stage.job(job_id).generation == 2


def _operators_replay(stage: Stage) -> None:
    """A dead letter that an operator replays, asked twice, while what it owed may not be told yet."""
    stage.provider.script = [refusal(ErrorClass.SERVER_FAULT, 500)] * 3
    job_id = stage.ask_for("sync")

    def back() -> None:
        if stage.job(job_id).status is Status.DEAD_LETTER and stage.job(job_id).generation == 1:
            terms = operators_terms()
            first = stage.client(lambda: replay(stage.deps, stage.job(job_id), terms, "alex"))
            second = stage.client(lambda: replay(stage.deps, stage.job(job_id), terms, "alex"))
            if not isinstance(first, Rejected):  # the route is open again
                assert second.repeated
                assert stage.job(job_id).generation == 2

    for seconds in (20, 260, 1_800):
        stage.later(stage.clock.now() + seconds * 1_000, back)
    stage.run()


def _approved(stage: Stage) -> None:
    """A person agrees, twice."""
    job_id = stage.ask_for("guarded")

    def agree() -> None:
        if stage.job(job_id).in_review:
            stage.client(lambda: approve(stage.deps, stage.job(job_id), "lead", proof=True))
            stage.client(lambda: approve(stage.deps, stage.job(job_id), "lead", proof=True))

    for minutes in (1, 10, 20):
        stage.later(stage.clock.now() + minutes * 60_000, agree)
    stage.run()


def _while_somebody_waits(stage: Stage) -> None:
    """`/run`, with a short retry inside; a client that got no answer asks again with its key."""
    stage.provider.script = [refusal(ErrorClass.OVERLOAD, 503)]
    stage.client(lambda: run_in(stage, "chat", "r-1"))
    stage.run()


def _two_in_line(stage: Stage) -> None:
    """Two jobs for one slot: the second waits, and is woken when the first is done."""
    first: list[str] = []

    def slow(call: Any) -> Any:
        first.append(call.job_id)
        stage.ask_for("narrow", "k-2")
        stage.pump()
        return stage.provider._next(call)

    stage.provider.script = [slow]
    stage.ask_for("narrow", "k-1")
    stage.run()


def _in_line_for_a_rate(stage: Stage) -> None:
    """Three jobs where a minute's share is one at once: those who are refused leave the line at the rate's pace."""
    for n in range(3):
        stage.ask_for("paced", f"k-{n}")
    stage.run()


def _called_back(stage: Stage) -> None:
    """The receiver is down for two tries, and the owner asks for the message once more when it has it."""
    stage.control.owners["acme"] = {"callback_hosts": ["hooks.example.com"]}
    stage.notifier.script = [Retry("http_500"), Retry("timeout")]
    job_id = stage.ask_for("sync", callback_url="https://hooks.example.com/x")
    stage.run()
    stage.client(lambda: redeliver(stage.deps, stage.job(job_id), "acme"))
    stage.run()


def _told_under_one_id(stage: Stage, job: Job) -> None:
    """However often it was sent; and the job does not pretend otherwise."""
    assert {one.webhook_id for one in stage.notifier.sent} == {effect_id(job, "notify#1")}
    assert job.notify_reason is None
    assert stage.store.child(job.job_id, effect_child_key("notify#1")) is not None


def _held_for_a_budget(stage: Stage) -> None:
    """Spent before the month began to end: the job waits for the next one, and nobody decides."""
    stage.clock.advance(next_period(stage.clock.now()) - 5_400_000 - stage.clock.now())
    stage.control.owners["acme"] = {"budgets": {"hard_micros": 50_000}}
    month = period_of(stage.clock.now())
    line = {"owner_key": "acme", "workflow": "other", "period": month, "execution_id": "x", "cost_micros": 50_000}
    stage.store.count_usage(line | {"job_id": "another"})
    stage.ask_for("sync")
    stage.run()


def _only_in_the_next_month(stage: Stage, job: Job) -> None:
    """Whatever failed: not a call before its first moment."""
    opened = [after for event, _, after in stage.log.steps if event == "Leased"]
    assert opened
    assert all(period_of(one.updated_at) > period_of(job.created_at) for one in opened)


def _scheduled(stage: Stage) -> None:
    """Three looks at one window, as three minutes make them, each a process of its own."""
    stage.clock.advance(-stage.clock.now() % 600_000)
    for _ in range(3):
        stage.process(lambda: tick(stage.deps, [_EVERY_TEN_MINUTES], lambda: 50_000))
        stage.clock.advance(59_000)
    stage.run()


def _one_job_a_window(stage: Stage, job: Job) -> None:
    assert [one.job_id for one in checks.jobs_of(stage)] == [job.job_id]
    assert stage.store.scheduled("nightly").job_id == job.job_id


def _too_late(stage: Stage) -> None:
    """A cancel after the success says so and changes nothing."""
    job_id = stage.ask_for("sync")
    stage.run()
    answer = stage.ask_to_cancel(job_id)
    assert isinstance(answer, TooLate) or stage.job(job_id).status is not Status.SUCCEEDED
    stage.run()


def _reviewed_when_unknown(stage: Stage, job: Job) -> None:
    """Work with side effects is called once; what nobody knows is held for a person."""
    assert checks.calls_for(stage, job) <= 1
    if job.status is not Status.SUCCEEDED:  # and was not decided in time
        assert job.reason is Reason.REVIEW_EXPIRED
        held = [after for event, _, after in stage.log.steps if event == "HeldForReview"]
        assert [one.reason for one in held] == [Reason.OUTCOME_UNKNOWN]


_EVERY_TEN_MINUTES = load_schedules(
    [
        {
            "name": "nightly",
            "workflow": "sync",
            "owner_key": "acme",
            "every": "10m",
            "input": {"messages": [{"role": "user", "content": "window ${window_start}"}]},
        }
    ]
)["nightly"]
_S, _D, _C = Status.SUCCEEDED, Status.DEAD_LETTER, Status.CANCELLED
_OVERLOAD, _FAULT = (ErrorClass.OVERLOAD, 503), (ErrorClass.SERVER_FAULT, 500)


def _scenario(play: Callable[[Stage], None], usual: Status, *ends: Status, calls: int = 3, **more: Any) -> Scenario:
    return Scenario(play, usual, frozenset({usual, *ends}), calls, **more)


SCENARIOS: Mapping[str, Scenario] = {
    "synchronous": _scenario(_play("sync"), _S),
    "background with webhook": _scenario(_play("summary"), _S),
    "background with a webhook that never comes": _scenario(_lost_webhook, _S),
    "background with polls": _scenario(_polled, _S),
    "retry": _scenario(_failing("sync", _OVERLOAD), _S, _D),
    "fallback": _scenario(_failing("fallback", _FAULT, _FAULT, _FAULT), _S, _D, calls=4),
    "caller fault": _scenario(_failing("sync", (ErrorClass.CALLER_FAULT, 400)), _D, _S),
    "attempts used up": _scenario(_failing("sync", _FAULT, _FAULT, _FAULT), _D, _S),
    "paid": _scenario(_play("paid"), _S, _D, calls=1, check=_reviewed_when_unknown),
    "external": _scenario(_play("external"), _S, _D, calls=1, check=_reviewed_when_unknown),
    "cancel while pending": _scenario(_cancel_pending, _C, calls=0),
    "cancel while waiting": _scenario(_cancel_waiting, _C, _S),
    "cancel while leased": _scenario(_cancel_leased, _C, calls=1),
    "cancel while the provider accepts": _scenario(_cancel_accepted, _C, calls=1),
    "cancel at the provider": _scenario(_cancel_at_provider, _C, _S),
    "cancel in review": _scenario(_cancel_in_review, _C, calls=0),
    "cancel after success": _scenario(_too_late, _S, _C),
    "replayed webhook": _scenario(_replayed_webhook, _S),
    "webhook before the answer": _scenario(_early_webhook, _S),
    "result in the webhook": _scenario(_carried("knows_us"), _S, check=_never_asked),
    "result in the webhook, by the provider's id": _scenario(_carried("own_id"), _S, check=_never_asked),
    "result before the answer": _scenario(_carried("knows_us", early=True), _S, check=_never_asked),
    "result before the answer, by the provider's id": _scenario(_carried("own_id", early=True), _S, check=_never_asked),
    "paid result in the webhook": _scenario(_carried("paid_knows_us"), _S, _D, calls=1, check=_told_and_paid),
    "told at a callback": _scenario(_called_back, _S, check=_told_under_one_id),
    "held for a budget": _scenario(_held_for_a_budget, _S, check=_only_in_the_next_month),
    "scheduled": _scenario(_scheduled, _S, check=_one_job_a_window),
    "manual retry": _scenario(_manual_retry, _S, _D, calls=6),
    "operator's replay": _scenario(_operators_replay, _S, _D, calls=6),
    "approved": _scenario(_approved, _S, _D),
    "somebody waits": _scenario(_while_somebody_waits, _S, _D, calls=5),
    "two in line": _scenario(_two_in_line, _S, calls=3),
    "in line for a rate": _scenario(_in_line_for_a_rate, _S),
}
