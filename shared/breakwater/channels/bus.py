"""How does the team's own account hear of a job's end? An event on its bus, under one stable id."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from breakwater.domain.errors import Unavailable

SOURCE = "breakwater"


class BusUnavailable(Unavailable):
    """The event bus did not take the event."""


class EventBus:
    """`ports.Bus` over EventBridge."""

    def __init__(self, client: Any, name: str) -> None:
        self._client, self._name = client, name

    def put(self, event_id: str, kind: str, detail: Mapping[str, Any], at: int) -> None:
        """Publish one event. Repeated with the same `id` in its detail, by which a consumer knows it again."""
        entry = {
            "Source": SOURCE,
            "DetailType": kind,
            "EventBusName": self._name,
            "Detail": json.dumps({"id": event_id, **detail}),
            "Time": datetime.fromtimestamp(at / 1000, UTC),
        }
        try:
            answer = self._client.put_events(Entries=[entry])
        except (BotoCoreError, ClientError) as error:
            raise BusUnavailable from error
        if answer.get("FailedEntryCount"):
            raise BusUnavailable
