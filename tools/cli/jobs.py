"""What is a job doing? Submit one, watch it, cancel it, list them, read one, and ask which layer holds it."""

from __future__ import annotations

import json
import sys
import time
import uuid
from pathlib import Path
from typing import Annotated, Any

import typer

from tools.cli import show
from tools.cli.api import Api, Exit, api, fail, part
from tools.cli.show import AsJson

JobId = Annotated[str, typer.Argument(metavar="JOB", help="A job id.")]
Why = Annotated[str, typer.Option(help="Why; goes to the audit.")]
_COLUMNS = ("job_id", "workflow", "status", "reason", "attempt", "route_key", "created_at")


def submit(
    ctx: typer.Context,
    workflow: Annotated[str, typer.Argument(help="The workflow.")],
    text: Annotated[str | None, typer.Option(help="A user message, or the prompt of a media workflow.")] = None,
    body: Annotated[Path | None, typer.Option(help="A file with the JSON `input`; - reads standard input.")] = None,
    key: Annotated[str | None, typer.Option(help="Idempotency key; else a new one.")] = None,
    media: Annotated[bool, typer.Option(help="Send the text as a media prompt.")] = False,
    follow: Annotated[bool, typer.Option("--watch", help="Watch it until it ends.")] = False,
    as_json: AsJson = False,
) -> None:
    """Submit one job. The same key again finds the same job."""
    content = _input(text, body, media=media)
    used = key or str(uuid.uuid4())
    remote = api(ctx)
    job = remote.post("/v1/jobs", {"workflow": workflow, "input": content}, {"idempotency-key": used})
    if as_json and not follow:
        show.as_json(job)
        return
    if not follow:
        known = " (was there before)" if job.get("replayed") else ""
        typer.echo(f"{job['job_id']} {job['status']}{known}, idempotency key {used}")
        return
    _follow(remote, job["job_id"], 600, as_json=as_json)


def _input(text: str | None, body: Path | None, *, media: bool) -> Any:
    if (text is None) == (body is None):
        raise typer.BadParameter("give either --text or --body")
    if text is not None:
        return {"prompt": text} if media else {"messages": [{"role": "user", "content": text}]}
    try:
        return json.loads(sys.stdin.read() if str(body) == "-" else Path(str(body)).read_text())
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"{body} is no JSON: {error}", param_hint="--body") from error


def watch(
    ctx: typer.Context,
    job_id: JobId,
    seconds: Annotated[float, typer.Option(help="Give up after this long.")] = 600,
    as_json: AsJson = False,
) -> None:
    """Watch a job until it is final, at the pace the API asks for. Exit 6 when it ends without success."""
    _follow(api(ctx), job_id, seconds, as_json=as_json)


def _follow(remote: Api, job_id: str, seconds: float, *, as_json: bool) -> None:
    end, last = time.monotonic() + seconds, ""
    while True:
        job = remote.get(f"/v1/jobs/{part(job_id)}")
        line = f"{job['status']} ({job['reason']}), attempt {job['attempt']} of {job['max_attempts']}"
        if line != last and not as_json:
            show.console().print(f"{time.strftime('%H:%M:%S')} {line}", highlight=False)
        last = line
        if job["final"]:
            break
        if time.monotonic() > end:
            fail(
                Exit.TIMED_OUT,
                f"{job_id} is still {job['status']} after {seconds:g} s.",
                f"breakwater diagnose {job_id}",
            )
        time.sleep(min(job["next_poll_after_ms"] / 1000, max(0.0, end - time.monotonic()) + 0.01))
    _ended(job, as_json=as_json)


def _ended(job: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        show.as_json(job)
    elif text := (job.get("result") or {}).get("text"):
        typer.echo(text)
    if job["status"] != "succeeded":
        raise typer.Exit(int(Exit.NO_SUCCESS))


def cancel(
    ctx: typer.Context,
    job_id: JobId,
    why: Annotated[str | None, typer.Option(help="As operator: why. Without it, as the job's owner.")] = None,
    as_json: AsJson = False,
) -> None:
    """Stop a job, as its owner or (with --why) as an operator."""
    remote = api(ctx)
    path = f"/v1/ops/jobs/{part(job_id)}/cancel" if why else f"/v1/jobs/{part(job_id)}/cancel"
    job = remote.post(path, {"why": why} if why else None)
    show.as_json(job) if as_json else typer.echo(f"{job_id} {job['status']} ({job['reason']})")


def jobs(
    ctx: typer.Context,
    owner: Annotated[str | None, typer.Option(help="As operator: whose jobs.")] = None,
    workflow: Annotated[str | None, typer.Option(help="With --key: the workflow of the intent.")] = None,
    key: Annotated[str | None, typer.Option(help="The client's own idempotency key.")] = None,
    user: Annotated[str | None, typer.Option(help="With --key: the user_ref of the intent.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 25,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first: your own, or any owner's as operator."""
    remote = api(ctx)
    if owner is None:
        found = list(remote.pages("/v1/jobs", "jobs", limit))
    else:
        query = {"owner_key": owner, "workflow": workflow, "key": key, "user_ref": user}
        found = list(remote.pages("/v1/ops/jobs", "jobs", limit, **query))
    show.as_json(found) if as_json else show.table(found, _COLUMNS)


def job(
    ctx: typer.Context,
    job_id: JobId,
    executions: Annotated[bool, typer.Option("--executions", help="Every attempt with its ids.")] = False,
    as_json: AsJson = False,
) -> None:
    """Everything about one job, and with --executions every call that was made for it."""
    remote = api(ctx)
    found = _either(remote, job_id, "")
    if executions:
        found = {**found, "executions": _either(remote, job_id, "/executions")["executions"]}
    if as_json:
        show.as_json(found)
        return
    show.facts({name: value for name, value in found.items() if not isinstance(value, list | dict)})
    if executions:
        columns = ("generation", "attempt", "route_key", "outcome", "error_class", "http_status", "opened_at")
        show.table(found["executions"], (*columns, "provider_job_id", "cost_micros"), "executions")


def diagnose(ctx: typer.Context, job_id: JobId, as_json: AsJson = False) -> None:
    """Which layer holds this job, since when, what happens next, and what you can do."""
    found = _either(api(ctx), job_id, "/diagnosis")
    if as_json:
        show.as_json(found)
        return
    out = show.console()
    out.print(f"[bold]{found['layer']}[/] {show.coloured(found['condition'])}: {found['verdict']}", highlight=False)
    upcoming = found["next"]
    out.print(f"next: {upcoming['what']}" + (f", {show.when(upcoming['at'])}" if upcoming.get("at") else ""))
    for one in found["can_do"]:
        out.print(f"  {one['by']} can {one['says']}: [cyan]{one['command']}[/]", highlight=False)
    for one in found["evidence"]:
        mark = {"passed": "[green]✓[/]", "here": "[bold yellow]→[/]"}.get(one["mark"], "[dim]·[/]")
        told = ", ".join(
            f"{name} {show.cell(name, value)}" for name, value in one.items() if name not in ("layer", "mark")
        )
        out.print(f"{mark} {one['layer']:<9} [dim]{told}[/]", highlight=False)


def _either(remote: Api, job_id: str, tail: str) -> Any:
    """As operator if the key may, else as the job's owner."""
    answer = remote.send("GET", f"/v1/ops/jobs/{part(job_id)}{tail}", params={})
    if answer.status_code in (401, 403):
        return remote.get(f"/v1/jobs/{part(job_id)}{tail}")
    return remote.get(f"/v1/ops/jobs/{part(job_id)}{tail}") if not answer.is_success else answer.json()
