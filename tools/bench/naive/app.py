"""What most people write first: everything imported where the file begins."""

from __future__ import annotations

from typing import Any

import boto3
import httpx
import openai
import pydantic
import standardwebhooks
from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver

logger = Logger(service="naive")
metrics = Metrics(namespace="naive", service="naive")
app = APIGatewayHttpResolver()
_made: dict[str, Any] = {}


class Body(pydantic.BaseModel):
    """The request."""

    text: str = ""


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Make the clients once, answer nothing of interest."""
    if not _made:
        make: Any = boto3.client
        _made["dynamodb"], _made["sqs"] = make("dynamodb"), make("sqs")
        _made["openai"] = openai.OpenAI(api_key="none")
        _made["http"] = httpx.Client()
        _made["webhook"] = standardwebhooks.Webhook("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3")
    return {"statusCode": 404, "body": Body(text=str(event.get("version"))).model_dump_json()}
