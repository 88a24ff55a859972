"""Where do operators' actions go beside the table? Into a log group of their own, one stream a day, append only.

No function has a right to change or delete anything there; the one that writes may only append.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from breakwater.domain.audit import Entry
from breakwater.domain.errors import StoreUnavailable
from breakwater.store.client import answered

_MISSING, _EXISTS = "ResourceNotFoundException", "ResourceAlreadyExistsException"


class AuditLogGroup:
    """`operator_ports.AuditLines` over CloudWatch Logs."""

    def __init__(self, client: Any, group: str, writer: str) -> None:
        self._client, self._group, self._writer = client, group, writer

    def write(self, entries: Sequence[Entry]) -> None:
        """Append the entries; the stream of the day is made when it is not there."""
        if not entries:
            return
        day = datetime.fromtimestamp(entries[0].at / 1000, UTC).strftime("%Y-%m-%d")
        stream = f"{day}/{self._writer}"
        events = [{"timestamp": one.at, "message": json.dumps(one.data(), separators=(",", ":"))} for one in entries]
        try:
            self._put(stream, events)
        except ClientError:
            self._make(stream)
            with answered():
                self._client.put_log_events(logGroupName=self._group, logStreamName=stream, logEvents=events)

    def _put(self, stream: str, events: list[dict[str, Any]]) -> None:
        with answered(StoreUnavailable, _MISSING):
            self._client.put_log_events(logGroupName=self._group, logStreamName=stream, logEvents=events)

    def _make(self, stream: str) -> None:
        try:
            with answered(StoreUnavailable, _EXISTS):
                self._client.create_log_stream(logGroupName=self._group, logStreamName=stream)
        except ClientError:
            return
