"""Puts the plain baseline into the local cloud, beside our own stack and with the same layers."""

from __future__ import annotations

import io
import json
import uuid
import zipfile
from pathlib import Path
from typing import Any

from tools.localcloud import LocalCloud

CODE = Path(__file__).parent / "baseline" / "app.py"
NAME = "plain"
CALL_SECONDS = 20
FUNCTION_SECONDS = 29
VISIBILITY_SECONDS = 6 * FUNCTION_SECONDS
RECEIVES = 5


class Plain:
    """Three functions, a queue with its dead-letter queue, and a table for idempotency."""

    def __init__(self, cloud: LocalCloud, provider_url: str) -> None:
        self._cloud, self._provider_url = cloud, provider_url
        self._lambda, self._sqs = cloud.client("lambda"), cloud.client("sqs")
        self.queue_url = ""
        self.dlq_url = ""

    def deploy(self) -> None:
        """Create everything once."""
        self._table()
        self.dlq_url = self._sqs.create_queue(QueueName=f"{NAME}-dlq")["QueueUrl"]
        redrive = {"deadLetterTargetArn": self._arn(self.dlq_url), "maxReceiveCount": str(RECEIVES)}
        attributes = {"VisibilityTimeout": str(VISIBILITY_SECONDS), "RedrivePolicy": json.dumps(redrive)}
        self.queue_url = self._sqs.create_queue(QueueName=NAME, Attributes=attributes)["QueueUrl"]
        role = any_role(self._cloud)
        for handler in ("interactive", "background", "admit"):
            self._function(handler, role)
        self._lambda.create_event_source_mapping(
            EventSourceArn=self._arn(self.queue_url),
            FunctionName=f"{NAME}-background",
            BatchSize=5,
            FunctionResponseTypes=["ReportBatchItemFailures"],
            ScalingConfig={"MaximumConcurrency": 4},
        )

    def over_http(self) -> str:
        """An HTTP API in front of the function that takes work in; the address to post to. Nobody's key is checked."""
        http = self._cloud.client("apigatewayv2")
        arn = self._lambda.get_function_configuration(FunctionName=f"{NAME}-admit")["FunctionArn"]
        api = str(http.create_api(Name=NAME, ProtocolType="HTTP")["ApiId"])
        target = http.create_integration(
            ApiId=api, IntegrationType="AWS_PROXY", IntegrationUri=arn, PayloadFormatVersion="2.0"
        )["IntegrationId"]
        http.create_route(ApiId=api, RouteKey="POST /jobs", Target=f"integrations/{target}")
        http.create_stage(ApiId=api, StageName="$default", AutoDeploy=True)
        self._lambda.add_permission(
            FunctionName=f"{NAME}-admit",
            StatementId=NAME,
            Action="lambda:InvokeFunction",
            Principal="apigateway.amazonaws.com",
        )
        return f"{self._cloud.endpoint}/_aws/execute-api/{api}/$default/jobs"

    def _table(self) -> None:
        self._cloud.client("dynamodb").create_table(
            TableName=f"{NAME}-idempotency",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )

    def _function(self, handler: str, role: str) -> None:
        ours = self._lambda.get_function_configuration(FunctionName="breakwater-local-run")
        layers = [one["Arn"] for one in ours["Layers"]]
        self._lambda.create_function(
            FunctionName=f"{NAME}-{handler}",
            Runtime=ours["Runtime"],
            Role=role,
            Handler=f"app.{handler}",
            Code={"ZipFile": _zipped()},
            Timeout=FUNCTION_SECONDS,
            MemorySize=1024,
            Layers=layers,
            Environment={
                "Variables": {
                    "IDEMPOTENCY_TABLE": f"{NAME}-idempotency",
                    "PROVIDER_URL": self._provider_url,
                    "CALL_SECONDS": str(CALL_SECONDS),
                    "QUEUE_URL": self.queue_url,
                    "POWERTOOLS_SERVICE_NAME": NAME,
                    "AWS_ACCESS_KEY_ID": "test",
                    "AWS_SECRET_ACCESS_KEY": "test",
                }
            },
        )

    def _arn(self, url: str) -> str:
        found = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return str(found["Attributes"]["QueueArn"])

    def depth(self) -> int:
        """Messages that are not done: waiting, in work or hidden."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found: dict[str, Any] = self._sqs.get_queue_attributes(QueueUrl=self.queue_url, AttributeNames=names)
        return sum(int(found["Attributes"][name]) for name in names)


def any_role(cloud: LocalCloud) -> str:
    """A role with every right, for what is not ours; the emulator enforces roles."""
    iam, anybody = cloud.client("iam"), {"Effect": "Allow", "Action": "*", "Resource": "*"}
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "lambda.amazonaws.com"}}
    name = f"{NAME}-{uuid.uuid4().hex[:8]}"
    role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=_document(trust))["Role"]
    iam.put_role_policy(RoleName=name, PolicyName="all", PolicyDocument=_document(anybody))
    return str(role["Arn"])


def _document(statement: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _zipped() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(CODE, "app.py")
    return packed.getvalue()
