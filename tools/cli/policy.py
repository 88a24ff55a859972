"""What do the policies say, are they sound, and what would they do with this reply?"""

from __future__ import annotations

import datetime as dt
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from breakwater.domain import events as ev
from breakwater.domain.budget import PEOPLE_WAIT
from breakwater.domain.classify import classify
from breakwater.domain.decide import Decision, decide
from breakwater.domain.errors import BreakwaterError, InvalidPolicy
from breakwater.domain.explain import WORDS, Row, example_job, explain, length, of_lane
from breakwater.domain.job import Job
from breakwater.domain.policy import Policy
from breakwater.domain.routes import Catalogue
from breakwater.domain.signals import Reply, Signal, TransportFailure
from breakwater.domain.states import Lane, Visibility
from breakwater.domain.timing import SECOND
from breakwater.policy_yaml import load, load_all
from tools.cli.show import WIDTH_OF_A_PIPE

POLICIES = Path(__file__).resolve().parents[2] / "shared" / "policies"

app = typer.Typer(no_args_is_help=True, help="Check and explain the policy files.")
Folder = Annotated[Path, typer.Option("--policies", help="The folder with the policy files.")]
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


@app.command()
def check(
    directory: Annotated[Path, typer.Argument(help="The folder with the policy files.")] = POLICIES,
    strict: Annotated[bool, typer.Option(help="Let warnings fail too.")] = False,
) -> None:
    """Validate all files: every problem with its file, key and reason. Exit 1 if there is one."""
    console, errors = Console(soft_wrap=True), Console(stderr=True, soft_wrap=True)
    try:
        loaded = load_all(directory, dt.datetime.now(dt.UTC).date())
    except InvalidPolicy as error:
        errors.print(str(error), style="red", markup=False)
        raise typer.Exit(1) from error
    for warning in loaded.warnings:
        errors.print(f"warning: {warning}", style="yellow", markup=False)
    catalogue = loaded.catalogue
    console.print(f"{len(catalogue.workflows())} workflows and {len(catalogue.route_keys())} routes are sound.")
    if strict and loaded.warnings:
        raise typer.Exit(1)


@app.command("explain")
def explain_workflow(workflow: str, policies: Folder = POLICIES, as_json: AsJson = False) -> None:
    """Print what happens at every signal, when and why."""
    catalogue = _catalogue(policies)
    policy = _policy(catalogue, workflow)
    rows = explain(policy, catalogue)
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows], indent=1))
        return
    console = Console(width=None if sys.stdout.isatty() else WIDTH_OF_A_PIPE)
    for lane in dict.fromkeys(row.lane for row in rows):
        console.print(_table(policy, rows, lane))


def _table(policy: Policy, rows: tuple[Row, ...], lane: Lane) -> Table:
    budget = policy.lane(lane)
    age = length(budget.max_queue_age_ms)
    title = f"{policy.workflow}, {lane.value}: {budget.max_attempts} attempts, at most {age} old"
    table = Table(title=title, title_justify="left", show_lines=False)
    for heading in ("signal", "moment", "what happens", "when", "reason", "route closed for", "why"):
        table.add_column(heading, overflow="fold")
    always, others = of_lane(rows, lane)
    if always is not None:
        table.add_row("any signal", always.moments[0].value, *_outcome(always), end_section=True)
    for row in others:
        moments = ", ".join(moment.value for moment in row.moments)
        table.add_row(f"{row.error_class.value}: {WORDS[row.error_class]}", moments, *_outcome(row))
    return table


def _outcome(row: Row) -> tuple[str, ...]:
    return row.action, row.when, row.reason, row.closes_route or "", row.why


def decide_reply(
    reply: Annotated[Path, typer.Option(help="A recorded reply: status, headers and body, or a transport failure.")],
    workflow: Annotated[str, typer.Option(help="The workflow whose policy decides.")],
    policies: Folder = POLICIES,
    route: Annotated[str | None, typer.Option(help="The route that answered; else the workflow's own.")] = None,
    lane: Annotated[Lane | None, typer.Option(help="The job's lane; else the one it starts in.")] = None,
    attempt: Annotated[int, typer.Option(min=1, help="Calls made so far.")] = 1,
    partial: Annotated[bool, typer.Option(help="Part of the answer was seen already.")] = False,
    draw: Annotated[float, typer.Option(min=0, max=0.999999, help="The dice of the back-off.")] = 0.5,
    as_json: AsJson = False,
) -> None:
    """Replay one recorded reply: what it means and what the policy does with it."""
    catalogue = _catalogue(policies)
    policy = _policy(catalogue, workflow)
    taken = catalogue.route(route or policy.route)
    if taken is None:
        raise typer.BadParameter(f"no such route; known are {', '.join(catalogue.route_keys())}", param_hint="--route")
    provider, evidence = _reply(reply, taken.provider)
    now = evidence.received_at or int(dt.datetime.now(dt.UTC).timestamp() * SECOND)
    job = example_job(policy, taken, lane or policy.start_lane(interactive=True), attempt, now)
    seen = Visibility.PARTIAL_OUTPUT if partial else _unseen(job)
    signal = classify(provider, evidence, route_key=taken.route_key, visibility=seen)
    in_run = job.lane is Lane.INTERACTIVE_ADMISSION and not job.stream
    decision = decide(job, signal, policy, catalogue, taken, now, draw, in_run=in_run)
    _show(signal, decision, now, as_json=as_json)


def _unseen(job: Job) -> Visibility:
    return Visibility.BEFORE_FIRST_TOKEN if job.lane in PEOPLE_WAIT else Visibility.BACKGROUND_ONLY


def _reply(path: Path, provider: str) -> tuple[str, Reply]:
    """The reply of a file: bare, or under `reply` beside the name of its provider."""
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        fields = dict(data.get("reply", data))
        transport = fields.pop("transport", None)
        headers = {key.lower(): str(value) for key, value in fields.pop("headers", {}).items()}
        failure = TransportFailure(transport) if transport else None
        return data.get("provider", provider), Reply(transport=failure, headers=headers, **fields)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise typer.BadParameter(f"{path} is no recorded reply: {error}", param_hint="--reply") from error


def _show(signal: Signal, decision: Decision, now: int, *, as_json: bool) -> None:
    facts = {key: value for key, value in asdict(signal).items() if value is not None}
    answer: dict[str, Any] = {"action": decision.action, "why": decision.why}
    if decision.reason is not None:
        answer["reason"] = decision.reason.value
    event = decision.event
    if isinstance(event, ev.RetryScheduled):
        answer["wait_ms"] = event.at - now
        answer |= {"lane": event.lane.value} if event.lane else {}
        answer |= {"possible_duplicate": True} if event.possible_duplicate else {}
    if isinstance(event, ev.FellBack):
        answer |= {"route_key": event.route_key, "fallback": event.fallback, "clauses": dict(event.clauses)}
    if decision.close is not None:
        answer["closes_route_ms"] = decision.close.until - now
    if as_json:
        typer.echo(json.dumps({"signal": facts, "decision": answer}, indent=1))
        return
    console = Console(soft_wrap=True)
    for title, values in (("signal", facts), ("decision", answer)):
        console.print(title, style="bold")
        for key, value in values.items():
            console.print(f"  {key}: {value}", markup=False, highlight=False)


def _catalogue(folder: Path) -> Catalogue:
    try:
        return load(folder)
    except InvalidPolicy as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error


def _policy(catalogue: Catalogue, workflow: str) -> Policy:
    try:
        return catalogue.need_policy(workflow)
    except BreakwaterError as error:
        raise typer.BadParameter(f"no such workflow; known are {', '.join(catalogue.workflows())}") from error
