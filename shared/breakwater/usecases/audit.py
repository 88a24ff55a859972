"""How does an operator's action get its name? One entry before it, one after; no entry, no change.

The table is the truth. The log group gets the same lines, so that whoever could change the table still leaves a trace;
when that service does not answer, the action goes on and the missing line is told and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, TypeVar

from breakwater.domain.audit import Entry, Stage
from breakwater.domain.errors import Rejected, StoreUnavailable
from breakwater.domain.values import dataclass
from breakwater.operator_ports import AuditLines, OperatorStore
from breakwater.usecases.deps import Deps
from breakwater.usecases.principal import Principal

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What an operator's use case gets: the ports of all, the operators' own, and who asks."""

    deps: Deps
    table: OperatorStore
    lines: AuditLines
    new_id: Callable[[], str]
    who: Principal

    @property
    def name(self) -> str:
        """The caller, as the audit names it."""
        return f"{self.who.owner_key}/{self.who.key_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What somebody is about to do."""

    what: str
    target: str
    why: str
    before: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""


def audited(desk: Desk, action: Action, work: Callable[[], tuple[Result, Mapping[str, Any]]]) -> Result:
    """Do the work between two entries. `work` gives its result and what there is afterwards.

    Raises what `work` raises; a refusal is recorded first. Raises `StoreUnavailable`, with nothing done, when the
    first entry can't be written.
    """
    asked = Entry(
        id=action.id or desk.new_id(),
        at=desk.deps.now(),
        stage=Stage.ASKED,
        who=desk.name,
        what=action.what,
        target=action.target,
        why=action.why,
        before=action.before,
    )
    _record(desk, asked)
    try:
        result, after = work()
    except Rejected as error:
        _record(desk, _stage(asked, Stage.REFUSED, {"refused": error.slug, "rule": error.rule or ""}))
        raise
    _record(desk, _stage(asked, Stage.DONE, after))
    return result


def _stage(asked: Entry, stage: Stage, after: Mapping[str, Any]) -> Entry:
    return Entry(
        id=asked.id,
        at=asked.at,
        stage=stage,
        who=asked.who,
        what=asked.what,
        target=asked.target,
        why=asked.why,
        before=asked.before,
        after={name: value for name, value in after.items() if value is not None},
    )


def _record(desk: Desk, entry: Entry) -> None:
    desk.table.put_audit(entry)
    try:
        desk.lines.write([entry])
    except StoreUnavailable:
        desk.deps.log.note("audit_line_lost", action=entry.id, what=entry.what, stage=entry.stage.value)


def entries(desk: Desk, month: str, limit: int, cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
    """The audit of a month, newest first."""
    found, following = desk.table.audit(month, limit, cursor)
    return [one.data() for one in found], following
