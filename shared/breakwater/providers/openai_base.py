"""What do all adapters over OpenAI's SDK share? Their address, their key, and the header that carries our id."""

from __future__ import annotations

import httpx2

from breakwater.providers import address
from breakwater.providers.base import Adapter
from breakwater.providers.session_openai import OpenAISession


class OpenAIAdapter(Adapter):
    """An API of OpenAI, or one that speaks its language at another address."""

    provider = "openai"
    default_url: str | None = "https://api.openai.com/v1"
    id_headers: tuple[str, ...] = ("X-Client-Request-Id",)

    def __init__(
        self,
        base_url: str | None,
        api_key: str,
        *,
        route_key: str,
        timeout_ms: int,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        url = address.checked_url(base_url, self.default_url)
        session = OpenAISession(url, address.checked_key(api_key), transport)
        super().__init__(session, route_key=route_key, timeout_ms=timeout_ms)
