"""How does an answer of a provider become one of four outcomes?

An adapter says how its API is asked (`request`) and read (`read`); everything else is the same for all of them and
stands here. Nothing leaves as an exception: what can't be sent, what failed on the wire and what came back as no
success are all `Refused`, with the one signal the policies know.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from breakwater.domain.answers import judged
from breakwater.domain.hints import exhausted_limits
from breakwater.domain.results import Call, Completed, Found, Outcome, Refused, Result
from breakwater.domain.rules.facts import request_id
from breakwater.domain.signals import ErrorClass, Reply, Signal
from breakwater.domain.stream_events import Resume
from breakwater.ports import ProviderStream
from breakwater.providers.conversation import BadPayload, schema_of
from breakwater.providers.request import Request, Session

Json = Mapping[str, Any]

_FIRST_ERROR = 300


class Adapter(ABC):
    """One provider's API behind one route. Implements `ports.Provider`."""

    provider: ClassVar[str]

    def __init__(self, session: Session, *, route_key: str, timeout_ms: int) -> None:
        self._session = session
        self._route_key = route_key
        self._timeout_ms = timeout_ms

    @abstractmethod
    def request(self, call: Call) -> Request:
        """The call in this API's words. Raises `BadPayload`."""

    @abstractmethod
    def read(self, body: Json, headers: Mapping[str, str]) -> Result:
        """An answer in our words, as far as it goes. Total: never raises."""

    def submit(self, call: Call) -> Outcome:
        try:
            request = self.request(call)
            schema = schema_of(call.payload)
        except BadPayload:
            return Refused(signal=self.signal(ErrorClass.CALLER_FAULT, "adapter.unsendable"))
        reply = self._session.send(request, min(call.timeout_ms, self._timeout_ms))
        return self.outcome(reply, call, wants_json=schema is not None)

    def stream(self, call: Call, resume: Resume | None = None) -> ProviderStream:
        from breakwater.providers.stream_live import open_stream  # noqa: PLC0415 - most calls don't stream

        return open_stream(self, call, resume)

    @property
    def session(self) -> Session:
        """What sends its requests."""
        return self._session

    @property
    def route_key(self) -> str:
        """The route it speaks for."""
        return self._route_key

    def fetch(self, provider_job_id: str) -> Found:
        """This API knows no jobs, so it knows none by this id."""
        del provider_job_id
        return Found(outcome=Refused(signal=self.signal(ErrorClass.NOT_FOUND, "adapter.no_jobs")))

    def cancel(self, provider_job_id: str) -> Signal | None:
        """Nothing runs on that could be stopped."""
        del provider_job_id
        return None

    def outcome(self, reply: Reply, call: Call, *, wants_json: bool) -> Outcome:
        """What the answer to `call` means."""
        result = self.result_of(reply, call)
        return self.settled(reply, result, wants_json=wants_json)

    def result_of(self, reply: Reply, call: Call | None) -> Result | None:
        """What an answer holds; None where it is no answer at all."""
        del call
        if reply.status is None or reply.status >= _FIRST_ERROR or not isinstance(reply.body, Mapping):
            return None
        result = self.read(reply.body, reply.headers)
        asked = request_id(reply.headers, reply.body)
        return replace(
            result,
            provider_request_id=asked or result.provider_request_id,
            exhausted=exhausted_limits(reply.headers, reply.received_at),
        )

    def settled(
        self,
        reply: Reply,
        result: Result | None,
        *,
        wants_json: bool,
        job_id: str | None = None,
        lookup: bool = False,
    ) -> Completed | Refused:
        """A finished answer, or why there is none; with what came of it where something did."""
        return judged(
            reply,
            result,
            provider=self.provider,
            route_key=self._route_key,
            wants_json=wants_json,
            job_id=job_id,
            lookup=lookup,
        )

    def signal(self, error_class: ErrorClass, rule: str, reply: Reply | None = None) -> Signal:
        """A signal that the adapter itself has to give."""
        return Signal(
            error_class=error_class,
            http_status=reply.status if reply else None,
            route_key=self._route_key,
            provider_request_id=request_id(reply.headers, reply.body) if reply else None,
            rule=rule,
        )
