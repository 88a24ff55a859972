"""The operators' API over an in-memory world: scope, audit, every action and every look."""

from __future__ import annotations

import itertools
import json

import pytest

from breakwater.entry.api import api
from breakwater.entry.ops import ROUTES, ops
from breakwater.usecases.admit import Principal
from breakwater.usecases.audit import Desk
from tests.fakes.desk import FakeAuditLines, FakeOperatorTable
from tests.support.dead import batch_terms, dead, terms
from tests.support.world import World

NOBODY = Principal(owner_key="", key_id="", scopes=frozenset())


class Office:
    """A world with an operator in it."""

    def __init__(self):
        self.world = World()
        self.table, self.lines = FakeOperatorTable(), FakeAuditLines()
        ids = itertools.count(1)
        self.desk = Desk(
            deps=self.world.deps,
            table=self.table,
            lines=self.lines,
            new_id=lambda: f"a{next(ids)}",
            who=NOBODY,
        )

    def call(self, method, path, body=None, scopes="operate", **query):
        """One request; status and body."""
        answer = ops(lambda: self.desk, event(method, f"/v1/ops{path}", body, scopes, query))
        return answer["statusCode"], json.loads(answer["body"])

    def get(self, path, **query):
        """A look that must be possible."""
        status, body = self.call("GET", path, **query)
        assert status == 200, body
        return body

    def audit(self):
        """(what, stage) in order of writing."""
        return [(one.what, one.stage.value) for one in self.table.entries.values()]


def event(method, path, body, scopes, query):
    """The gateway's event."""
    return {
        "requestContext": {
            "http": {"method": method, "path": path},
            "authorizer": {"lambda": {"owner_key": "ops", "key_id": "k1", "scopes": scopes}},
            "requestId": "r-1",
        },
        "queryStringParameters": {name: str(value) for name, value in query.items()} or None,
        "body": None if body is None else json.dumps(body),
    }


@pytest.fixture
def office():
    """An operator's desk."""
    return Office()


def plain(value):
    """Terms as a client sends them."""
    return value.model_dump(mode="json", exclude_none=True)


def held(world):
    """A job that waits for approval."""
    job_id = world.submit("guarded").job.job_id
    world.pump()
    return job_id


@pytest.mark.parametrize("scopes", ["", "read", "read submit"])
def test_only_the_scope_operate_gets_in(office, scopes):
    """Not even for a look."""
    status, body = office.call("GET", "/dead-letters", scopes=scopes)

    assert (status, body["rule"]) == (403, "scope")


def test_an_unknown_path_is_told(office):
    """No action hides behind a wrong method."""
    assert office.call("GET", "/nonsense")[0] == 404
    assert office.call("POST", "/dead-letters")[0] == 404


def test_a_dead_letter_is_found_previewed_replayed_and_done(office):
    """The whole way out, with its audit."""
    job_id = dead(office.world)

    assert [one["job_id"] for one in office.get("/dead-letters")["dead_letters"]] == [job_id]
    assert office.get(f"/jobs/{job_id}/preview")["would_replay"]
    status, body = office.call("POST", f"/jobs/{job_id}/replay", plain(terms()))
    assert (status, body["generation"], body["repeated"]) == (202, 2, False)
    assert office.call("POST", f"/jobs/{job_id}/replay", plain(terms()))[0] == 200
    office.world.settle()

    assert office.get(f"/jobs/{job_id}")["status"] == "succeeded"
    assert office.get("/dead-letters")["dead_letters"] == []
    assert office.audit() == [("replay", "asked"), ("replay", "done"), ("replay", "asked"), ("replay", "done")]


def test_what_is_refused_is_in_the_audit_too(office):
    """Somebody wanted it, and was told no: both are on record."""
    job_id = dead(office.world)
    office.call("POST", f"/jobs/{job_id}/close", {"why": "nobody needs it"})

    status, body = office.call("POST", f"/jobs/{job_id}/replay", plain(terms()))

    assert (status, body["rule"]) == (409, "replayable")
    assert office.audit()[-2:] == [("replay", "asked"), ("replay", "refused")]


def test_an_entry_says_who_when_what_why_before_and_after(office):
    """And the same line goes to the log group."""
    job_id = dead(office.world)

    office.call("POST", f"/jobs/{job_id}/close", {"why": "nobody needs it"})

    entries = office.get("/audit")["entries"]
    assert entries[0] | {"at": 0} == {
        "id": "a1",
        "at": 0,
        "stage": "done",
        "who": "ops/k1",
        "what": "close",
        "target": f"job:{job_id}",
        "why": "nobody needs it",
        "before": entries[1]["before"],
        "after": entries[0]["after"],
    }
    assert entries[1]["before"]["status"] == "dead_letter"
    assert office.lines.written == list(reversed(entries))


def test_nothing_happens_without_its_audit_entry(office):
    """The table of the audit is down: the action is not done."""
    job_id = dead(office.world)
    office.table.broken = True

    status, _ = office.call("POST", f"/jobs/{job_id}/close", {"why": "nobody needs it"})

    assert status == 503
    assert office.world.job(job_id).closed_at is None


def test_a_lost_log_line_is_told_and_stops_nothing(office):
    """The table has the truth."""
    job_id = dead(office.world)
    office.lines.broken = True

    status, _ = office.call("POST", f"/jobs/{job_id}/close", {"why": "nobody needs it"})

    assert status == 200
    assert [name for name, _ in office.world.log.notes].count("audit_line_lost") == 2


def test_reviews_are_listed_approved_and_rejected(office):
    """With the missing decision named in the list."""
    first = held(office.world)
    assert [(one["job_id"], one["reason"]) for one in office.get("/reviews")["reviews"]] == [
        (first, "approval_required")
    ]

    status, body = office.call("POST", f"/jobs/{first}/approve", {"why": "looks right"})
    assert (status, body["reason"]) == (200, "approved")
    status, _ = office.call("POST", f"/jobs/{first}/reject", {"why": "too late"})
    assert status == 409
    assert office.get("/reviews")["reviews"] == []


def test_an_approval_may_bring_proof(office):
    """The proof is part of the audit's why."""
    job_id = held(office.world)

    office.call("POST", f"/jobs/{job_id}/approve", {"why": "looks right", "proof": "provider log is empty"})

    assert office.get("/audit")["entries"][0]["why"] == "looks right; proof: provider log is empty"


def test_a_job_is_rejected_and_another_cancelled(office):
    """An operator's cancel says that it was one."""
    rejected = held(office.world)
    cancelled = office.world.submit(key="k-2").job.job_id

    assert office.call("POST", f"/jobs/{rejected}/reject", {"why": "not allowed"})[1]["status"] == "cancelled"
    body = office.call("POST", f"/jobs/{cancelled}/cancel", {"why": "asked by the customer"})[1]
    assert body["reason"] == "cancelled_by_operator"


@pytest.mark.parametrize("action", ["replay", "close", "cancel", "approve", "reject"])
def test_an_action_without_a_why_is_refused(office, action):
    """Every change says why."""
    job_id = dead(office.world)

    assert office.call("POST", f"/jobs/{job_id}/{action}", {})[0] == 400
    assert office.call("POST", "/jobs/job_unknown/close", {"why": "nobody needs it"})[0] == 404
    assert office.audit() == []


def test_jobs_are_searched_by_owner_and_by_the_clients_own_key(office):
    """The client at the phone knows its key, not our id."""
    job_id = office.world.submit(key="order-7").job.job_id
    other = office.world.submit(key="order-8").job.job_id

    assert {one["job_id"] for one in office.get("/jobs", owner_key="acme")["jobs"]} == {job_id, other}
    found = office.get("/jobs", owner_key="acme", workflow="sync", key="order-7")["jobs"]
    assert [one["job_id"] for one in found] == [job_id]
    assert office.get("/jobs", owner_key="acme", workflow="sync", key="order-9")["jobs"] == []
    assert office.call("GET", "/jobs")[0] == 400
    status, said = office.call("GET", "/jobs", owner_key="acme", key="order-7")
    assert (status, said["field"]) == (400, "workflow")  # an empty list would say that it never arrived


def test_lists_go_on_where_a_page_ended(office):
    """One at a time, and no page twice."""
    names = [dead(office.world, key=f"k{number}") for number in range(3)]

    first = office.get("/dead-letters", limit=2)
    second = office.get("/dead-letters", limit=2, cursor=first["next_cursor"])

    seen = [one["job_id"] for one in first["dead_letters"] + second["dead_letters"]]
    assert seen == list(reversed(names))
    assert office.call("GET", "/dead-letters", limit=0)[0] == 400
    assert office.call("GET", "/dead-letters", cursor="x")[0] == 400
    assert office.call("GET", "/dead-letters", reason="nonsense")[0] == 400
    for since in ("²", "9" * 5_000, "-1", "soon"):
        assert office.call("GET", "/dead-letters", since=since)[0] == 400
    assert office.get("/dead-letters", workflow="fallback", since=1, until=2)["dead_letters"] == []


def test_a_diagnosis_is_for_operators_and_owners(office):
    """Each sees what each can do; another owner's job is not there."""
    job_id = dead(office.world)

    found = office.get(f"/jobs/{job_id}/diagnosis")
    assert (found["layer"], found["condition"]) == ("provider", "needs_a_person")
    assert {one["by"] for one in found["can_do"]} == {"operator"}
    mine = api(office.world.deps, event("GET", f"/v1/jobs/{job_id}/diagnosis", None, "read", {}))
    assert mine["statusCode"] == 404
    own = event("GET", f"/v1/jobs/{job_id}/diagnosis", None, "read", {})
    own["requestContext"]["authorizer"]["lambda"]["owner_key"] = "acme"
    assert json.loads(api(office.world.deps, own)["body"])["layer"] == "provider"


def test_a_job_that_never_arrived_is_a_verdict(office):
    """At three in the morning "not found" is the answer, not an error."""
    found = office.get("/jobs/job_unknown/diagnosis")

    assert (found["layer"], found["condition"]) == ("client", "stuck")


def test_executions_are_readable_without_content(office):
    """Ids, outcomes, cost; no prompt, no answer."""
    job_id = dead(office.world)

    found = office.get(f"/jobs/{job_id}/executions")["executions"]

    assert [one["outcome"] for one in found] == ["refused"] * 3
    assert "hello" not in json.dumps(found)


def test_many_are_previewed_replayed_paused_and_aborted(office):
    """A batch from the first look to its end."""
    for number in range(3):
        dead(office.world, key=f"k{number}")

    seen = office.call("POST", "/preview", {"filter": {"workflow": "sync"}})[1]
    assert (seen["jobs"], seen["would_replay"]) == (3, 3)
    status, made = office.call("POST", "/batches", plain(batch_terms()))
    assert (status, made["total"], made["status"]) == (202, 3, "running")
    assert office.call("POST", "/batches/batch-1/pause", {"why": "looking first"})[1]["status"] == "paused"
    assert office.call("POST", "/batches/batch-1/pause", {"why": "looking first"})[0] == 409
    assert office.call("POST", "/batches/batch-1/resume", {"why": "go on then"})[1]["status"] == "running"
    assert office.call("POST", "/batches/batch-1/abort", {"why": "wrong ones"})[1]["status"] == "aborted"
    assert [one["batch_id"] for one in office.get("/batches")["batches"]] == ["batch-1"]
    assert office.get("/batches/batch-1")["counts"]["failed"] == 0
    assert office.call("GET", "/batches/unknown")[0] == 404
    for name in ("INC/42", "INC 42", "ü"):  # no path could name it, so nobody could pause it
        body = plain(batch_terms())
        status, said = office.call("POST", "/batches", {**body, "terms": {**body["terms"], "request_id": name}})
        assert (status, said["field"]) == (400, "terms.request_id")


def test_a_key_is_shown_once_listed_and_revoked(office):
    """Its secret is in no list, no audit, no log line."""
    status, made = office.call("POST", "/keys", {"owner_key": "acme", "scopes": ["read"], "why": "new dashboard"})
    assert status == 201
    secret, key_id = made["api_key"], made["key_id"]

    listed = office.get("/keys", owner_key="acme")["keys"]
    assert [one["key_id"] for one in listed] == [key_id]
    gone = office.call("POST", f"/keys/{key_id}/revoke", {"owner_key": "acme", "why": "leaked in a screenshot"})
    assert gone[1]["revoked_at"]
    again = office.call("POST", f"/keys/{key_id}/revoke", {"owner_key": "acme", "why": "once more"})
    assert again[0] == 409
    assert office.call("POST", "/keys/key_x/revoke", {"owner_key": "acme", "why": "unknown one"})[0] == 404
    told = json.dumps([listed, office.get("/audit"), office.lines.written])
    assert secret not in told
    assert office.call("POST", "/keys", {"owner_key": "acme", "scopes": ["root"], "why": "all of it"})[0] == 400


def test_owner_settings_are_read_and_replaced(office):
    """Limits and budgets, with the audit of what was there before."""
    office.call("POST", "/owners/acme", {"settings": {"budget_micros": 5}, "why": "agreed today"})
    office.call("POST", "/owners/acme", {"settings": {"budget_micros": 9}, "why": "raised"})

    assert office.get("/owners/acme")["settings"]["budget_micros"] == 9
    assert office.get("/audit")["entries"][0]["before"]["budget_micros"] == 5
    office.table.put_owner = lambda *_all: False
    assert office.call("POST", "/owners/acme", {"settings": {}, "why": "at the same time"})[0] == 409


@pytest.mark.parametrize(
    ("owner", "settings", "field"),
    [
        ("*", {"per_provider": 5}, "settings.per_provider"),
        ("*", {"budgets": {"hard_micros": 5}}, "settings.budgets"),
        ("acme", {"per_provider": {"openai": 5}}, "settings.per_provider"),
        ("acme", {"per_route": 3}, "settings.per_route"),
        ("acme", {"per_route": {"plain": 0}}, "settings.per_route.plain"),
        ("acme", {"concurrency": True}, "settings.concurrency"),
        ("acme", {"budgets": {"hard_micros": "50000000"}}, "settings.budgets.hard_micros"),
        ("acme", {"budgets": {"hard_micros": 5e7}}, "settings.budgets.hard_micros"),
        ("acme", {"budgets": {"hard_micro": 1}}, "settings.budgets.hard_micro"),
        ("acme", {"budgets": {"workflows": {"sync": {"hard": 1}}}}, "settings.budgets.workflows.sync.hard"),
        ("acme", {"callback_hosts": "hooks.example.com"}, "settings.callback_hosts"),
        ("acme", {"callback_hosts": ["https://hooks.example.com/x"]}, "settings.callback_hosts.0"),
    ],
)
def test_a_slip_in_an_owners_settings_is_refused_by_name(office, owner, settings, field):
    """Read later, it would be no limit and no budget at all; nothing is changed and nothing audited as done."""
    status, said = office.call("POST", f"/owners/{owner}", {"settings": settings, "why": "a slip"})

    assert (status, said["field"]) == (400, field)
    assert office.get(f"/owners/{owner}")["settings"] == {}


@pytest.mark.parametrize("owner", ["a/b", "a#b", "o\u0000x", "*", " "])
def test_an_owner_that_no_path_could_name_gets_no_key(office, owner):
    """Its settings and budget could never be reached."""
    status, said = office.call("POST", "/keys", {"owner_key": owner, "scopes": ["read"], "why": "a new customer"})

    assert (status, said["field"]) == (400, "owner_key")


def test_switches_are_listed_thrown_and_lifted(office):
    """All six with their meaning; what is on says who and why."""
    status, body = office.call("POST", "/switches/pause", {"workflows": ["sync"], "why": "provider is down"})
    assert (status, body["on"]) == (200, True)

    on = [one["name"] for one in office.get("/switches")["switches"] if one["on"]]
    assert on == ["pause"]
    assert office.call("POST", "/switches/pause/lift", {"why": "it is back"})[1]["on"] is False
    assert office.call("POST", "/switches/pause/lift", {"why": "it is back"})[0] == 409
    assert office.call("POST", "/switches/nonsense", {"why": "who knows"})[0] == 404
    assert office.call("POST", "/switches/pause", {"why": "pauses nothing"})[0] == 400


def test_routes_are_listed_closed_and_opened(office):
    """Closed until then because of that, by whom."""
    until = office.world.clock.now() + 3_600_000
    status, body = office.call("POST", "/routes/plain/close", {"until": until, "why": "provider maintenance"})
    assert (status, body["open"], body["closed_until"]) == (200, False, until)

    assert [one["route_key"] for one in office.get("/routes")["routes"] if not one["open"]] == ["plain"]
    assert office.call("POST", "/routes/plain/open", {"why": "maintenance is over"})[1]["open"] is True
    assert office.get("/routes/plain")["open"] is True
    assert office.call("GET", "/routes/nowhere")[0] == 404
    assert office.call("POST", "/routes/plain/close", {"until": 1, "why": "in the past"})[0] == 400


def test_usage_and_notes(office):
    """What an owner spent, and what was done outside this API."""
    office.world.submit()
    office.world.settle()

    assert office.get("/usage", owner_key="acme")["total"]["executions"] == 1
    assert office.call("GET", "/usage")[0] == 400
    assert (
        office.call("POST", "/audit", {"what": "rotate_secret", "target": "secret:webhook", "why": "planned"})[0] == 201
    )
    assert office.get("/audit")["entries"][0]["what"] == "rotate_secret"
    assert office.call("GET", "/audit", month="2026-13")[0] == 400


def test_no_two_rows_of_the_route_table_are_the_same():
    """A row behind its twin would never be reached."""
    keys = [(method, pattern.pattern) for method, pattern, _ in ROUTES]

    assert len(keys) == len(set(keys))
