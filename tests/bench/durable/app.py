"""The same work as a durable function: one step that asks the provider, repeated by the service, waited for inside."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from aws_durable_execution_sdk_python import DurableContext, durable_execution
from openai import OpenAI


@cache
def provider() -> OpenAI:
    """The vendor's client; its own retries stay off, the steps are repeated instead."""
    return OpenAI(base_url=os.environ["PROVIDER_URL"], api_key="sk-baseline", timeout=20, max_retries=0)


@durable_execution
def handler(event: dict[str, Any], context: DurableContext) -> dict[str, Any]:
    """One job."""

    def ask(_step: Any) -> str:
        answer = provider().responses.create(model="durable", input=f"{event['key']} {event['text']}")
        return str(answer.output_text)

    return {"text": context.step(ask, name="ask")}
