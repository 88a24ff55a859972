"""How is the simulator scripted and read back? Everything under `/_sim`."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .background import cancel
from .faults import Fault, Outcome
from .ledger import summary
from .openai_shape import response_object
from .presets import BY_PROVIDER, PRESETS
from .responses_store import RUNNING, Record
from .shapes import Json
from .webhook_settings import WebhookSettings
from .world import PARTS, Part, World

_ENDS = tuple(outcome for outcome in get_args(Outcome) if outcome not in RUNNING)


class ResetRequest(BaseModel):
    """Which parts to forget."""

    model_config = ConfigDict(extra="forbid")

    parts: tuple[Part, ...] = PARTS


class SendRequest(BaseModel):
    """One webhook event to send by hand."""

    model_config = ConfigDict(extra="forbid")

    type: str
    response_id: str
    webhook_id: str | None = None


class EndRequest(BaseModel):
    """How a running response is to end."""

    model_config = ConfigDict(extra="forbid")

    outcome: Outcome = "completed"


class Control:
    """The control API of one world."""

    def __init__(self, world: World) -> None:
        """Control this world."""
        self._world = world

    async def health(self, request: Request) -> Response:
        """Say that it runs, and how many calls it has seen."""
        del request
        calls = len(self._world.ledger.entries({}))
        about = {"status": "ok", "pid": os.getpid(), "started_ms": self._world.started_ms}
        return JSONResponse({**about, "calls": calls})

    async def reset(self, request: Request) -> Response:
        """Forget everything, or the parts named."""
        wanted = ResetRequest.model_validate(await _body(request))
        self._world.reset(wanted.parts)
        return JSONResponse({"reset": wanted.parts})

    async def add_faults(self, request: Request) -> Response:
        """Queue one fault or a list of them."""
        body = await _body(request)
        faults = [Fault.model_validate(each) for each in (body if isinstance(body, list) else [body])]
        return JSONResponse([self._world.faults.add(fault).as_json() for fault in faults], 201)

    async def list_faults(self, request: Request) -> Response:
        """Show the queue, spent faults too."""
        del request
        return JSONResponse(self._world.faults.listed())

    async def clear_faults(self, request: Request) -> Response:
        """Take out one fault by `id`, or all."""
        self._world.faults.clear(request.query_params.get("id"))
        return JSONResponse(self._world.faults.listed())

    async def presets(self, request: Request) -> Response:
        """Show every preset, and those that depend on the provider."""
        del request
        return JSONResponse({"presets": PRESETS, "by_provider": BY_PROVIDER})

    async def set_webhooks(self, request: Request) -> Response:
        """Say where webhooks go and how."""
        settings = WebhookSettings.model_validate(await _body(request))
        self._world.webhooks.settings = settings
        return JSONResponse(settings.model_dump(exclude={"secrets"}))

    async def deliveries(self, request: Request) -> Response:
        """List what was sent, for one response or all."""
        wanted = request.query_params.get("response_id")
        found = [
            delivery.as_json() for delivery in self._world.webhooks.deliveries if wanted in {None, delivery.response_id}
        ]
        return JSONResponse(found)

    async def send_webhook(self, request: Request) -> Response:
        """Send one event by hand."""
        wanted = SendRequest.model_validate(await _body(request))
        if self._world.webhooks.settings.url is None:
            return _problem("no receiver is set: POST /_sim/webhooks first", 409)
        sent = self._world.webhooks.send(wanted.type, wanted.response_id, wanted.webhook_id)
        return JSONResponse(sent.as_json(), 202)

    async def ledger(self, request: Request) -> Response:
        """List calls; every query parameter is a filter."""
        found = self._world.ledger.entries(request.query_params)
        return JSONResponse([asdict(entry) for entry in found])

    async def ledger_summary(self, request: Request) -> Response:
        """Count calls, by route and by the value of `group`; the other parameters filter."""
        query = dict(request.query_params)
        group = query.pop("group", None)
        return JSONResponse(summary(self._world.ledger.entries(query), group))

    async def responses(self, request: Request) -> Response:
        """List all responses, briefly."""
        del request
        return JSONResponse([_brief(record) for record in self._world.responses.all()])

    async def response(self, request: Request) -> Response:
        """Show one response and what was said about it."""
        record = self._world.responses.find(request.path_params["id"])
        if record is None:
            return _problem("no such response", 404)
        news = [d for d in self._world.webhooks.deliveries if d.response_id == record.id]
        whole = {"response": response_object(record), "deliveries": [d.as_json() for d in news]}
        return JSONResponse({**_brief(record), **whole})

    async def end_response(self, request: Request) -> Response:
        """Bring a running response to its end now."""
        record = self._world.responses.find(request.path_params["id"])
        wanted = EndRequest.model_validate(await _body(request))
        if record is None:
            return _problem("no such response", 404)
        if wanted.outcome not in _ENDS:
            return _problem(f"outcome must be one of {', '.join(_ENDS)}", 400)
        cancel(self._world, record, wanted.outcome)
        return JSONResponse(_brief(record))

    async def concurrency(self, request: Request) -> Response:
        """Show the gauges."""
        del request
        return JSONResponse(self._world.concurrency.report())


def control_routes(world: World) -> list[Route]:
    """List the routes of the control API."""
    control = Control(world)
    table: tuple[tuple[str, str, Handler], ...] = (
        ("GET", "/health", control.health),
        ("POST", "/reset", control.reset),
        ("POST", "/faults", control.add_faults),
        ("GET", "/faults", control.list_faults),
        ("DELETE", "/faults", control.clear_faults),
        ("GET", "/presets", control.presets),
        ("POST", "/webhooks", control.set_webhooks),
        ("GET", "/webhooks/deliveries", control.deliveries),
        ("POST", "/webhooks/send", control.send_webhook),
        ("GET", "/ledger", control.ledger),
        ("GET", "/ledger/summary", control.ledger_summary),
        ("GET", "/responses", control.responses),
        ("GET", "/responses/{id}", control.response),
        ("POST", "/responses/{id}/end", control.end_response),
        ("GET", "/concurrency", control.concurrency),
    )
    return [Route(f"/_sim{path}", _checked(do), methods=[verb]) for verb, path, do in table]


Handler = Callable[[Request], Awaitable[Response]]


def _checked(handler: Handler) -> Handler:
    async def checked(request: Request) -> Response:
        try:
            return await handler(request)
        except (ValidationError, ValueError) as error:
            return _problem(str(error), 400)

    return checked


def _problem(message: str, status: int) -> Response:
    return JSONResponse({"error": message}, status)


async def _body(request: Request) -> Any:
    raw = await request.body()
    return json.loads(raw) if raw else {}


def _brief(record: Record) -> Json:
    return {
        "id": record.id,
        "status": record.status,
        "model": record.answer.model,
        "background": record.asked.background,
        "metadata": dict(record.asked.metadata),
        "created_ms": record.created_ms,
        "events": len(record.events),
        "events_revealed": record.revealed,
    }
