"""Which paths does the simulator serve?"""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.routing import Route

from .anthropic_messages import CreateMessage
from .control import control_routes
from .dialects import Anthropic, Gateway, Gemini, OpenAI
from .exchange import Exchange
from .faults import Fault
from .gateway import GatewayFlavour
from .gemini_generate import GenerateContent
from .openai_chat import ChatCompletion, PlainFlavour
from .openai_images import GenerateImages, ListModels
from .openai_responses import CancelResponse, CreateResponse, RetrieveResponse
from .operation import Operation
from .shapes import Asked, Incoming, Problem, Processed
from .world import World


class Unknown(Operation):
    """Any other path: a 404 that stands in the ledger, since a wrong base URL is a finding."""

    def read(self, world: World, incoming: Incoming) -> Asked:
        """Refuse it."""
        del world
        raise Problem("not_found", f"Invalid URL ({incoming.method} {incoming.path})")

    async def process(self, world: World, asked: Asked, fault: Fault | None) -> Processed:
        """Do nothing; it never comes to that."""
        del world, asked, fault
        return Processed()


def build_app(world: World) -> Starlette:
    """Put providers and control API together around one world."""
    openai, gateway = OpenAI(), Gateway()
    operations: tuple[tuple[str, str, Operation], ...] = (
        ("POST", "/openai/v1/responses", CreateResponse(openai)),
        ("GET", "/openai/v1/responses/{id}", RetrieveResponse(openai)),
        ("POST", "/openai/v1/responses/{id}/cancel", CancelResponse(openai)),
        (
            "POST",
            "/openai/v1/chat/completions",
            ChatCompletion("openai.chat", openai, PlainFlavour()),
        ),
        ("POST", "/openai/v1/images/generations", GenerateImages(openai)),
        ("GET", "/openai/v1/models", ListModels(openai)),
        ("POST", "/anthropic/v1/messages", CreateMessage(Anthropic())),
        ("POST", "/gemini/v1beta/models/{call:path}", GenerateContent(Gemini())),
        ("POST", "/gemini/v1/models/{call:path}", GenerateContent(Gemini())),
        (
            "POST",
            "/gateway/v1/chat/completions",
            ChatCompletion("gateway.chat", gateway, GatewayFlavour("SimProvider")),
        ),
        (
            "POST",
            "/flatkey/v1/chat/completions",
            ChatCompletion("flatkey.chat", gateway, GatewayFlavour("SimFlatkey")),
        ),
    )
    routes = [Route(path, Exchange(world, operation), methods=[method]) for method, path, operation in operations]
    unknown = Exchange(world, Unknown("unknown", openai, cost_bearing=False))
    return Starlette(routes=[*control_routes(world), *routes, Route("/{path:path}", unknown)])
