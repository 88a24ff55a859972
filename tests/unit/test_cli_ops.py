"""The command line against an installation in this process: what people see, what scripts get, how it ends."""

from __future__ import annotations

import itertools
import json

import httpx
import pytest
from typer.testing import CliRunner

from breakwater.entry.api import api
from breakwater.entry.ops import ops
from breakwater.usecases.admit import Principal
from breakwater.usecases.audit import Desk
from tests.fakes.desk import FakeAuditLines, FakeOperatorTable
from tests.support.dead import dead
from tests.support.world import World
from tools.cli.api import Settings, configure
from tools.cli.dead import moment
from tools.cli.main import app
from tools.cli.rotate import operator_key, rotated

GOOD = ["--owner", "alex", "--reason", "provider_recovery", "--text", "status page is green", "--cost-reviewed"]


class Installation:
    """The API of a world, reached over an HTTP transport."""

    def __init__(self):
        self.world = World()
        self.owner, self.scopes = "acme", "submit read operate"
        ids = itertools.count(1)
        nobody = Principal(owner_key="", key_id="", scopes=frozenset())
        self.desk = Desk(
            deps=self.world.deps,
            table=FakeOperatorTable(),
            lines=FakeAuditLines(),
            new_id=lambda: f"a{next(ids)}",
            who=nobody,
        )

    def run(self, *words):
        """One command; the result of the runner."""
        settings = Settings(url="https://bw.test/v1", key="bw_test", transport=httpx.MockTransport(self.answer))
        return CliRunner().invoke(app, list(words), obj=settings, env={"COLUMNS": "300", "NO_COLOR": "1"})

    def json(self, *words):
        """The JSON of a command that must succeed."""
        result = self.run(*words, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    def answer(self, request):
        """What the gateway does."""
        assert request.headers["authorization"] == "Bearer bw_test"
        event = {
            "requestContext": {
                "http": {"method": request.method, "path": request.url.path},
                "authorizer": {"lambda": {"owner_key": self.owner, "key_id": "k1", "scopes": self.scopes}},
                "requestId": "r-1",
            },
            "headers": dict(request.headers),
            "queryStringParameters": dict(request.url.params) or None,
            "body": request.content.decode() or None,
        }
        ours = request.url.path.startswith("/v1/ops")
        answer = ops(lambda: self.desk, event) if ours else api(self.world.deps, event)
        return httpx.Response(answer["statusCode"], headers=answer["headers"], text=answer.get("body", ""))


@pytest.fixture
def here():
    """An installation with an operator's key."""
    return Installation()


def test_a_job_is_submitted_read_and_listed(here):
    """The same key again finds the same job, and says so."""
    first = here.run("submit", "sync", "--text", "hello", "--key", "order-1")
    again = here.run("submit", "sync", "--text", "hello", "--key", "order-1")
    here.world.settle()

    assert first.exit_code == 0, first.output
    assert "was there before" in again.stdout
    (job,) = here.json("jobs")
    assert job["status"] == "succeeded"
    assert job["job_id"] in here.run("jobs").stdout
    assert "succeeded" in here.run("job", job["job_id"]).stdout
    story = here.json("job", job["job_id"], "--executions")
    assert story["executions"][0]["outcome"] == "completed"
    assert "completed" in here.run("job", job["job_id"], "--executions").stdout


def test_a_body_comes_from_a_file_or_from_standard_input(here, tmp_path):
    """And what is no JSON is told before anything is sent."""
    body = tmp_path / "input.json"
    body.write_text('{"messages":[{"role":"user","content":"hello"}]}')

    assert here.run("submit", "sync", "--body", str(body)).exit_code == 0
    body.write_text("{nonsense")
    assert here.run("submit", "sync", "--body", str(body)).exit_code == 2
    assert here.run("submit", "sync").exit_code == 2
    assert here.run("submit", "pictures", "--text", "a boat", "--media").exit_code == 0


def test_watching_ends_with_the_result(here):
    """And with another code when the job ends without success, or takes too long."""
    done = here.world.submit(key="a").job.job_id
    here.world.settle()
    ended = dead(here.world, key="b")
    open_ = here.world.submit(key="c").job.job_id

    found = here.run("watch", done)
    assert (found.exit_code, "answer 1" in found.stdout) == (0, True)
    assert here.json("watch", done)["status"] == "succeeded"
    assert here.run("watch", ended).exit_code == 6
    assert here.run("watch", open_, "--seconds", "0").exit_code == 7


def test_a_job_is_cancelled_by_owner_or_operator(here):
    """The reason says who it was."""
    mine, theirs = (here.world.submit(key=key).job.job_id for key in "ab")

    assert "cancelled_by_user" in here.run("cancel", mine).stdout
    assert "cancelled_by_operator" in here.run("cancel", theirs, "--why", "asked by phone").stdout


def test_a_diagnosis_starts_with_the_layer(here):
    """The first word is what to look at; owners without the scope get their own."""
    job_id = dead(here.world)

    found = here.run("diagnose", job_id)
    assert found.stdout.startswith("provider needs_a_person:")
    assert f"breakwater preview {job_id}" in found.stdout
    here.scopes = "read"
    assert here.json("diagnose", job_id)["layer"] == "provider"
    here.scopes = "operate"
    assert here.run("diagnose", "job_unknown").stdout.startswith("client stuck:")


def test_dead_letters_are_listed_previewed_and_replayed(here):
    """From the list to the job that runs again."""
    job_id = dead(here.world)

    assert job_id in here.run("dead-letters", "--workflow", "sync", "--since", "0").stdout
    assert "cause_fixed" in here.run("preview", job_id).stdout
    assert "1 would be replayed" in here.run("preview", "--workflow", "sync").stdout
    done = here.run("replay", job_id, *GOOD, "--max-attempts", "2", "--request-id", "r-1")
    assert "generation 2" in done.stdout, done.output
    again = here.run("replay", job_id, *GOOD, "--max-attempts", "2", "--request-id", "r-1")
    assert "carried out before" in again.stdout
    assert "none" in here.run("dead-letters").stdout


def test_a_replay_that_is_refused_says_why_and_ends_with_one(here):
    """The item of the checklist is in the message."""
    job_id = dead(here.world)
    job = here.world.job(job_id)
    here.world.store.commit(job, job.with_(partial_output_committed=True))

    done = here.run("replay", job_id, *GOOD, "--give-up-after", "60")

    assert done.exit_code == 1
    assert "idempotency" in done.stderr
    assert "refused" in here.run("preview", job_id).stdout
    assert "second one" in here.run("preview", "--workflow", "sync").stdout


def test_a_replay_says_everything_that_is_missing_at_once(here):
    """Nobody learns the flags one by one at night."""
    found = here.run("replay", "job_a")

    assert found.exit_code == 2
    for flag in ("--owner", "--reason", "--text", "--cost-reviewed", "--max-attempts"):
        assert flag in found.output
    assert here.run("replay", "job_a", *GOOD[:3], "because", *GOOD[4:], "--max-attempts", "1").exit_code == 2
    assert here.run("replay", *GOOD, "--max-attempts", "1", "--workflow", "sync").exit_code == 2


def test_a_batch_is_started_watched_paused_resumed_and_aborted(here):
    """Each step shows where it stands."""
    for key in "ab":
        dead(here.world, key=key)
    flags = ["--workflow", "sync", "--max-attempts", "1", "--error-threshold", "2", "--request-id", "b-1"]

    made = here.run("replay", *GOOD, *flags)
    assert "of 2 opened" in made.stdout, made.output
    assert "paused" in here.run("batches", "pause", "b-1", "--why", "looking first").stdout
    assert "running" in here.run("batches", "resume", "b-1", "--why", "go on then").stdout
    assert "b-1" in here.run("batches", "list").stdout
    here.world.settle()
    done = here.run("batches", "show", "b-1", "--watch")
    assert "succeeded 2" in done.stdout
    assert here.run("batches", "abort", "b-1", "--why", "too late now").exit_code == 1


def test_held_work_is_listed_approved_and_rejected(here):
    """With the missing decision in the list."""
    first, second = (here.world.submit("guarded", key).job.job_id for key in "ab")
    here.world.pump()

    assert "approval_required" in here.run("review", "list").stdout
    assert "approved" in here.run("review", "approve", first, "--why", "looks right").stdout
    assert "rejected_by_owner" in here.run("review", "reject", second, "--why", "not allowed").stdout


def test_a_dead_letter_is_closed(here):
    """And leaves the list."""
    job_id = dead(here.world)

    assert "dead_letter" in here.run("close", job_id, "--why", "nobody needs it").stdout
    assert here.json("dead-letters") == []


def test_switches_and_routes(here):
    """Thrown, listed, lifted; closed, shown, opened."""
    assert here.run("switch", "on", "pause", "--workflow", "sync", "--why", "provider is down").exit_code == 0
    assert "provider is down" in here.run("switch", "list").stdout
    assert here.run("switch", "off", "pause", "--why", "it is back").exit_code == 0
    assert here.run("routes", "close", "plain", "--why", "maintenance", "--minutes", "999999").exit_code == 0
    assert "maintenance" in here.run("routes", "list").stdout
    assert "plain" in here.run("routes", "show", "plain").stdout
    assert here.run("routes", "open", "plain", "--why", "over now").exit_code == 0
    assert here.run("routes", "show", "nowhere").exit_code == 3


def test_a_key_is_shown_once(here):
    """The list and the audit never hold it."""
    made = here.run("keys", "create", "acme", "--scope", "read", "--days", "30", "--why", "new dashboard")
    secret = next(word for word in made.stdout.split() if word.startswith("bw_"))
    key_id = here.json("keys", "list", "--owner", "acme")[0]["key_id"]

    assert here.run("keys", "revoke", "acme", key_id, "--why", "leaked").exit_code == 0
    told = here.run("keys", "list").stdout + here.run("audit").stdout
    assert secret not in told
    assert "create_key" in told


def test_owners_and_usage(here):
    """Settings as one JSON object; what a month cost."""
    assert here.run("owners", "set", "acme", '{"budget_micros": 5000000}', "--why", "agreed").exit_code == 0
    assert "$5" in here.run("owners", "show", "acme").stdout
    assert here.run("owners", "set", "acme", "{", "--why", "agreed").exit_code == 2
    here.world.submit()
    here.world.settle()
    assert "sync" in here.run("usage").stdout
    assert here.json("usage", "--owner", "acme")["total"]["executions"] == 1


@pytest.mark.parametrize(("scopes", "code"), [("read", 5), ("operate", 0)])
def test_a_key_without_the_right_ends_with_five(here, scopes, code):
    """A script can tell it from a refusal."""
    here.scopes = scopes

    assert here.run("dead-letters").exit_code == code


def test_an_installation_that_does_not_answer_ends_with_four():
    """And says what to check."""

    def refuse(_request):
        raise httpx.ConnectError("no")

    settings = Settings(url="https://bw.test", key="bw_test", transport=httpx.MockTransport(refuse))
    found = CliRunner().invoke(app, ["jobs"], obj=settings)

    assert found.exit_code == 4
    assert "BREAKWATER_URL" in found.stderr


def test_without_an_installation_or_a_key_it_says_what_to_set(tmp_path, monkeypatch):
    """No stack trace, no guess."""
    monkeypatch.setattr("tools.cli.api.CLOUDS", tmp_path)

    nothing = CliRunner().invoke(app, ["jobs"], obj=Settings())
    keyless = CliRunner().invoke(app, ["jobs"], obj=Settings(url="https://bw.test"))

    assert (nothing.exit_code, keyless.exit_code) == (2, 5)
    assert "make run" in nothing.stderr
    assert "BREAKWATER_API_KEY" in keyless.stderr


def test_a_failing_installation_is_told_apart():
    """The gateway's own plain answers are understood too."""
    settings = Settings(
        url="https://bw.test", key="bw", transport=httpx.MockTransport(lambda _: httpx.Response(503, text="busy"))
    )

    assert CliRunner().invoke(app, ["jobs"], obj=settings).exit_code == 4


def test_times_are_numbers_or_lengths():
    """`2h` means two hours ago."""
    assert moment("17") == 17
    assert moment(None) is None
    assert abs((moment("0s") or 0) - (moment("2h") or 0) - 7_200_000) < 5_000
    with pytest.raises(Exception, match="neither"):
        moment("soon")


def test_a_rotated_secret_keeps_the_one_before():
    """Webhooks signed with either count; notifications are signed with both."""
    assert rotated("webhook", "openai", "new", {"openai": ["old", "older"]}) == {"openai": ["new", "old"]}
    assert rotated("webhook", "openai", "new", {"openai": ["new", "old"]}) == {"openai": ["new", "old"]}  # asked twice
    assert rotated("notify", "default", "new", {"default": "old"}) == {"default": ["new", "old"]}
    assert rotated("provider", "openai", "new", {"openai": "old", "other": "x"}) == {"openai": "new", "other": "x"}


def test_the_flags_are_the_settings():
    """The callback keeps what a test put in place."""
    assert configure is not None
    help_text = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).stdout
    for word in ("submit", "diagnose", "dead-letters", "replay", "review", "switch", "routes", "keys", "audit"):
        assert word in help_text


def test_the_first_key_is_made_once():
    """Whoever has the AWS rights opens the door once; after that, operators do."""
    table = FakeOperatorTable()

    key, secret = operator_key(table, "ops", 7)

    assert key is not None
    assert (key.owner_key, "operate" in key.scopes, secret.startswith("bw_")) == ("ops", True, True)
    assert operator_key(table, "ops", 8) == (None, "")
    assert CliRunner().invoke(app, ["keys", "first", "ops"], obj=Settings()).exit_code == 2
