"""How is OpenAI's Responses API called, polled and stopped?

In the background: `background` and `store` together, our ids as metadata (the only thing that leads back to a job
whose answer was lost), then polls by id. Otherwise in one request that stores nothing at the provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from breakwater.domain.classify import classify, running
from breakwater.domain.reading import inside, word
from breakwater.domain.results import Accepted, Call, Found, Outcome, Result, Running
from breakwater.domain.rules.endings import End
from breakwater.domain.rules.facts import facts_of, request_id
from breakwater.domain.signals import ErrorClass, Reply, Signal
from breakwater.providers import responses_body
from breakwater.providers.base import Json
from breakwater.providers.evidence import gateway_evidence, reported_cost
from breakwater.providers.openai_base import OpenAIAdapter
from breakwater.providers.request import Request, in_header, in_path, post

_JOB, _EXECUTION = "breakwater_job_id", "breakwater_execution_id"
_LOOKUP_MS = 20_000  # reading a job is quick, whatever the job itself may take
_MAY_RUN = frozenset({End.RUNNING, End.NONE, End.ERROR})
_NOTHING_TO_STOP = frozenset({ErrorClass.CALLER_FAULT, ErrorClass.NOT_FOUND})
_RATE_HEADERS = ("ratelimit", "retry-after")


class OpenAIResponses(OpenAIAdapter):
    """`POST /responses`, also in the background."""

    def request(self, call: Call) -> Request:
        body = {**responses_body.write(call), "store": call.background}
        if call.background:
            body |= {"background": True, "metadata": {_JOB: call.job_id, _EXECUTION: call.execution_id}}
        return post("/responses", body, dict.fromkeys(self.id_headers, in_header(call.execution_id)))

    def read(self, body: Json, headers: Mapping[str, str]) -> Result:
        del headers
        return responses_body.read(body)

    def outcome(self, reply: Reply, call: Call, *, wants_json: bool) -> Outcome:
        job_id = word(inside(reply.body, "id")) if call.background else None
        if job_id and running(reply):
            return Accepted(provider_job_id=job_id, provider_request_id=request_id(reply.headers, reply.body))
        return self._settled(reply, call, job_id, wants_json=wants_json)

    def fetch(self, provider_job_id: str) -> Found:
        reply = self._about(provider_job_id, "GET", "")
        metadata = inside(reply.body, "metadata")
        return Found(
            outcome=self._fetched(reply, provider_job_id),
            ended=facts_of(reply).ending.end not in _MAY_RUN,
            job_id=word(inside(metadata, _JOB)),
            execution_id=word(inside(metadata, _EXECUTION)),
            rate_headers={k: v for k, v in reply.headers.items() if any(part in k for part in _RATE_HEADERS)},
        )

    def cancel(self, provider_job_id: str) -> Signal | None:
        reply = self._about(provider_job_id, "POST", "/cancel")
        if facts_of(reply).ending.end not in _MAY_RUN:
            return None
        signal = classify(self.provider, reply, route_key=self._route_key, lookup=True)
        return None if signal.error_class in _NOTHING_TO_STOP else signal

    def _about(self, provider_job_id: str, method: str, action: str) -> Reply:
        request = Request(method=method, path=f"/responses/{in_path(provider_job_id)}{action}")
        return self._session.send(request, min(self._timeout_ms, _LOOKUP_MS))

    def _fetched(self, reply: Reply, job_id: str) -> Outcome:
        if running(reply):
            return Running(provider_job_id=job_id)
        wants_json = inside(reply.body, "text", "format", "type") == "json_schema"
        return self._settled(reply, None, job_id, wants_json=wants_json)

    def _settled(self, reply: Reply, call: Call | None, job_id: str | None, *, wants_json: bool) -> Outcome:
        result = self.result_of(reply, call)
        named = None if result is None else replace(result, provider_job_id=job_id)
        return self.settled(reply, named, wants_json=wants_json, job_id=job_id, lookup=call is None)


class GatewayResponses(OpenAIResponses):
    """The same API at a gateway."""

    provider = "gateway"
    default_url = None
    id_headers = ("X-Client-Request-Id", "Idempotency-Key")

    def result_of(self, reply: Reply, call: Call | None) -> Result | None:
        result = super().result_of(reply, call)
        if result is None:
            return None
        requested = call.model if call else None
        evidence = gateway_evidence(result, reply.body, reply.headers, endpoint="responses", requested=requested)
        return replace(result, evidence=evidence, reported_cost_micros=reported_cost(reply.body, reply.headers))
