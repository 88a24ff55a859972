"""How does the command line reach an installation? By flags, environment, a stack's outputs, or the local cloud.

Exit codes: 0 done, 1 refused, 2 wrong usage, 3 not found, 4 not reachable or failing, 5 key missing or without the
right, 6 a watched job ended without success, 7 waited long enough.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn
from urllib.parse import quote

import httpx
import typer

ROOT = Path(__file__).resolve().parents[2]
CLOUDS = ROOT / ".local" / "cloud"


class Exit(IntEnum):
    """What a script can tell from the exit code."""

    DONE = 0
    REFUSED = 1
    USAGE = 2
    NOT_FOUND = 3
    UNAVAILABLE = 4
    NOT_AUTHORISED = 5
    NO_SUCCESS = 6
    TIMED_OUT = 7


_BY_STATUS = {401: Exit.NOT_AUTHORISED, 403: Exit.NOT_AUTHORISED, 404: Exit.NOT_FOUND}


@dataclass
class Settings:
    """Where and as whom. `transport` lets tests answer in process."""

    url: str | None = None
    key: str | None = None
    stack: str | None = None
    cloud: str = "dev"
    transport: httpx.BaseTransport | None = None
    now: Any = None
    extra: dict[str, Any] = field(default_factory=dict)


def configure(
    ctx: typer.Context,
    url: Annotated[
        str | None, typer.Option(envvar="BREAKWATER_URL", help="Base URL of the API, with or without /v1.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(envvar="BREAKWATER_API_KEY", help="API key; operators need the scope `operate`.")
    ] = None,
    stack: Annotated[
        str | None,
        typer.Option(
            envvar="BREAKWATER_STACK", help="CloudFormation stack to find the URL in, with your AWS credentials."
        ),
    ] = None,
    cloud: Annotated[str, typer.Option(help="Local cloud to use when neither URL nor stack is given.")] = "dev",
) -> None:
    """Run, watch and repair AI-provider work. Without a URL the local cloud of this folder is used."""
    if ctx.obj is None:
        ctx.obj = Settings(url=url, key=key, stack=stack, cloud=cloud)


def fail(code: Exit, message: str, hint: str | None = None) -> NoReturn:
    """Say what went wrong and what to do, and end with the code."""
    typer.secho(message, fg="red", err=True)
    if hint:
        typer.secho(f"  {hint}", err=True)
    raise typer.Exit(int(code))


class Api:
    """One installation, as one caller."""

    def __init__(self, settings: Settings) -> None:
        url, key = _find(settings)
        self._client = httpx.Client(
            base_url=url.rstrip("/").removesuffix("/v1"),
            headers={"authorization": f"Bearer {key}"},
            timeout=35,
            transport=settings.transport,
        )

    def get(self, path: str, **query: Any) -> Any:
        """A look."""
        return self._answer(self.send("GET", path, params=query))

    def post(self, path: str, body: Any, headers: Mapping[str, str] | None = None) -> Any:
        """A change."""
        return self._answer(self.send("POST", path, json=body, headers=dict(headers or {})))

    def pages(self, path: str, name: str, most: int, **query: Any) -> Iterator[Any]:
        """Items of a list, page by page, until `most`."""
        cursor, left = None, most
        while left > 0:
            body = self.get(path, **query, limit=min(left, 100), cursor=cursor)
            yield from body[name][:left]
            left -= len(body[name])
            cursor = body.get("next_cursor")
            if cursor is None:
                return

    def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        """One request; ends the program when nobody answers."""
        if "params" in more:
            more["params"] = {name: value for name, value in more["params"].items() if value is not None}
        try:
            return self._client.request(method, path, **more)
        except httpx.HTTPError as error:
            fail(
                Exit.UNAVAILABLE,
                f"{self._client.base_url} does not answer ({type(error).__name__}).",
                "check --url or BREAKWATER_URL; for the local cloud, `make run` starts it",
            )

    def _answer(self, answer: httpx.Response) -> Any:
        if answer.is_success:
            return answer.json() if answer.content else None
        problem = _problem(answer)
        code = _BY_STATUS.get(answer.status_code, Exit.REFUSED)
        code = Exit.UNAVAILABLE if answer.status_code >= 500 else code  # noqa: PLR2004 - server side
        hint = problem.get("fix")
        if code is Exit.NOT_AUTHORISED and not hint:
            hint = "check BREAKWATER_API_KEY; operators' commands need a key with the scope `operate`"
        said = problem.get("detail") or problem.get("message") or answer.reason_phrase
        fail(code, f"{answer.status_code}: {said}", str(hint) if hint else None)


def _problem(answer: httpx.Response) -> Mapping[str, Any]:
    try:
        body = answer.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _find(settings: Settings) -> tuple[str, str]:
    facts = _facts(settings.cloud)
    url = settings.url or (_of_stack(settings.stack) if settings.stack else _of_cloud(settings.cloud, facts))
    key = settings.key or (None if settings.url or settings.stack else facts.get("api_key"))
    if not key:
        fail(Exit.NOT_AUTHORISED, "No API key is given.", "set BREAKWATER_API_KEY, or pass --key")
    return url, key


def _facts(cloud: str) -> Mapping[str, str]:
    """What a local cloud remembers."""
    file = CLOUDS / cloud / "facts.json"
    return dict(json.loads(file.read_text())) if file.is_file() else {}


def _of_cloud(name: str, facts: Mapping[str, str]) -> str:
    if not facts:
        fail(
            Exit.USAGE,
            "No installation is named.",
            "set BREAKWATER_URL and BREAKWATER_API_KEY, or start one: `make run`",
        )
    from tools.localcloud import LocalCloud  # noqa: PLC0415 - only the local cloud needs it
    from tools.localcloud.errors import LocalCloudError  # noqa: PLC0415 - as above

    try:
        return LocalCloud(ROOT, name).api_url
    except (LocalCloudError, OSError, KeyError, IndexError) as error:
        fail(
            Exit.UNAVAILABLE, f"The local cloud `{name}` does not run ({type(error).__name__}).", "`make run` starts it"
        )


def _of_stack(stack: str) -> str:
    """The URL in a stack's outputs, read with the usual AWS credentials."""
    return outputs(stack)["ApiUrl"]


def outputs(stack: str) -> Mapping[str, str]:
    """The outputs of a deployed stack."""
    import boto3  # noqa: PLC0415 - only commands that talk to AWS pay for it
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - as above

    try:
        found = boto3.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]["Outputs"]
    except (BotoCoreError, ClientError) as error:
        fail(
            Exit.UNAVAILABLE,
            f"The stack `{stack}` can't be read ({type(error).__name__}).",
            "check your AWS credentials",
        )
    return {one["OutputKey"]: one["OutputValue"] for one in found}


def api(ctx: typer.Context) -> Api:
    """The installation of this call."""
    return Api(ctx.obj if isinstance(ctx.obj, Settings) else Settings())


def part(value: str) -> str:
    """One piece of a path."""
    return quote(value, safe="")
