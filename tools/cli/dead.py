"""How does dead or held work come back? Look, preview, replay (one or many), review, close."""

from __future__ import annotations

import time
import uuid
from typing import Annotated, Any

import typer

from tools.cli import show
from tools.cli.api import Exit, api, fail, part
from tools.cli.batches import Limit, show_batch, watch_batch
from tools.cli.jobs import JobId, Why
from tools.cli.show import AsJson

REASONS = ("provider_recovery", "product_bug", "quota_change", "owner_override")
_COLUMNS = ("job_id", "workflow", "owner_key", "reason", "last_error_class", "http_status", "attempt", "completed_at")
_NEEDED = "Needed for a replay."

Workflow = Annotated[str | None, typer.Option(help="Only this workflow.")]
Route = Annotated[str | None, typer.Option("--route-key", help="Only jobs of this route.")]
ReasonFilter = Annotated[str | None, typer.Option("--died-of", help="Only this reason.")]
Owner = Annotated[str | None, typer.Option("--owner-key", help="Only this owner's.")]
Since = Annotated[str | None, typer.Option(help="Died after: ms since the epoch, or a length such as 2h.")]
Until = Annotated[str | None, typer.Option(help="Died before: ms since the epoch, or a length such as 30m.")]


def moment(text: str | None) -> int | None:
    """Ms since the epoch from a number or from a length before now."""
    if text is None or text.isdigit():
        return None if text is None else int(text)
    units = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
    if text[-1:] not in units or not text[:-1].isdigit():
        raise typer.BadParameter(f"{text} is neither ms since the epoch nor a length such as 30m, 2h, 1d")
    return int((time.time() - int(text[:-1]) * units[text[-1]]) * 1000)


def dead_letters(
    ctx: typer.Context,
    workflow: Workflow = None,
    route: Route = None,
    reason: ReasonFilter = None,
    owner: Owner = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 25,
    as_json: AsJson = False,
) -> None:
    """List dead letters that nobody closed, newest first."""
    wanted = chosen(workflow, route, reason, owner, since, until)
    found = list(api(ctx).pages("/v1/ops/dead-letters", "dead_letters", limit, **wanted))
    show.as_json(found) if as_json else show.table(found, _COLUMNS, "dead letters")


def chosen(
    workflow: str | None, route: str | None, reason: str | None, owner: str | None, since: str | None, until: str | None
) -> dict[str, Any]:
    """The filter that the flags mean."""
    found = {
        "workflow": workflow,
        "route_key": route,
        "reason": reason,
        "owner_key": owner,
        "since": moment(since),
        "until": moment(until),
    }
    return {name: value for name, value in found.items() if value is not None}


def preview(
    ctx: typer.Context,
    job_id: Annotated[
        str | None, typer.Argument(metavar="[JOB]", help="One job; without it, all that the flags mean.")
    ] = None,
    workflow: Workflow = None,
    route: Route = None,
    reason: ReasonFilter = None,
    owner: Owner = None,
    since: Since = None,
    until: Until = None,
    to_route: Annotated[str, typer.Option("--to-route", help="The route a replay would take.")] = "same",
    size: Annotated[int, typer.Option(min=1, max=1000)] = 500,
    as_json: AsJson = False,
) -> None:
    """See what a replay would do: the checklist, the cost, what is refused and why. Changes nothing."""
    remote = api(ctx)
    if job_id is not None:
        found = remote.get(f"/v1/ops/jobs/{part(job_id)}/preview", route=to_route)
        show.as_json(found) if as_json else _one(found)
        return
    wanted = chosen(workflow, route, reason, owner, since, until)
    found = remote.post("/v1/ops/preview", {"filter": wanted, "route": to_route, "size": size})
    show.as_json(found) if as_json else _many(found)


def _one(found: dict[str, Any]) -> None:
    show.table(found["checks"], ("item", "verdict", "says"))
    cost = show.money(found.get("estimate_micros")) or "unknown"
    refused = found.get("refused")
    verdict = f"[red]refused[/]: {refused}" if refused else "[green]would be replayed[/]"
    show.console().print(f"{verdict}; estimated cost {cost}; route {found['route_key']}", highlight=False)


def _many(found: dict[str, Any]) -> None:
    more = " (there are more)" if found["more"] else ""
    line = f"{found['jobs']} dead letters{more}, {found['would_replay']} would be replayed"
    show.console().print(f"{line}, estimated cost {show.money(found['estimated_cost_micros'])}", highlight=False)
    show.facts({"oldest_died_at": found["oldest_died_at"], "without_estimate": found["without_estimate"]})
    for title in ("reasons", "refused"):
        if found[title]:
            show.console().print(f"  [dim]{title}[/] " + ", ".join(f"{k} {v}" for k, v in found[title].items()))
    refused = [one for one in found["items"] if "refused" in one]
    if refused:
        show.table(refused, ("job_id", "reason", "refused"), "refused")


def replay(
    ctx: typer.Context,
    job_id: Annotated[
        str | None, typer.Argument(metavar="[JOB]", help="One job; without it, a batch by the flags.")
    ] = None,
    owner_name: Annotated[str | None, typer.Option("--owner", help=f"Who answers for it. {_NEEDED}")] = None,
    reason: Annotated[str | None, typer.Option(help=f"One of {', '.join(REASONS)}. {_NEEDED}")] = None,
    text: Annotated[str | None, typer.Option(help=f"What happened, in your words. {_NEEDED}")] = None,
    to_route: Annotated[str, typer.Option("--to-route", help="`same`, or an approved fallback's route.")] = "same",
    cost_reviewed: Annotated[bool, typer.Option("--cost-reviewed", help=f"You looked at the cost. {_NEEDED}")] = False,
    max_attempts: Annotated[int | None, typer.Option(help="Stop: this many calls.")] = None,
    give_up_after: Annotated[int | None, typer.Option(help="Stop: minutes after which it gives up.")] = None,
    proof: Annotated[str | None, typer.Option(help="What shows that no effect is repeated.")] = None,
    request_id: Annotated[str | None, typer.Option(help="Makes asking twice harmless; else a new one.")] = None,
    workflow: Workflow = None,
    route: Route = None,
    died_of: ReasonFilter = None,
    owner: Owner = None,
    since: Since = None,
    until: Until = None,
    size: Annotated[int, typer.Option(min=1, max=1000, help="Batch: at most this many.")] = 500,
    rate: Annotated[int, typer.Option(min=1, help="Batch: jobs a minute.")] = 60,
    at_once: Annotated[int, typer.Option(min=1, max=50, help="Batch: open at the same time.")] = 10,
    error_threshold: Annotated[
        int | None, typer.Option(min=1, help="Batch: stops by itself after this many failures.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--watch", help="Batch: watch until it is over. It goes on without you.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring dead work back: one job, or with filters a batch that stops by itself."""
    stop = {"max_attempts": max_attempts, "give_up_after_ms": give_up_after * 60_000 if give_up_after else None}
    terms: dict[str, Any] = {
        "owner": owner_name,
        "reason": reason,
        "text": text,
        "route": to_route,
        "cost_reviewed": cost_reviewed,
        "stop": {name: value for name, value in stop.items() if value},
        "request_id": request_id or str(uuid.uuid4()),
        **({"proof": proof} if proof else {}),
    }
    _complete(terms)
    remote = api(ctx)
    if job_id is not None:
        done = remote.post(f"/v1/ops/jobs/{part(job_id)}/replay", terms)
        again = " (this request was carried out before)" if done.get("repeated") else ""
        show.as_json(done) if as_json else typer.echo(
            f"{job_id} generation {done['generation']} {done['status']}{again}"
        )
        return
    if error_threshold is None:
        raise typer.BadParameter("a batch needs --error-threshold: how many failures stop it")
    wanted = chosen(workflow, route, died_of, owner, since, until)
    body = {"terms": terms, "filter": wanted, "size": size, "rate_per_minute": rate, "at_once": at_once}
    made = remote.post("/v1/ops/batches", {**body, "error_threshold": error_threshold})
    if follow:
        made = watch_batch(remote, made["batch_id"], quiet=as_json)
    show.as_json(made) if as_json else show_batch(made)


def _complete(terms: dict[str, Any]) -> None:
    """Say everything that is missing at once."""
    flags = {"owner": "--owner", "reason": "--reason", "text": "--text", "cost_reviewed": "--cost-reviewed"}
    missing = [flag for name, flag in flags.items() if not terms[name]]
    missing += [] if terms["stop"] else ["--max-attempts or --give-up-after"]
    if missing:
        raise typer.BadParameter(f"a replay needs {', '.join(missing)}")
    if terms["reason"] not in REASONS:
        raise typer.BadParameter(f"use one of {', '.join(REASONS)}", param_hint="--reason")


def close(ctx: typer.Context, job_id: JobId, why: Why, as_json: AsJson = False) -> None:
    """Put a dead letter to rest."""
    _decide(ctx, job_id, "close", {"why": why}, as_json=as_json)


review = typer.Typer(no_args_is_help=True, help="Work that is held for a person's decision.")


@review.command("list")
def reviews(ctx: typer.Context, workflow: Workflow = None, limit: Limit = 25, as_json: AsJson = False) -> None:
    """What is held, and which decision is missing."""
    query = {"workflow": workflow} if workflow else {}
    found = list(api(ctx).pages("/v1/ops/reviews", "reviews", limit, **query))
    columns = ("job_id", "workflow", "owner_key", "reason", "route_key", "review_expires_at")
    show.as_json(found) if as_json else show.table(found, columns, "held for a decision")


@review.command()
def approve(
    ctx: typer.Context,
    job_id: JobId,
    why: Why,
    to_route: Annotated[str | None, typer.Option("--to-route", help="Go on through another approved route.")] = None,
    proof: Annotated[str | None, typer.Option(help="What shows that no effect is repeated.")] = None,
    as_json: AsJson = False,
) -> None:
    """Let a held job go on."""
    more = {"route": to_route, "proof": proof}
    body = {"why": why, **{name: value for name, value in more.items() if value}}
    _decide(ctx, job_id, "approve", body, as_json=as_json)


@review.command()
def reject(ctx: typer.Context, job_id: JobId, why: Why, as_json: AsJson = False) -> None:
    """Stop a held job for good."""
    _decide(ctx, job_id, "reject", {"why": why}, as_json=as_json)


def _decide(ctx: typer.Context, job_id: str, what: str, body: dict[str, Any], *, as_json: bool) -> None:
    job = api(ctx).post(f"/v1/ops/jobs/{part(job_id)}/{what}", body)
    if job is None:
        fail(Exit.UNAVAILABLE, "The answer was empty.")
    show.as_json(job) if as_json else typer.echo(f"{job_id} {job['status']} ({job['reason']})")
