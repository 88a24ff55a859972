"""What was spent? Totals of an owner by month and workflow, each execution counted once."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from breakwater.domain.errors import InvalidRequest
from breakwater.usecases.deps import Deps

_NUMBERS = ("executions", "cost_micros", "usage_units", "input_tokens", "output_tokens")


def usage(deps: Deps, owner_key: str, period: str) -> dict[str, Any]:
    """Totals of one month (`YYYY-MM`, the current one when empty), in all and by workflow."""
    period = period or datetime.fromtimestamp(deps.now() / 1000, UTC).strftime("%Y-%m")
    if not re.fullmatch(r"[0-9]{4}-(0[1-9]|1[0-2])", period):
        raise InvalidRequest("`period` can't be used.", field="period", rule="YYYY-MM", fix="send for example 2026-11")
    by_workflow: dict[str, dict[str, int]] = {}
    for item in deps.store.usage(owner_key, period):
        _, _, workflow = str(item["sk"]).removeprefix("TOTAL#").partition("#")
        by_workflow[workflow] = {name: int(item.get(name, 0)) for name in _NUMBERS}
    total = {name: sum(one[name] for one in by_workflow.values()) for name in _NUMBERS}
    return {"owner_key": owner_key, "period": period, "total": total, "workflows": by_workflow}
