"""The command line over policies, as a user sees it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tools.cli.main import app
from tools.docs import decisions

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "shared" / "policies"
REPLIES = ROOT / "tests" / "replies"


def run(*arguments: object, code: int = 0) -> str:
    """What the command prints, on either stream."""
    result = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}).invoke(
        app, [str(one) for one in arguments]
    )
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def folder(tmp_path):
    """A copy of the shipped policies to spoil."""
    return Path(shutil.copytree(SHIPPED, tmp_path / "policies"))


def test_check_finds_the_shipped_policies_sound():
    """The default folder is the one that ships."""
    assert "6 workflows and 8 routes are sound." in run("policy", "check")


def test_check_warns_of_old_evidence():
    """And fails only where it is told to be strict."""
    assert "warning: routes.yaml: routes.flatkey-sol.catalogue.as_of" in run("policy", "check", SHIPPED)
    assert "warning" in run("policy", "check", SHIPPED, "--strict", code=1)


def test_check_names_what_is_wrong(folder):
    """File, key, reason; exit 1."""
    file = folder / "support_chat.yaml"
    file.write_text(file.read_text().replace("max_attempts: 5", "max_attempts: 0"))

    said = run("policy", "check", folder, code=1)

    path = "ai_api_queueing_strategy.lanes.background_retry.max_attempts"
    assert f"support_chat.yaml: {path}: must be >= 1, got 0" in said


def test_explain_prints_a_table_for_people():
    """Every lane, with attempts and age; one line for what is always so."""
    said = run("policy", "explain", "support_chat")

    assert "support_chat, interactive_admission: 2 attempts, at most 15 min old" in said
    assert "any signal" in said
    assert "approved fallback" in said


def test_explain_prints_json_for_machines():
    """Every signal before and after visible output."""
    rows = json.loads(run("policy", "explain", "media_generation", "--json"))

    kinds = {(row["error_class"], "part of the answer was seen" in row["moments"]) for row in rows}
    assert len(kinds) == 18 * 2
    assert {"action", "when", "reason", "why"} <= set(rows[0])


def test_an_unknown_workflow_is_told_with_the_known_ones():
    """Usage error, exit 2."""
    assert "evaluation" in run("policy", "explain", "nobody", code=2)


def test_explain_refuses_broken_files(folder):
    """The problem, not a traceback."""
    (folder / "evaluation.yaml").write_text("workflow: evaluation\n")

    assert "ai_api_queueing_strategy: is missing" in run(
        "policy", "explain", "evaluation", "--policies", folder, code=1
    )


def reply(tmp_path, **fields):
    """A recorded reply in a file."""
    path = tmp_path / "reply.json"
    path.write_text(json.dumps(fields))
    return path


def decide(*arguments: object) -> dict:
    """The decision as JSON."""
    return json.loads(run("decide", *arguments, "--json"))


def test_decide_replays_a_recorded_reply():
    """The signal, and what the policy does with it."""
    said = run("decide", "--reply", REPLIES / "openai" / "boundary.json", "--workflow", "evaluation")

    assert "error_class: data_boundary" in said
    assert "action: fail_closed" in said


def test_decide_reads_a_bare_reply(tmp_path):
    """Status, headers and body are enough; the provider is the route's."""
    file = reply(tmp_path, status=429, headers={"Retry-After": "30"}, body={"error": {"code": "rate_limit_exceeded"}})

    said = decide("--reply", file, "--workflow", "support_summary")

    assert said["signal"]["retry_after_ms"] == 30_000
    assert said["decision"]["wait_ms"] == said["decision"]["closes_route_ms"] == 30_000
    assert said["decision"]["action"] == "queue"


def test_decide_knows_transport_failures(tmp_path):
    """A failure before sending is an ordinary retry, one after it may be a duplicate."""
    sent = decide("--reply", reply(tmp_path, transport="timeout"), "--workflow", "support_summary")
    unsent = decide("--reply", reply(tmp_path, transport="dns"), "--workflow", "support_summary")

    assert sent["decision"]["possible_duplicate"] is True
    assert "possible_duplicate" not in unsent["decision"]


def test_decide_shows_a_fallbacks_clauses(tmp_path):
    """Attempt, lane and route can be set."""
    file = reply(tmp_path, status=503, body={"error": {"message": "m"}})

    said = decide("--reply", file, "--workflow", "support_chat", "--attempt", 2)["decision"]

    assert (said["action"], said["fallback"], said["route_key"]) == ("fallback", "sonnet", "anthropic-sonnet")
    assert said["clauses"]["cost_ceiling"] is True


def test_decide_shows_a_change_of_lane(tmp_path):
    """A stream that broke recovers in its own lane."""
    file = reply(tmp_path, status=503, body={})

    assert decide("--reply", file, "--workflow", "chat_stream")["decision"]["lane"] == "stream_recovery"


def test_decide_stops_after_visible_output(tmp_path):
    """`--partial` says that the answer had begun."""
    file = reply(tmp_path, status=503, body={})

    said = decide("--reply", file, "--workflow", "support_chat", "--partial", "--lane", "background_retry")

    assert said["decision"]["reason"] == "partial_output_committed"


@pytest.mark.parametrize("text", ["no json", "[]", '{"statuss": 1}', '{"transport": "pigeon"}'])
def test_decide_refuses_a_file_that_is_no_reply(tmp_path, text):
    """Usage error, exit 2."""
    path = tmp_path / "reply.json"
    path.write_text(text)

    assert "no recorded reply" in run("decide", "--reply", path, "--workflow", "evaluation", code=2)


def test_decide_refuses_an_unknown_route(tmp_path):
    """With the known ones."""
    said = run("decide", "--reply", reply(tmp_path, status=500), "--workflow", "evaluation", "--route", "x", code=2)

    assert "openai-sol" in said


def test_the_generated_table_is_fresh():
    """Change a policy, run the generator, read the difference."""
    assert decisions.main(["--check"]) == 0


def test_a_stale_table_is_found(tmp_path, monkeypatch, capsys):
    """Written, it is fresh again."""
    monkeypatch.setattr(decisions, "PAGE", decisions.ROOT / "docs" / "reference" / "no-such-page.md")
    assert decisions.main(["--check"]) == 1
    assert "stale" in capsys.readouterr().err

    monkeypatch.setattr(decisions, "PAGE", tmp_path / "page.md")
    assert decisions.main([]) == 0
    assert decisions.main(["--check"]) == 0


def test_the_table_holds_the_places_of_all_reasons():
    """Generated from the table the code uses."""
    text = (ROOT / "docs" / "reference" / "decisions-table.md").read_text()

    assert "| `quota_or_spend_exhausted` | owner_review |" in text
    assert "| `partial_output_committed` | dead_letter |" in text
