"""How does a request go out through the official OpenAI SDK?

Its raw `post` and `get` are used: the typed resources cost about 120 ms at their first call, and hide errors that
come inside a 200. Its own retries are off, since they repeat a call that may have been paid, and without a trace.
"""

from __future__ import annotations

import threading
from contextlib import closing
from typing import Any

import httpx2
import openai

from breakwater.domain.signals import Reply
from breakwater.providers import address, transport
from breakwater.providers.request import Request
from breakwater.providers.stream_wire import Line, line_of


class OpenAISession:
    """An OpenAI-compatible API over the SDK's client."""

    def __init__(self, base_url: str, api_key: str, via: httpx2.BaseTransport | None) -> None:
        self._headed = threading.local()  # the answer whose head came; its body the SDK reads where we can't see it
        self._client = openai.OpenAI(
            api_key=api_key,
            base_url=base_url,
            max_retries=0,
            http_client=httpx2.Client(
                limits=httpx2.Limits(max_keepalive_connections=0),
                follow_redirects=False,
                transport=via,
                event_hooks={"response": [self._saw]},
                trust_env=not address.is_local(base_url),
            ),
        )
        # Read from the environment by the SDK, and none of a gateway's business.
        self._client.organization = self._client.project = None

    def _saw(self, response: httpx2.Response) -> None:
        self._headed.response = response

    @property
    def _head(self) -> httpx2.Response | None:
        """Status and headers of an answer whose body was cut: a refusal says all that matters in them."""
        found: httpx2.Response | None = getattr(self._headed, "response", None)
        return found

    def send(self, request: Request, timeout_ms: int) -> Reply:
        """The answer, or how the connection failed."""
        response: httpx2.Response | None = None
        deadline = transport.deadline_in(timeout_ms)
        try:
            response = self._open(request, timeout_ms / 1000)
            with closing(response):
                content = transport.collect(response.iter_bytes(), deadline)
        except openai.APIStatusError as error:
            return transport.reply_of(error.status_code, error.response.headers, error.response.content)
        except (openai.OpenAIError, httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError) as error:
            return _failed(error, response or self._head)
        except transport.OURS as error:
            return _failed(error, response or self._head)
        return transport.reply_of(response.status_code, response.headers, content)

    def open(self, request: Request, timeout_ms: int) -> Line | Reply:
        """The open answer, or how the connection failed."""
        try:
            response = self._open(request, timeout_ms / 1000)
        except openai.APIStatusError as error:
            return transport.reply_of(error.status_code, error.response.headers, error.response.content)
        except (openai.OpenAIError, httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError) as error:
            return _failed(error, self._head)
        return line_of(response)

    def _open(self, request: Request, seconds: float) -> httpx2.Response:
        """Send it and come back when the headers are there."""
        self._headed.response = None
        timeout = httpx2.Timeout(seconds, connect=min(seconds, transport.CONNECT_SECONDS))
        options: Any = {"headers": dict(request.headers), "timeout": timeout}
        answer: Any
        if request.method == "GET":
            answer = self._client.get(
                request.path, cast_to=httpx2.Response, options=options, stream=True, stream_cls=openai.Stream[Any]
            )
        else:
            answer = self._client.post(
                request.path,
                cast_to=httpx2.Response,
                content=request.content,
                options=options,
                stream=True,
                stream_cls=openai.Stream[Any],
            )
        response: httpx2.Response = answer
        return response


def _failed(error: BaseException, response: httpx2.Response | None) -> Reply:
    if response is None:
        return transport.failed(error)
    return transport.failed(error, response.status_code, response.headers)
