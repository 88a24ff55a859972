"""The jobs table as one store: META and children, what keeps limits, and everything beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from breakwater.store.attention import AttentionTable
from breakwater.store.batches import BatchTable
from breakwater.store.capacity import CapacityTable
from breakwater.store.jobs import MetaTable
from breakwater.store.lines import LineTable
from breakwater.store.records import RecordTable
from breakwater.store.schedules import ScheduleTable


class DynamoJobStore(MetaTable, RecordTable, CapacityTable, LineTable, AttentionTable, BatchTable, ScheduleTable):
    """`ports.JobStore` over DynamoDB."""

    def __init__(self, client: Any, table: str, new_id: Callable[[], str], renewals: Any = None) -> None:
        MetaTable.__init__(self, client, table, new_id, renewals)
