"""Deliveries as a gateway hands them over, signed like a provider's, and the endpoints they come in at."""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from breakwater.domain.endpoint_entries import load_endpoints as load
from breakwater.domain.endpoints import Endpoint
from breakwater.domain.signature import sign
from breakwater.entry.webhook import webhook
from breakwater.policy_yaml import load as load_policies
from breakwater.usecases.intake import IntakeDeps
from tests.support.world import World

POLICIES = Path(__file__).resolve().parents[2] / "shared" / "policies"
SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
OTHER = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4"
Answer = tuple[int, str]


@functools.cache
def endpoints() -> Mapping[str, Endpoint]:
    """The endpoints that are shipped."""
    return load(load_policies(POLICIES).endpoints)


def completed(provider_job_id: str = "resp_test_1", **more: Any) -> bytes:
    """The body of a finished response, as compact as it is signed."""
    told = {"type": "response.completed", "data": {"id": provider_job_id, **more}}
    return json.dumps(told, separators=(",", ":")).encode()


def signed(body: bytes, webhook_id: str, now_ms: int, *secrets: str) -> dict[str, str]:
    """The headers of a genuine delivery."""
    stamp = now_ms // 1000
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(stamp),
        "webhook-signature": sign(secrets or (SECRET,), webhook_id, stamp, body),
    }


def event(body: Any, headers: Any, endpoint: str = "openai", *, binary: bool = False) -> dict[str, Any]:
    """The gateway's event; `binary` bodies come as base64."""
    text = body if body is None or isinstance(body, str) else body.decode("utf-8", "surrogateescape")
    if binary and isinstance(body, bytes):
        text = base64.b64encode(body).decode()
    return {
        "version": "2.0",
        "routeKey": "POST /v1/webhooks/{endpoint}",
        "headers": headers,
        "pathParameters": {"endpoint": endpoint},
        "requestContext": {"requestId": "r-1", "http": {"method": "POST", "path": f"/v1/webhooks/{endpoint}"}},
        "body": text,
        "isBase64Encoded": binary,
    }


def post(world: World, made: Mapping[str, Any], secrets: Mapping[str, Any] | None = None) -> Answer:
    """Hand an event to the intake; its status and its one word."""
    deps = IntakeDeps(
        store=world.store,
        queues=world.queues,
        payloads=lambda: world.payloads,
        clock=world.clock,
        log=world.log,
    )
    known = {"openai": [SECRET], "gemini": [SECRET], "gateway": [SECRET], "media": [SECRET]}
    answer = webhook(deps, endpoints(), lambda: known if secrets is None else secrets, made)
    return answer["statusCode"], json.loads(answer["body"])["result"]


def deliver(world: World, body: bytes, webhook_id: str = "msg_case_0001", **more: Any) -> Answer:
    """A genuine delivery, signed now."""
    return post(world, event(body, signed(body, webhook_id, world.clock.now()), **more))
