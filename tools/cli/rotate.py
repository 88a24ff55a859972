"""How is a secret replaced while work goes on? With the operator's own AWS rights; no function may write a secret."""

from __future__ import annotations

import base64
import json
import secrets as randomness
from typing import Annotated, Any

import typer

from tools.cli import show
from tools.cli.api import ROOT, Exit, Settings, api, fail, outputs
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
    client.put_secret_value(SecretId=secret_id, SecretString=json.dumps(rotated(kind, name, new, stored)))
    api(ctx).post("/v1/ops/audit", {"what": "rotate_secret", "target": f"secret:{kind}/{name}", "why": why})
    told = {"kind": kind, "name": name, "in_force_within_seconds": 60}
    show.as_json(told) if as_json else typer.echo(f"{kind} {name} is rotated; in force within a minute")


def rotated(kind: str, name: str, new: str, stored: dict[str, Any]) -> dict[str, Any]:
    """The secret's entries with the new value first, and the one before it still known where both may count."""
    if kind == "provider":
        return {**stored, name: new}
    before = stored.get(name) or []
    return {**stored, name: [new, *(before if isinstance(before, list) else [before])][:2]}


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
