"""Where does a replay of many stand, and how is it paused, resumed, aborted? It goes on without its terminal."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from tools.cli import show
from tools.cli.api import Api, api, part
from tools.cli.jobs import Why
from tools.cli.show import AsJson

Limit = Annotated[int, typer.Option(min=1, max=1000, help="At most this many.")]


def show_batch(found: dict[str, Any]) -> None:
    """Where a batch stands."""
    counts = ", ".join(f"{name} {count}" for name, count in found["counts"].items() if count)
    line = f"{found['batch_id']} {show.coloured(found['status'])}: {found['opened']} of {found['total']} opened"
    show.console().print(f"{line}, {len(found['open'])} open" + (f", {counts}" if counts else ""), highlight=False)
    show.facts(found, ("why", "next_look_at"))
    refused = [{"job_id": name, "refused": why} for name, why in (found.get("refused") or {}).items()]
    if refused:
        show.table(refused, ("job_id", "refused"), "refused")


def watch_batch(remote: Api, batch_id: str, *, quiet: bool) -> dict[str, Any]:
    """Look every few seconds until it is over or paused; leaving changes nothing."""
    while True:
        found: dict[str, Any] = remote.get(f"/v1/ops/batches/{part(batch_id)}")
        if not quiet:
            show_batch({**found, "refused": {}})
        if found["status"] in ("done", "stopped", "aborted", "paused") and not found["open"]:
            return found
        time.sleep(5)


app = typer.Typer(no_args_is_help=True, help="Replays of many: list, watch, pause, resume, abort.")
BatchId = Annotated[str, typer.Argument(metavar="BATCH", help="A batch id.")]


@app.command("list")
def list_batches(ctx: typer.Context, limit: Limit = 25, as_json: AsJson = False) -> None:
    """Batches, newest first."""
    found = list(api(ctx).pages("/v1/ops/batches", "batches", limit))
    columns = ("batch_id", "status", "total", "opened", "created_by", "created_at")
    show.as_json(found) if as_json else show.table(found, columns, "batches")


@app.command("show")
def one_batch(
    ctx: typer.Context,
    batch_id: BatchId,
    follow: Annotated[bool, typer.Option("--watch", help="Until it is over.")] = False,
    as_json: AsJson = False,
) -> None:
    """Where one batch stands."""
    remote = api(ctx)
    found = watch_batch(remote, batch_id, quiet=as_json) if follow else remote.get(f"/v1/ops/batches/{part(batch_id)}")
    show.as_json(found) if as_json else show_batch(found)


def _turn(ctx: typer.Context, batch_id: str, turn: str, why: str, *, as_json: bool) -> None:
    found = api(ctx).post(f"/v1/ops/batches/{part(batch_id)}/{turn}", {"why": why})
    show.as_json(found) if as_json else show_batch(found)


@app.command()
def pause(ctx: typer.Context, batch_id: BatchId, why: Why, as_json: AsJson = False) -> None:
    """Open nothing more; what is open ends."""
    _turn(ctx, batch_id, "pause", why, as_json=as_json)


@app.command()
def resume(ctx: typer.Context, batch_id: BatchId, why: Why, as_json: AsJson = False) -> None:
    """Go on after a pause."""
    _turn(ctx, batch_id, "resume", why, as_json=as_json)


@app.command()
def abort(ctx: typer.Context, batch_id: BatchId, why: Why, as_json: AsJson = False) -> None:
    """Stop for good; what is open ends."""
    _turn(ctx, batch_id, "abort", why, as_json=as_json)
