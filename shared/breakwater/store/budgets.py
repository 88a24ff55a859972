"""What has an owner spent this month? The ledger's totals, one eventual read a minute and process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from breakwater.store.control import Cache

KEEP_MS = 60_000
Usage = Callable[[str, str], list[Mapping[str, Any]]]


class Spent:
    """`ports.Spending` over the usage totals. A refresh that fails serves what was known."""

    def __init__(self, usage: Usage, monotonic: Callable[[], int]) -> None:
        self._usage, self._cache = usage, Cache(monotonic)

    def spent(self, owner_key: str, period: str) -> Mapping[str, int]:
        """Micro-dollars by workflow, and in all under the empty name."""
        found: Mapping[str, int] = self._cache.get(
            f"{owner_key}/{period}", KEEP_MS, lambda: self._read(owner_key, period)
        )
        return found

    def _read(self, owner_key: str, period: str) -> dict[str, int]:
        totals = {}
        for item in self._usage(owner_key, period):
            _, _, workflow = str(item["sk"]).removeprefix("TOTAL#").partition("#")
            totals[workflow] = int(item.get("cost_micros", 0))
        return totals | {"": sum(totals.values())}
