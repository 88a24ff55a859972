"""What else does an operator turn? Switches, routes, keys, owners, usage, the audit, secrets."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from tools.cli import show
from tools.cli.api import api, part
from tools.cli.batches import Limit
from tools.cli.dead import moment
from tools.cli.jobs import Why
from tools.cli.show import AsJson

switch = typer.Typer(no_args_is_help=True, help="The six degradation switches.")
routes = typer.Typer(no_args_is_help=True, help="Routes: see, close until a time, open.")
keys = typer.Typer(no_args_is_help=True, help="API keys: shown once, only hashes are kept.")
owners = typer.Typer(no_args_is_help=True, help="Owners' limits, budgets and callback hosts.")

Name = Annotated[str, typer.Argument(help="A switch.")]
RouteKey = Annotated[str, typer.Argument(metavar="ROUTE", help="A route key.")]
OwnerKey = Annotated[str, typer.Argument(metavar="OWNER", help="An owner key.")]
Listed = Annotated[list[str] | None, typer.Option(help="Only these; may be repeated.")]
Minutes = Annotated[int | None, typer.Option(min=1, help="For this many minutes.")]


def _until(minutes: int | None) -> int | None:
    now = moment("0s") or 0
    return None if minutes is None else now + minutes * 60_000


@switch.command("list")
def list_switches(ctx: typer.Context, as_json: AsJson = False) -> None:
    """All six, in order of severity, and which are on."""
    found = api(ctx).get("/v1/ops/switches")["switches"]
    columns = ("name", "on", "who", "why", "since", "until", "workflows", "priorities", "routes")
    show.as_json(found) if as_json else show.table(found, columns)


@switch.command("on")
def throw(
    ctx: typer.Context,
    name: Name,
    why: Why,
    minutes: Minutes = None,
    workflow: Listed = None,
    priority: Listed = None,
    route: Listed = None,
    limit: Annotated[int | None, typer.Option(min=0, help="manual_retry: how many a job.")] = None,
    skip_schedules: Annotated[bool, typer.Option(help="pause: scheduled runs are skipped, not kept.")] = False,
    as_json: AsJson = False,
) -> None:
    """Throw a switch."""
    body: dict[str, Any] = {"why": why, "until": _until(minutes), "limit": limit}
    body |= {"workflows": workflow, "priorities": priority, "routes": route}
    body = {key: value for key, value in body.items() if value is not None}
    found = api(ctx).post(f"/v1/ops/switches/{part(name)}", {**body, "schedules": "skip" if skip_schedules else "wait"})
    show.as_json(found) if as_json else typer.echo(f"{name} is on")


@switch.command("off")
def lift(ctx: typer.Context, name: Name, why: Why, as_json: AsJson = False) -> None:
    """Take a switch back."""
    found = api(ctx).post(f"/v1/ops/switches/{part(name)}/lift", {"why": why})
    show.as_json(found) if as_json else typer.echo(f"{name} is off")


@routes.command("list")
def list_routes(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Every route and whether it is open."""
    found = api(ctx).get("/v1/ops/routes")["routes"]
    columns = ("route_key", "provider", "model", "open", "closed_until", "because", "closed_by", "limit_now")
    show.as_json(found) if as_json else show.table(found, columns)


@routes.command("show")
def one_route(ctx: typer.Context, route_key: RouteKey, as_json: AsJson = False) -> None:
    """One route."""
    found = api(ctx).get(f"/v1/ops/routes/{part(route_key)}")
    show.as_json(found) if as_json else show.facts(found)


@routes.command("close")
def close_route(
    ctx: typer.Context,
    route_key: RouteKey,
    why: Why,
    minutes: Annotated[int, typer.Option(min=1, help="For this many minutes.")] = 60,
    as_json: AsJson = False,
) -> None:
    """Close a route for everybody; its work waits and loses no attempt."""
    found = api(ctx).post(f"/v1/ops/routes/{part(route_key)}/close", {"until": _until(minutes), "why": why})
    show.as_json(found) if as_json else show.facts(found)


@routes.command("open")
def open_route(ctx: typer.Context, route_key: RouteKey, why: Why, as_json: AsJson = False) -> None:
    """Open a route before its time; it starts slowly."""
    found = api(ctx).post(f"/v1/ops/routes/{part(route_key)}/open", {"why": why})
    show.as_json(found) if as_json else show.facts(found)


@keys.command("create")
def create_key(
    ctx: typer.Context,
    owner: OwnerKey,
    why: Why,
    scope: Annotated[list[str], typer.Option(help="submit, read or operate; may be repeated.")],
    days: Annotated[int | None, typer.Option(min=1, help="Expires after this many days.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a key. It is shown here and never again."""
    body: dict[str, Any] = {"owner_key": owner, "scopes": scope, "why": why}
    body |= {"expires_at": _until(days * 1_440)} if days else {}
    found = api(ctx).post("/v1/ops/keys", body)
    if as_json:
        show.as_json(found)
        return
    show.facts(found, ("key_id", "owner_key", "scopes", "expires_at"))
    typer.echo(f"  api_key {found['api_key']}\n  Keep it now: only its hash is stored.")


@keys.command("list")
def list_keys(
    ctx: typer.Context,
    owner: Annotated[str | None, typer.Option(help="Only this owner's.")] = None,
    as_json: AsJson = False,
) -> None:
    """Keys by owner, revoked ones too."""
    found = api(ctx).get("/v1/ops/keys", owner_key=owner)["keys"]
    columns = ("owner_key", "key_id", "scopes", "created_at", "expires_at", "revoked_at")
    show.as_json(found) if as_json else show.table(found, columns)


@keys.command("revoke")
def revoke_key(
    ctx: typer.Context,
    owner: OwnerKey,
    key_id: Annotated[str, typer.Argument(metavar="KEY_ID")],
    why: Why,
    as_json: AsJson = False,
) -> None:
    """Revoke a key; the gateway may let it pass for another minute."""
    found = api(ctx).post(f"/v1/ops/keys/{part(key_id)}/revoke", {"owner_key": owner, "why": why})
    show.as_json(found) if as_json else typer.echo(f"{key_id} is revoked")


@owners.command("show")
def one_owner(ctx: typer.Context, owner: OwnerKey, as_json: AsJson = False) -> None:
    """An owner's settings."""
    found = api(ctx).get(f"/v1/ops/owners/{part(owner)}")
    show.as_json(found) if as_json else show.facts(found["settings"])


@owners.command("set")
def set_owner(
    ctx: typer.Context,
    owner: OwnerKey,
    settings: Annotated[str, typer.Argument(help="All settings as one JSON object.")],
    why: Why,
    as_json: AsJson = False,
) -> None:
    """Replace an owner's settings."""
    try:
        plain = json.loads(settings)
    except ValueError as error:
        raise typer.BadParameter(f"no JSON: {error}", param_hint="SETTINGS") from error
    found = api(ctx).post(f"/v1/ops/owners/{part(owner)}", {"settings": plain, "why": why})
    show.as_json(found) if as_json else show.facts(found["settings"])


def usage(
    ctx: typer.Context,
    owner: Annotated[str | None, typer.Option(help="As operator: whose usage.")] = None,
    period: Annotated[str | None, typer.Option(help="YYYY-MM; else this month.")] = None,
    as_json: AsJson = False,
) -> None:
    """What was spent in a month, in all and by workflow."""
    path = "/v1/ops/usage" if owner else "/v1/usage"
    found = api(ctx).get(path, owner_key=owner, period=period)
    if as_json:
        show.as_json(found)
        return
    rows = [{"workflow": name, **numbers} for name, numbers in found["workflows"].items()]
    columns = ("workflow", "executions", "input_tokens", "output_tokens", "cost_micros")
    show.table([*rows, {"workflow": "all", **found["total"]}], columns, f"{found['owner_key']} {found['period']}")


def audit(
    ctx: typer.Context,
    month: Annotated[str | None, typer.Option(help="YYYY-MM; else this month.")] = None,
    limit: Limit = 25,
    as_json: AsJson = False,
) -> None:
    """What operators did, newest first: who, when, what, why, before, after."""
    query = {"month": month} if month else {}
    found = list(api(ctx).pages("/v1/ops/audit", "entries", limit, **query))
    show.as_json(found) if as_json else show.table(found, ("at", "who", "what", "target", "stage", "why"), "audit")
