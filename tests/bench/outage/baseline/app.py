"""The same work as the public documentation would have people build it: SQS, Lambda, Powertools, the vendor's SDK.

In its best form: the SDK's own retries, idempotency in a table, partial batch failures returned rather than raised,
a dead-letter queue, visibility six times the time-out. It has no memory of a provider's health.
"""

from __future__ import annotations

import json
import os
from functools import cache
from typing import Any

import boto3
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)
from openai import OpenAI, OpenAIError

processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
config = IdempotencyConfig(event_key_jmespath="key", raise_on_no_idempotency_key=True)


@cache
def persistence() -> DynamoDBPersistenceLayer:
    """Where done work is remembered."""
    return DynamoDBPersistenceLayer(table_name=os.environ["IDEMPOTENCY_TABLE"])


@cache
def provider() -> OpenAI:
    """The vendor's client with its default of two retries."""
    seconds = float(os.environ["CALL_SECONDS"])
    return OpenAI(base_url=os.environ["PROVIDER_URL"], api_key="sk-baseline", timeout=seconds, max_retries=2)


def ask(data: dict[str, Any]) -> dict[str, Any]:
    """One answer of the provider."""
    answer = provider().responses.create(model="baseline", input=f"{data['key']} {data['text']}")
    return {"text": answer.output_text}


def once(data: dict[str, Any]) -> dict[str, Any]:
    """The answer, asked for once for each key."""
    done = idempotent_function(ask, data_keyword_argument="data", config=config, persistence_store=persistence())
    found: dict[str, Any] = done(data=data)
    return found


def interactive(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """A person waits."""
    config.register_lambda_context(context)
    try:
        return {"statusCode": 200, "body": json.dumps(once(event))}
    except OpenAIError as error:
        return {"statusCode": 502, "body": json.dumps({"error": type(error).__name__})}


@cache
def queue() -> Any:
    """Where work is handed in."""
    return boto3.client("sqs")


def admit(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """A caller hands in work and is answered with an id; through an HTTP API, or without one."""
    text = event.get("body") or json.dumps(event)
    queue().send_message(QueueUrl=os.environ["QUEUE_URL"], MessageBody=text)
    return {"statusCode": 202, "body": json.dumps({"id": json.loads(text)["key"]})}


def record(record: SQSRecord) -> dict[str, Any]:
    """One message."""
    return once(json.loads(record.body))


def background(event: dict[str, Any], context: Any) -> Any:
    """A batch; what failed comes again after its visibility."""
    config.register_lambda_context(context)
    return process_partial_response(event=event, record_handler=record, processor=processor, context=context)
