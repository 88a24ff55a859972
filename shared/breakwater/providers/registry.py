"""Which adapter speaks to which endpoint?

Adapters are imported when one is built: `openai` alone costs more than half a second, and most functions call nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from breakwater.domain.errors import InvalidPolicy
from breakwater.ports import Provider

ADAPTERS: Mapping[tuple[str, str], str] = {
    ("openai", "responses"): "openai_responses:OpenAIResponses",
    ("openai", "images"): "openai_images:OpenAIImages",
    ("openai", "chat"): "openai_chat:OpenAIChat",
    ("anthropic", "messages"): "anthropic_messages:AnthropicMessages",
    ("gemini", "generate_content"): "gemini:GeminiGenerateContent",
    ("gateway", "chat"): "openai_chat:GatewayChat",
    ("gateway", "responses"): "openai_responses:GatewayResponses",
}


def build(
    provider: str,
    endpoint: str,
    base_url: str | None,
    api_key: str,
    route_key: str,
    timeout_ms: int,
    transport: Any = None,
) -> Provider:
    """The adapter of a route. Raises `InvalidPolicy` and `SecretUnavailable`.

    `transport` stands in for the network: one of httpx2 for OpenAI's and gateways' adapters, of httpx for the others.
    """
    name = ADAPTERS.get((provider, endpoint))
    if name is None:
        raise InvalidPolicy(f"There is no adapter for {provider}/{endpoint}.", field="endpoint")
    module, _, kind = name.partition(":")
    adapter: Provider = getattr(import_module(f"breakwater.providers.{module}"), kind)(
        base_url, api_key, route_key=route_key, timeout_ms=timeout_ms, transport=transport
    )
    return adapter
