"""A batch of statements: each with its own answer, and no answer at all where one was not executed."""

from __future__ import annotations

from typing import Any

import pytest

from breakwater.domain.errors import StoreUnavailable
from breakwater.store import statements


class Client:
    """Answers each statement in turn with one of these codes."""

    def __init__(self, *codes: str | None) -> None:
        self.codes, self.sizes = list(codes), list[int]()

    def batch_execute_statement(self, **given: Any) -> dict[str, Any]:
        self.sizes.append(len(given["Statements"]))
        codes = [self.codes.pop(0) for _ in given["Statements"]]
        return {"Responses": [{} if code is None else {"Error": {"Code": code}} for code in codes]}


def some(number: int) -> list[Any]:
    """Statements of any kind."""
    return [statements.insert("table", {"pk": "a", "sk": str(n)}) for n in range(number)]


def test_a_refused_condition_harms_no_other():
    """Something stands there, or somebody else holds it."""
    client = Client(None, "DuplicateItem", "ConditionalCheckFailed", None)
    assert statements.run(client, some(4)) == [True, False, False, True]


@pytest.mark.parametrize("code", ["ThrottlingError", "AccessDenied", "InternalServerError", "TransactionConflict"])
def test_one_that_was_not_executed_leaves_all_of_them_unknown(code):
    """As if the answer had been lost: who asked begins again, and every write bears that."""
    with pytest.raises(StoreUnavailable):
        statements.run(Client(None, code), some(2))


def test_a_request_holds_no_more_than_it_may():
    """25, and nothing is asked for nothing."""
    client = Client(*[None] * 60)
    assert statements.run(client, some(60)) == [True] * 60
    assert client.sizes == [25, 25, 10]
    assert statements.run(client, []) == []
    assert len(client.sizes) == 3


def test_values_are_parameters_and_keys_come_first():
    """Nothing that a caller sent is ever part of a statement's text."""
    held = statements.delete("t", {"pk": "SLOT#a", "sk": "00001"}, {"job_id": "j' OR 1=1", "epoch": 2})
    assert held["Statement"] == 'DELETE FROM "t" WHERE "pk" = ? AND "sk" = ? AND "job_id" = ? AND "epoch" = ?'
    assert held["Parameters"] == [{"S": "SLOT#a"}, {"S": "00001"}, {"S": "j' OR 1=1"}, {"N": "2"}]
    put = statements.insert("t", {"pk": "a", "sk": "b", "data": {"x": None}})
    assert put["Statement"] == "INSERT INTO \"t\" VALUE {'pk': ?, 'sk': ?, 'data': ?}"
    assert put["Parameters"][2] == {"M": {"x": {"NULL": True}}}
