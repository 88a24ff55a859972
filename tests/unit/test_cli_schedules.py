"""The preview of a schedule: what people see before they switch it on."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from tools.cli.schedules import app

BERLIN = """
schedules:
  - {name: nightly, workflow: w, owner_key: o, cron: 30 2 * * *, timezone: Europe/Berlin, input: {prompt: x}}
  - {name: often, workflow: w, owner_key: o, every: 2h, enabled: false, input: {prompt: x}}
"""


@pytest.fixture
def run(tmp_path):
    """Call the command with a file of its own."""
    file = tmp_path / "schedules.yaml"

    def call(*arguments, text=BERLIN):
        file.write_text(text, encoding="utf-8")
        return CliRunner().invoke(app, [*arguments, "--file", str(file)], env={"COLUMNS": "200", "NO_COLOR": "1"})

    return call


def test_the_next_runs_are_shown_in_both_clocks(run):
    """Over the night of the jump: the local time that does not exist has become the moment of the jump."""
    shown = run("preview", "nightly", "-n", "3", "--after", "2026-03-28T00:00:00Z")

    assert shown.exit_code == 0
    assert "nightly: 30 2 * * * in Europe/Berlin (nonexistent: shift, ambiguous: first)" in shown.output
    assert "2026-03-29T03:00:00+02:00" in shown.output
    assert "2026-03-29T01:00:00Z" in shown.output


def test_a_machine_can_read_it(run):
    """With the key of each window's job."""
    rows = json.loads(run("preview", "often", "-n", "2", "--after", "2026-03-28T00:30Z", "--json").output)

    assert [row["utc"] for row in rows] == ["2026-03-28T02:00:00Z", "2026-03-28T04:00:00Z"]
    assert rows[0]["key"] == "schedule:often:2026-03-28T02:00:00Z"


def test_a_rate_says_that_it_counts_elapsed_time(run):
    """And whether it is switched off; from now on, when no time is given."""
    shown = run("preview", "often")

    assert "every 2h of elapsed time, shown for UTC, switched off" in shown.output
    assert shown.output.count("schedule:often:") == 10


def test_all_schedules_are_listed_with_their_next_run(run):
    """One line each."""
    rows = json.loads(run("list", "--json").output)

    assert [(row["name"], row["enabled"], row["rhythm"]) for row in rows] == [
        ("nightly", "yes", "30 2 * * *"),
        ("often", "no", "every 2h"),
    ]
    assert "No schedules" in run("list", text="").output


@pytest.mark.parametrize(
    ("arguments", "text", "said"),
    [
        (("preview", "weekly"), BERLIN, "there is no schedule weekly"),
        (("preview", "nightly", "--after", "tomorrow"), BERLIN, "--after must be a time"),
        (("list",), "schedules: 7", "schedules: must be a list"),
        (("list",), "schedules: [", "schedules.yaml"),
    ],
)
def test_mistakes_are_told(run, arguments, text, said):
    """In words, with an exit code, without a trace."""
    shown = run(*arguments, text=text)

    assert shown.exit_code != 0
    assert said in " ".join(shown.output.split())
