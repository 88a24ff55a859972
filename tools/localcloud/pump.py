"""How do the template's alarms fire locally? The emulator reads neither metric lines in logs nor queue lengths.

This background program reads both, every few seconds, and hands them to the emulator as metric data:
`python -m tools.localcloud.pump ENDPOINT`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tools.localcloud.cloud import client

INTERVAL_SECONDS = 5.0
BATCH = 500  # data points in one call
PREFIX = "breakwater-"
QUEUE_METRICS = {
    "ApproximateNumberOfMessages": "ApproximateNumberOfMessagesVisible",
    "ApproximateNumberOfMessagesNotVisible": "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed": "ApproximateNumberOfMessagesDelayed",
}


def main() -> None:
    """Pump until told to stop."""
    pump = Pump(sys.argv[1])
    while True:
        try:
            pump.once()
        except (BotoCoreError, ClientError) as error:
            print(f"{datetime.now(UTC):%H:%M:%S} {error}")
        time.sleep(INTERVAL_SECONDS)


class Pump:
    """Moves figures from logs and queues to metrics."""

    def __init__(self, endpoint: str) -> None:
        self._logs, self._sqs = client(endpoint, "logs"), client(endpoint, "sqs")
        self._metrics = client(endpoint, "cloudwatch")
        self._read_until: dict[str, int] = {}

    def once(self) -> int:
        """Move what is new; returns how many data points that were."""
        found: dict[str, list[dict[str, Any]]] = {"AWS/SQS": list(self._queue_figures())}
        for message in self._new_lines():
            for namespace, point in metric_points(message):
                found.setdefault(namespace, []).append(point)
        for namespace, points in found.items():
            for first in range(0, len(points), BATCH):
                self._metrics.put_metric_data(Namespace=namespace, MetricData=points[first : first + BATCH])
        return sum(len(points) for points in found.values())

    def _queue_figures(self) -> Iterator[dict[str, Any]]:
        for url in self._sqs.list_queues(QueueNamePrefix=PREFIX).get("QueueUrls", []):
            known = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(QUEUE_METRICS))["Attributes"]
            dimensions = [{"Name": "QueueName", "Value": url.rpartition("/")[2]}]
            for attribute, metric in QUEUE_METRICS.items():
                yield {
                    "MetricName": metric,
                    "Dimensions": dimensions,
                    "Value": float(known[attribute]),
                    "Unit": "Count",
                }

    def _new_lines(self) -> Iterator[str]:
        groups = self._logs.describe_log_groups(logGroupNamePrefix=f"/aws/lambda/{PREFIX}")["logGroups"]
        for group in (one["logGroupName"] for one in groups):
            since = self._read_until.get(group, 0)
            pages = self._logs.get_paginator("filter_log_events").paginate(logGroupName=group, startTime=since)
            for event in (event for page in pages for event in page["events"]):
                # Lines are stored in the order in which they come, so the next look starts behind the last.
                self._read_until[group] = max(self._read_until.get(group, 0), event["ingestionTime"] + 1)
                yield event["message"]


def metric_points(message: str) -> Iterable[tuple[str, dict[str, Any]]]:
    """The data points of a line in CloudWatch's embedded metric format; none of any other line."""
    if '"_aws"' not in message:
        return
    try:
        line = json.loads(message[message.index("{") :])
        directives = line["_aws"]["CloudWatchMetrics"]
    except (ValueError, KeyError, TypeError):
        return
    for directive in directives:
        for names in directive.get("Dimensions") or [[]]:
            dimensions = [{"Name": name, "Value": str(line[name])} for name in names if name in line]
            for metric in directive.get("Metrics", []):
                yield directive["Namespace"], _point(line, metric, dimensions)


def _point(line: Mapping[str, Any], metric: Mapping[str, str], dimensions: list[dict[str, str]]) -> dict[str, Any]:
    value = line[metric["Name"]]
    values = [float(one) for one in (value if isinstance(value, list) else [value])]
    when = datetime.fromtimestamp(line["_aws"]["Timestamp"] / 1000, UTC)
    return {
        "MetricName": metric["Name"],
        "Dimensions": dimensions,
        "Timestamp": when,
        "Values": values,
        "Counts": [1.0] * len(values),
        "Unit": metric.get("Unit", "None"),
    }


if __name__ == "__main__":
    main()
