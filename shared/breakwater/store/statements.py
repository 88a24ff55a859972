"""How do several conditional writes travel in one request?

DynamoDB's plain batch write takes no conditions, and a transaction costs twice and fails as one. A batch of PartiQL
statements does what is wanted: each is a write of its own with its own condition, paid like one, and one that is
refused harms no other. Source: "BatchExecuteStatement" in the DynamoDB API reference; at most 25 in one request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from breakwater.domain.errors import StoreUnavailable
from breakwater.store.client import answered
from breakwater.store.wire import to_wire

MOST = 25
_REFUSED = frozenset({"ConditionalCheckFailed", "DuplicateItem"})
Statement = Mapping[str, Any]


def insert(table: str, item: Mapping[str, Any]) -> Statement:
    """Put if absent; keys first."""
    typed = to_wire(item)
    named = ", ".join(f"'{name}': ?" for name in typed)
    return {"Statement": f'INSERT INTO "{table}" VALUE {{{named}}}', "Parameters": list(typed.values())}


def delete(table: str, key: Mapping[str, Any], believed: Mapping[str, Any]) -> Statement:
    """Delete if its attributes are as believed; keys first."""
    typed = to_wire({**key, **believed})
    named = " AND ".join(f'"{name}" = ?' for name in typed)
    text = f'DELETE FROM "{table}" WHERE {named}'  # noqa: S608 - names are ours, values are parameters
    return {"Statement": text, "Parameters": list(typed.values())}


def run(client: Any, statements: Sequence[Statement]) -> list[bool]:
    """Which of them were done, in order; false where the condition refused.

    Raises `StoreUnavailable` when one was neither done nor refused: which of the others were is not known then.
    """
    done: list[bool] = []
    for start in range(0, len(statements), MOST):
        with answered():
            answer = client.batch_execute_statement(Statements=statements[start : start + MOST])
        codes = [one.get("Error", {}).get("Code") for one in answer["Responses"]]
        if any(code is not None and code not in _REFUSED for code in codes):
            raise StoreUnavailable("a statement of a batch was not executed")
        done += [code is None for code in codes]
    return done
