"""Which writes are there, what does each believe, what does a failure mean? Writes docs/reference/writes.md.

The methods and their conditions come from the ports, the places that write from the code. A writing method without
a word here, or a word without a method, is an error; a new place makes the page stale. `--check` compares.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence

from breakwater import operator_ports, ports
from tools.docs.pages import ROOT, keep

PAGE = ROOT / "docs" / "reference" / "writes.md"
CODE = ROOT / "shared" / "breakwater"
PROTOCOLS = (
    ports.CapacityStore, ports.ScheduleStore, operator_ports.DeskStore, ports.JobStore, ports.Control,
    operator_ports.OperatorStore, ports.Payloads,
)  # fmt: skip

# (what the write believes, what a failure means) of every method that writes.
WRITES: Mapping[str, tuple[str, str]] = {
    "JobStore.create": (
        "nothing stands under the key, or what stands is past its retention",
        "the intent is known: compare fingerprints, answer with the standing job",
    ),
    "JobStore.commit": (
        "it is there, `rev` as read; a holder: `lease_epoch` is its own; a takeover: `locked_until` as read",
        (
            "somebody else moved the job: plan again over the item that came back, at most five times. Against an item "
            "that bears our own `write_id` it is no failure: the first try landed"
        ),
    ),
    "JobStore.renew": ("same `lease_epoch`, and not yet expired", "the lease is lost: stop working"),
    "JobStore.put_child": ("nothing stands under the child's key", "somebody wrote it first: go on with what stands"),
    "JobStore.put_children": ("of each: nothing stands under the child's key", "of each: what stands there stays"),
    "JobStore.keep_child": ("it is there, and its `ttl` is sooner", "it is gone, or kept that long already"),
    "JobStore.record_delivery": (
        "nothing stands under endpoint and webhook id",
        "a repeat (same body) or a conflict (another body, kept under a name of its own)",
    ),
    "JobStore.update_delivery": (
        "it is there, not processed, and `due_at` is as read",
        "somebody else works on it: skip",
    ),
    "JobStore.reopen_delivery": (
        "it is there, and `processed_at` is as read",
        "another redelivery reopened it first: nudge what stands",
    ),
    "JobStore.put_provider_job": (
        "nothing stands under endpoint and provider job id",
        "it is known: what was written first stands",
    ),
    "JobStore.put_route": (
        "`rev` as read, or nothing there",
        (
            "read again and recompute, at most five times. Against an item that bears our own `write_id` it is no "
            "failure: the first try landed"
        ),
    ),
    "JobStore.count_usage": (
        "one transaction: no line for this execution yet; its total is added to",
        "counted before: nothing to do",
    ),
    "CapacityStore.take_slot": (
        "the number is free, or its holder is the one that was found not to hold it",
        "somebody was faster: the next number, else wait",
    ),
    "CapacityStore.take_slots": (
        "of each: the number is free",
        "of each: asked again alone, which tells a repeat of our own from somebody who was faster; then a look",
    ),
    "CapacityStore.free_slots": ("of each: the slot is still this holder's", "freed before: harmless"),
    "CapacityStore.keep_slot": ("the slot is still this holder's", "it was given away: nothing to keep"),
    "CapacityStore.free_slot": ("the slot is still this holder's", "freed before: harmless"),
    "CapacityStore.spend_rate": (
        "the stored value leaves room for the cost within the burst",
        "no room: the time when there is; the job waits and loses no attempt",
    ),
    "CapacityStore.adjust_rate": ("none: one atomic addition that corrects an estimate", "a lost one stays spent"),
    "CapacityStore.put_latest": ("nothing stands, or what stands is older", "a newer result stands already"),
    "ScheduleStore.put_scheduled": ("`rev` as read, or nothing there", "another scheduler was faster: skip"),
    "DeskStore.put_batch": ("`rev` as read, or nothing there", "read again and recompute"),
    "DeskStore.put_batch_line": ("nothing stands under the line's key", "written before: harmless"),
    "Control.put_switches": ("`rev` as read", "another operator was faster: read again"),
    "OperatorStore.put_audit": ("nothing stands under the entry's key", "written before: harmless"),
    "OperatorStore.put_api_key": ("the hash is not there yet", "the key exists"),
    "OperatorStore.revoke_api_key": ("it is there and not revoked", "revoked before, or never there"),
    "OperatorStore.put_owner": ("the settings are as read", "another operator was faster: read again"),
    "Payloads.put": (
        "none: the key names the content's digest, so whatever stands there is the same",
        "not stored: the write that would point to it is not made",
    ),
}

_HEAD = """# Every write, and what it believes

Generated by `python -m tools.docs.writes`; do not edit. A write that can't say which condition protects it isn't done.
No write creates what it does not find, except where it says "nothing stands".

| write | condition | if it fails | made by |
| --- | --- | --- | --- |
"""


def page() -> str:
    """The whole page."""
    rows = [_row(name) for name in WRITES]
    return _HEAD + "\n".join(rows) + "\n" + "\n".join(_moves()) + "\n"


def _row(name: str) -> str:
    condition, failure = WRITES[name]
    made = ", ".join(f"`{place}`" for place in sorted(places().get(name.partition(".")[2], ()))) or "tools"
    return f"| `{name}` | {condition} | {failure} | {made} |"


def _moves() -> Iterator[str]:
    """Who moves META: every call of `change`, which plans, commits under `rev` and plans again."""
    yield "\n## Who moves a job\n"
    yield "All through `usecases/change.py`: plan over the item as read, commit under its `rev`.\n"
    yield "| module | function | guard beyond `rev` |\n| --- | --- | --- |"
    for module, function, guarded in sorted(set(_changes())):
        yield f"| `{module}` | `{function}` | {'lease epoch, or lease end as read' if guarded else 'none'} |"


def places() -> dict[str, set[str]]:
    """Method name → modules that call it on a store."""
    found: dict[str, set[str]] = {}
    names = {name.partition(".")[2] for name in WRITES}
    for module, call in _calls():
        if isinstance(call.func, ast.Attribute) and call.func.attr in names and _is_store(call.func.value):
            found.setdefault(call.func.attr, set()).add(module)
    return found


def _changes() -> Iterator[tuple[str, str, bool]]:
    for path in sorted(CODE.glob("usecases/*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef):
                continue
            for call in ast.walk(node):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "change":
                    guarded = len(call.args) > 3 or any(word.arg == "guard" for word in call.keywords)  # noqa: PLR2004
                    yield path.relative_to(CODE).as_posix(), node.name, guarded


def _calls() -> Iterator[tuple[str, ast.Call]]:
    for path in sorted(CODE.glob("*/*.py")):
        module = path.relative_to(CODE).as_posix()
        if module.startswith(("store/", "domain/")):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                yield module, node


def _is_store(value: ast.expr) -> bool:
    """`deps.store`, `self._store`, `desk.table` and the like; not a dictionary, a bus or a queue."""
    return bool(re.search(r"(store|control|table|operators?|payloads)$", ast.unparse(value)))


def methods() -> set[str]:
    """Every method of the ports over tables and objects, as `Protocol.method`."""
    found = set()
    for protocol in PROTOCOLS:
        own = [name for name, _ in inspect.getmembers(protocol, inspect.isfunction) if name in vars(protocol)]
        found |= {f"{protocol.__name__}.{name}" for name in own if not name.startswith("_")}
    return found


def main(arguments: Sequence[str]) -> int:
    """Write the page, or with `--check` say whether it is fresh."""
    return keep(PAGE, page(), "writes", arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
