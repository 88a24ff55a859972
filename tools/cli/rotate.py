"""What is done with the operator's own AWS rights? Secrets are replaced, and the first key is made; no function may."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets as randomness
import time
from typing import Annotated, Any

import typer

from breakwater.domain.records import ApiKey
from breakwater.operator_ports import OperatorStore
from breakwater.store.operator import OperatorTable
from tools.cli import show
from tools.cli.api import ROOT, Exit, Settings, api, fail, outputs
from tools.cli.desk import keys
from tools.cli.jobs import Why
from tools.cli.show import AsJson

secrets = typer.Typer(no_args_is_help=True, help="Secrets, with your own AWS credentials.")


@secrets.callback()
def _group() -> None:
    """Keep `rotate` a command of its own: there may be others."""


@secrets.command()
def rotate(
    ctx: typer.Context,
    kind: Annotated[str, typer.Argument(help="webhook, notify or provider.")],
    name: Annotated[str, typer.Argument(help="A webhook endpoint, an owner (or `default`), or a provider credential.")],
    why: Why,
    value: Annotated[str | None, typer.Option(help="The new secret; else it is asked for, or made for notify.")] = None,
    as_json: AsJson = False,
) -> None:
    """Put a new secret in place; a webhook's previous one goes on counting until the next rotation."""
    settings = ctx.obj if isinstance(ctx.obj, Settings) else Settings()
    places = {
        "webhook": "WebhookSecretsSecretArn",
        "notify": "NotifySecretsSecretArn",
        "provider": "ProviderKeysSecretArn",
    }
    if kind not in places:
        raise typer.BadParameter("use webhook, notify or provider", param_hint="KIND")
    made = f"whsec_{base64.b64encode(randomness.token_bytes(32)).decode()}" if kind == "notify" else None
    new = value or made or typer.prompt("New secret", hide_input=True)
    client, secret_id = _secret(settings, places[kind])
    stored = json.loads(client.get_secret_value(SecretId=secret_id).get("SecretString") or "{}")
    # First the entry: nothing is replaced that nobody could account for.
    api(ctx).post("/v1/ops/audit", {"what": "rotate_secret", "target": f"secret:{kind}/{name}", "why": why})
    client.put_secret_value(SecretId=secret_id, SecretString=json.dumps(rotated(kind, name, new, stored)))
    told = {"kind": kind, "name": name, "in_force_within_seconds": 60}
    show.as_json(told) if as_json else typer.echo(f"{kind} {name} is rotated; in force within a minute")


@keys.command("first")
def first_key(
    ctx: typer.Context,
    owner: Annotated[str, typer.Argument(metavar="OWNER", help="Who operates this installation.")],
    as_json: AsJson = False,
) -> None:
    """Make the first operator's key of a new installation, with your own AWS credentials."""
    settings = ctx.obj if isinstance(ctx.obj, Settings) else Settings()
    if settings.stack is None:
        raise typer.BadParameter("name the stack: breakwater --stack NAME keys first OWNER")
    import boto3  # noqa: PLC0415 - only this command talks to AWS

    table = OperatorTable(boto3.client("dynamodb"), outputs(settings.stack)["ControlTableName"])
    made, secret = operator_key(table, owner, int(time.time() * 1000))
    if made is None:
        fail(Exit.REFUSED, "There are keys already.", "use `breakwater keys create`, with a key of the scope `operate`")
    told = {"key_id": made.key_id, "owner_key": owner, "scopes": sorted(made.scopes), "api_key": secret}
    show.as_json(told) if as_json else show.facts(told)


def operator_key(table: OperatorStore, owner: str, now: int) -> tuple[ApiKey | None, str]:
    """A key that may do everything, for an installation without any; None where there is one."""
    if table.api_keys():
        return None, ""
    secret = f"bw_{randomness.token_urlsafe(32)}"
    digest = hashlib.sha256(secret.encode()).hexdigest()
    scopes = frozenset({"submit", "read", "operate"})
    key = ApiKey(key_hash=digest, key_id=f"key_{digest[:12]}", owner_key=owner, scopes=scopes, created_at=now)
    table.put_api_key(key)
    return key, secret


def rotated(kind: str, name: str, new: str, stored: dict[str, Any]) -> dict[str, Any]:
    """The secret's entries with the new value first, and the one before it still known where both may count."""
    if kind == "provider":
        return {**stored, name: new}
    before = stored.get(name) or []
    earlier = [one for one in (before if isinstance(before, list) else [before]) if one != new]
    return {**stored, name: [new, *earlier][:2]}  # asked for twice, the one before still counts


def _secret(settings: Settings, output: str) -> tuple[Any, str]:
    """A Secrets Manager client and the secret's id: of the stack, or of the local cloud."""
    import boto3  # noqa: PLC0415 - only this command talks to AWS

    if settings.stack:
        return boto3.client("secretsmanager"), outputs(settings.stack)[output]
    if settings.url:
        fail(Exit.USAGE, "Secrets are found through the stack.", "pass --stack, with AWS credentials that may write it")
    from tools.localcloud import LocalCloud  # noqa: PLC0415 - only the local cloud needs it

    cloud = LocalCloud(ROOT, settings.cloud)
    return cloud.client("secretsmanager"), cloud.outputs()[output]
