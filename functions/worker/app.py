"""New work: one nudge, one job, one attempt. Two functions run this code, one a lane."""

from __future__ import annotations

from typing import Any

from breakwater import wiring
from breakwater.entry.queue import consume
from breakwater.usecases.step import Told, step


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Work on the nudges of a batch; the answer names those that must come again."""
    deps = wiring.for_worker()

    def work(kind: str, item_id: str, record: dict[str, Any]) -> None:
        if kind == "job":
            step(deps, item_id, context.get_remaining_time_in_millis, _told(record, context))

    return consume(event, context, deps.log, work)


def _told(record: dict[str, Any], context: Any) -> Told:
    received = record.get("attributes", {}).get("ApproximateReceiveCount", "0")
    return Told(
        message_id=record.get("messageId"),
        receive_count=int(received),
        lambda_request_id=context.aws_request_id,
    )
