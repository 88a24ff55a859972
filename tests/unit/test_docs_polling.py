"""The examples that clients copy: each is taken from the page and run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from tools.docs import cli

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "poll-for-results.md"
OPEN = {"final": False, "next_poll_after_ms": 4_000}
SCRIPT = [
    (200, OPEN, {"ETag": 'W/"1"'}),
    (304, None, {"ETag": 'W/"1"', "Retry-After": "5"}),
    (503, None, {"Retry-After": "7"}),
    (200, {"final": True, "status": "succeeded"}, {"ETag": 'W/"2"'}),
]


def example(language):
    """The page's code in a language."""
    return re.search(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]


def test_the_python_example_stops_on_final_and_keeps_to_the_pace():
    """It waits what it is told, sends the tag back, and survives a 503."""
    scope, seen, waits = {}, [], []
    exec(example("python"), scope)  # noqa: S102 - the example is ours
    answers = iter(SCRIPT)

    def answer(request):
        seen.append(request.headers.get("if-none-match"))
        status, body, headers = next(answers)
        return httpx.Response(status, headers=headers, json=body) if body else httpx.Response(status, headers=headers)

    with httpx.Client(base_url="https://bw.test", transport=httpx.MockTransport(answer)) as http:
        job = scope["wait_for"](http, "job_a", sleep=waits.append)

    assert job["status"] == "succeeded"
    assert waits == [4.0, 5.0, 7.0]
    assert seen == [None, 'W/"1"', 'W/"1"', 'W/"1"']


def test_the_python_example_gives_up_politely_and_tells_a_wrong_id():
    """After its own time it gives back what it knows; a 404 is no reason to wait."""
    scope: dict = {}
    exec(example("python"), scope)  # noqa: S102 - the example is ours

    def running(_request):
        return httpx.Response(200, json=OPEN)

    with httpx.Client(base_url="https://bw.test", transport=httpx.MockTransport(running)) as http:
        assert scope["wait_for"](http, "job_a", sleep=lambda _: None, longest_s=10)["final"] is False
    with (
        httpx.Client(base_url="https://bw.test", transport=httpx.MockTransport(lambda _: httpx.Response(404))) as http,
        pytest.raises(RuntimeError, match="404"),
    ):
        scope["wait_for"](http, "job_a")


@pytest.mark.skipif(shutil.which("node") is None, reason="no node on this machine")
@pytest.mark.parametrize(("hidden", "waits"), [(False, [4_000, 5_000, 7_000]), (True, [60_000] * 3)])
def test_the_browser_example_slows_down_when_nobody_looks(tmp_path, hidden, waits):
    """The same story; a hidden page asks once a minute."""
    script = [{"status": status, "body": body, "headers": headers} for status, body, headers in SCRIPT]
    (tmp_path / "poll.mjs").write_text(
        example("js")
        + f"""
const answers = {json.dumps(script)};
const waits = [];
const fetch = async () => {{
  const one = answers.shift();
  return {{ status: one.status, headers: {{ get: (name) => one.headers[name] ?? null }}, json: async () => one.body }};
}};
const sleep = async (ms) => {{ waits.push(ms); }};
const job = await waitFor("job_a", {{ fetch, sleep, hidden: () => {json.dumps(hidden)} }});
console.log(JSON.stringify({{ status: job.status, waits }}));
"""
    )

    done = subprocess.run(["node", str(tmp_path / "poll.mjs")], capture_output=True, text=True, timeout=30, check=True)

    assert json.loads(done.stdout) == {"status": "succeeded", "waits": waits}


def test_the_reference_of_the_command_line_is_what_the_commands_say():
    """Generated, and never stale."""
    assert cli.PAGE.read_text() == cli.page()
