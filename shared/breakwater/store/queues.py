"""How is a nudge sent, and how is a dead-letter queue drained?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from breakwater.domain.errors import QueueUnavailable
from breakwater.domain.obligations import Nudge, Queue
from breakwater.domain.timing import MAX_QUEUE_DELAY
from breakwater.store.client import answered

_BATCH = 10


def delay_seconds(at: int, now: int) -> int:
    """How long a message hides: whole seconds, rounded up so that it never shows too early, within what SQS takes."""
    return -(-min(max(at - now, 0), MAX_QUEUE_DELAY) // 1000)


class SqsQueues:
    """`ports.Queues` over SQS. `urls` and `dlq_urls` by queue; `dead_letters` is the queue for people."""

    def __init__(
        self,
        client: Any,
        urls: Mapping[Queue, str],
        dead_letters: str | None = None,
        dlq_urls: Mapping[Queue, str] | None = None,
    ) -> None:
        self._client, self._urls, self._dead_letters = client, urls, dead_letters
        self._dlq_urls = dlq_urls or {}

    def nudge(self, kind: str, item_id: str, nudges: Sequence[Nudge], group: str, now: int) -> None:
        """Send each nudge with its delay."""
        for one in nudges:
            with answered(QueueUnavailable):
                self._client.send_message(
                    QueueUrl=self._urls[one.queue],
                    MessageBody=_body(kind, item_id),
                    DelaySeconds=delay_seconds(one.at, now),
                    MessageGroupId=_group(group),
                )

    def nudge_all(self, queue: Queue, items: Sequence[tuple[str, str, str]]) -> list[int]:
        """Send in batches of ten; the positions that the queue did not take."""
        refused: list[int] = []
        for start in range(0, len(items), _BATCH):
            entries = [
                {"Id": str(start + n), "MessageBody": _body(kind, item_id), "MessageGroupId": _group(group)}
                for n, (kind, item_id, group) in enumerate(items[start : start + _BATCH])
            ]
            with answered(QueueUnavailable):
                answer = self._client.send_message_batch(QueueUrl=self._urls[queue], Entries=entries)
            refused += [int(one["Id"]) for one in answer.get("Failed", ())]
        return refused

    def dead_letter(self, reference: Mapping[str, Any]) -> None:
        """One reference for people to find."""
        if self._dead_letters is None:
            raise QueueUnavailable("no dead-letters queue is configured")
        with answered(QueueUnavailable):
            self._client.send_message(
                QueueUrl=self._dead_letters,
                MessageBody=json.dumps(dict(reference), separators=(",", ":")),
            )

    def drain(self, queue: Queue, limit: int) -> list[tuple[str, str]]:
        """Up to `limit` messages of the queue's DLQ, without waiting."""
        found: list[tuple[str, str]] = []
        while len(found) < limit:
            with answered(QueueUnavailable):
                answer = self._client.receive_message(
                    QueueUrl=self._dlq_urls[queue],
                    MaxNumberOfMessages=min(_BATCH, limit - len(found)),
                    VisibilityTimeout=60,
                    WaitTimeSeconds=0,
                )
            messages = answer.get("Messages", [])
            found += [(one["ReceiptHandle"], one["Body"]) for one in messages]
            if not messages:
                break
        return found

    def drained(self, queue: Queue, receipt: str) -> None:
        """Delete a message whose count is safe in the table."""
        with answered(QueueUnavailable):
            self._client.delete_message(QueueUrl=self._dlq_urls[queue], ReceiptHandle=receipt)


def _body(kind: str, item_id: str) -> str:
    return json.dumps({"kind": kind, "id": item_id}, separators=(",", ":"))


def _group(owner: str) -> str:
    """SQS takes 128 characters of letters, digits and punctuation as a group."""
    return "".join(one if one.isascii() and one.isprintable() and one != " " else "_" for one in owner)[:128] or "_"
