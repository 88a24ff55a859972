"""What is planted in an input is found nowhere but in the input and its result."""

from __future__ import annotations

import io
import itertools
import json
from dataclasses import replace

import pytest

from breakwater.domain.errors import BreakwaterError
from breakwater.domain.results import Accepted, Completed, Refused
from breakwater.domain.signals import ErrorClass
from breakwater.entry.ops import ops
from breakwater.telemetry import JsonLog
from breakwater.usecases.admit import Principal
from breakwater.usecases.audit import Desk
from breakwater.usecases.diagnose import diagnosis, shown
from breakwater.usecases.read import story, view
from tests.fakes.desk import FakeAuditLines, FakeOperatorTable
from tests.fakes.outside import answer, refusal
from tests.support.dead import batch_terms, terms
from tests.support.world import World

PLANTED = "sk-live-4242 my secret prompt"
HOLDS_CONTENT = ("INPUT#", "RESULT#")


class Listening(World):
    """A world whose lines are kept as text, with an operator's desk."""

    def __init__(self):
        super().__init__()
        self.text = io.StringIO()
        self.deps = replace(self.deps, log=JsonLog(self.clock.now, self.text))
        self.table, self.lines = FakeOperatorTable(), FakeAuditLines()
        ids = itertools.count(1)
        self.desk = Desk(
            deps=self.deps,
            table=self.table,
            lines=self.lines,
            new_id=lambda: f"a{next(ids)}",
            who=Principal(owner_key="", key_id="", scopes=frozenset()),
        )
        self.answers = []

    def operate(self, method, path, body=None):
        """An operator's request."""
        event = {
            "requestContext": {
                "http": {"method": method, "path": f"/v1/ops{path}"},
                "authorizer": {"lambda": {"owner_key": "ops", "key_id": "k1", "scopes": "operate"}},
            },
            "body": None if body is None else json.dumps(body),
        }
        found = ops(lambda: self.desk, event)
        self.answers.append(found["body"])
        return found

    def told(self):
        """Everything that leaves the tables, and all in them but the bodies: inputs, results, partial answers."""
        others = (item for (_, sk), item in self.store.items.items() if not sk.startswith(HOLDS_CONTENT))
        stored = [{name: value for name, value in item.items() if name != "body"} for item in others]
        return {
            "log and metrics": self.text.getvalue(),
            "dead letters": json.dumps(self.queues.dead),
            "bus": json.dumps([detail for _, _, detail in self.bus.events]),
            "audit": json.dumps([one.data() for one in self.table.entries.values()]),
            "audit log": json.dumps(self.lines.written),
            "items": json.dumps(stored, default=bytes.hex),
            "operators' answers": json.dumps(self.answers),
            "usage": json.dumps([dict(one) for one in self.store.lines.values()]),
        }


def _crash(_call):
    raise RuntimeError(PLANTED)


OUTCOMES = {
    "answered": [Completed(result=answer(PLANTED))],
    "refused": [refusal(ErrorClass.CALLER_FAULT, 400)],
    "failed": [refusal(ErrorClass.SERVER_FAULT, 500)] * 3,
    "spend": [refusal(ErrorClass.SPEND, 429)],
    "lost": [refusal(ErrorClass.OUTCOME_UNKNOWN)],
    "truncated": [Refused(signal=refusal(ErrorClass.TRUNCATED, 200).signal, partial=answer(PLANTED))],
    "crashed": [_crash],
    "accepted": [lambda call: Accepted(provider_job_id=f"resp_of_{call.job_id}")],
}


@pytest.mark.parametrize("outcome", sorted(OUTCOMES))
@pytest.mark.parametrize("workflow", ["sync", "paid"])
def test_what_is_planted_in_an_input_leaks_nowhere(workflow, outcome):
    """Not into a log line, a metric, a dead letter, the audit, the bus, the ledger, META, or an operator's answer."""
    world = Listening()
    job_id = world.submit(workflow, text=PLANTED).job.job_id
    world.provider.script = list(OUTCOMES[outcome])
    try:
        world.settle(30)
    except RuntimeError:
        world.clock.advance(300_000)
        world.settle(30)

    _look_at_everything(world, job_id)

    for place, text in world.told().items():
        assert "4242" not in text, place
        assert "secret prompt" not in text, place


def _look_at_everything(world, job_id):
    job = world.job(job_id)
    world.answers.append(json.dumps([shown(diagnosis(world.deps, job, deliveries=True)), story(world.deps, job)]))
    world.answers.append(json.dumps(view(world.deps, job)))
    for path in ("", "/diagnosis", "/executions", "/preview"):
        world.operate("GET", f"/jobs/{job_id}{path}")
    world.operate("GET", "/dead-letters")
    world.operate("GET", "/reviews")
    world.operate("POST", "/preview", {})
    world.operate("POST", f"/jobs/{job_id}/approve", {"why": "looks right", "proof": "provider shows nothing"})
    world.operate("POST", f"/jobs/{job_id}/replay", terms().model_dump(mode="json", exclude_none=True))
    world.operate("POST", "/batches", batch_terms().model_dump(mode="json", exclude_none=True))
    world.operate("POST", f"/jobs/{job_id}/close", {"why": "nobody needs it"})
    for _ in range(3):
        try:
            world.settle(10)
        except (RuntimeError, BreakwaterError):
            world.clock.advance(60_000)
