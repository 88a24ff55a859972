"""A folder of YAML files becomes one catalogue, or one list of problems."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path

import pytest
import yaml

from breakwater.domain.errors import InvalidPolicy
from breakwater.domain.routes import Catalogue
from breakwater.domain.states import Lane
from breakwater.policy_yaml import load, load_all, main

SHIPPED = Path(__file__).parents[2] / "shared" / "policies"
TEMPLATE = Path(__file__).parents[1] / "fixtures" / "policies-template.yaml"
ROUTES = """
default_route: first
routes:
  first:
    provider: openai
    endpoint: responses
    model: m
    credential: key
    capabilities: {max_output_tokens: 4000}
    quality_tier: standard
    prices: {input: 1, output: 1}
    catalogue: {as_of: 2026-11-30, source: test}
"""
CHAT = """
workflow: chat
ai_api_queueing_strategy:
  lanes:
    background_retry: {max_attempts: 3}
"""


@pytest.fixture
def folder(tmp_path):
    """A folder that loads."""
    (tmp_path / "routes.yaml").write_text(ROUTES)
    (tmp_path / "chat.yaml").write_text(CHAT)
    return tmp_path


def problems(folder) -> list[str]:
    """What the loader says, one problem a line."""
    with pytest.raises(InvalidPolicy) as caught:
        load(folder)
    return str(caught.value).splitlines()


def test_a_folder_becomes_a_catalogue(folder):
    """Routes by key, policies by workflow."""
    catalogue = load(folder)

    assert catalogue.workflows() == ("chat",)
    assert catalogue.policy("chat").lane(Lane.BACKGROUND_RETRY).max_attempts == 3
    assert catalogue.route(catalogue.policy("chat").route).route_key == "first"
    assert (catalogue.schedules, catalogue.endpoints) == ([], [])


def test_the_template_loads_as_written(folder):
    """The customer's file beside any routes is a whole bundle."""
    shutil.copy(TEMPLATE, folder / "support_chat.yaml")

    assert load(folder).policy("support_chat").fail_closed_when == (
        "retry_after_exceeds_deadline",
        "partial_output_committed",
        "quota_or_spend_exhausted",
        "fallback_contract_mismatch",
    )


def test_a_wrong_number_is_named_with_file_path_reason_and_value(folder):
    """The line an author needs."""
    (folder / "chat.yaml").write_text(CHAT.replace("max_attempts: 3", "max_attempts: 0"))

    assert problems(folder) == [
        "chat.yaml: ai_api_queueing_strategy.lanes.background_retry.max_attempts: must be >= 1, got 0",
    ]


def test_the_error_carries_its_parts(folder):
    """For tools that want more than text."""
    (folder / "chat.yaml").write_text(CHAT + "mode: x\npriority: y\n")

    with pytest.raises(InvalidPolicy) as caught:
        load(folder)

    assert caught.value.field == "mode"
    assert caught.value.ids["file"] == "chat.yaml"
    assert len(caught.value.ids["problems"]) == 2


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("chat.yaml", CHAT + "mode: sync\nmode: sync\n", "chat.yaml: line 7, column 1: key 'mode' stands twice"),
        (
            "chat.yaml",
            "workflow: [",
            "chat.yaml: line 1, column 12: expected the node content, but found '<stream end>'",
        ),
        ("chat.yaml", "- a\n", "chat.yaml: file: must be a mapping of keys"),
        ("chat.yaml", "", "chat.yaml: file: must be a mapping of keys"),
        ("other.yaml", CHAT, "other.yaml: workflow: chat is in chat.yaml already"),
        ("other.yml", "workflow: other\n", "other.yml: ai_api_queueing_strategy: is missing; add it"),
        ("chat.yaml", CHAT + "route: frist\n", "chat.yaml: route: there is no route 'frist'; did you mean 'first'?"),
        (
            "routes.yaml",
            ROUTES + "extra: 1\n",
            "routes.yaml: extra: is not a known key; known are default_route and routes",
        ),
        ("routes.yaml", "routes: {}\n", "routes.yaml: routes: must map at least one route key to its route"),
        ("routes.yaml", "routes: [1]\n", "routes.yaml: routes: must map at least one route key to its route"),
        ("routes.yaml", "routes: {first: 3}\n", "routes.yaml: routes.first: must be a mapping"),
        (
            "routes.yaml",
            ROUTES.replace("first", "gone", 1),
            ("routes.yaml: default_route: there is no route 'gone'; add it to the routes"),
        ),
        (
            "routes.yaml",
            ROUTES.replace("responses", "telepathy"),
            (
                "routes.yaml: routes.first.endpoint: must be one of 'responses', 'images', 'chat', 'messages' or "
                "'generate_content', got 'telepathy'"
            ),
        ),
        (
            "routes.yaml",
            ROUTES.replace("  first:", "  First Route:"),
            ("routes.yaml: routes.First Route.route_key: must match ^[a-z0-9][a-z0-9._-]{0,98}$, got 'First Route'"),
        ),
        ("schedules.yaml", "schedules: 3\n", "schedules.yaml: schedules: must be a list"),
        ("schedules.yaml", "schedules: [{name: x}]\n", "schedules.yaml: schedules[0].workflow: is missing; add it"),
        ("endpoints.yaml", "endpoints: 3\n", "endpoints.yaml: endpoints: must be a list"),
        ("endpoints.yaml", "endpoints: [{name: x}]\n", "endpoints.yaml: endpoints[0].provider: is missing; add it"),
    ],
)
def test_what_is_wrong_is_named(folder, name, text, line):
    """File, path, reason; whatever the file."""
    (folder / name).write_text(text)

    assert line in problems(folder)


def test_text_that_is_no_utf8_is_named(folder):
    """Not a traceback."""
    (folder / "chat.yaml").write_bytes(b"workflow: \xff\xfe")

    assert problems(folder) == ["chat.yaml: file: is not readable YAML in UTF-8"]


def test_a_key_that_is_no_text_is_no_riddle(folder):
    """YAML allows lists as keys; a policy has none."""
    (folder / "chat.yaml").write_text(CHAT + "? [a, b]\n: 1\n")

    assert len(problems(folder)) == 1


def test_a_folder_without_routes_is_no_bundle(tmp_path):
    """The first thing to say."""
    assert "routes.yaml: is missing" in problems(tmp_path)[0]


def test_yaml_cannot_run_code(folder):
    """Only plain data is read."""
    (folder / "chat.yaml").write_text("workflow: !!python/object/apply:os.system ['true']\n")

    assert "could not determine a constructor" in problems(folder)[0]


def test_doubts_are_warnings(folder):
    """A stale entry does not stop a deployment."""
    loaded = load_all(folder, dt.date(2027, 6, 1))

    assert loaded.catalogue.workflows() == ("chat",)
    assert [line for line in loaded.warnings if "looked up 183 days ago" in line]


def test_the_shipped_policies_are_sound():
    """Six workflows, eight routes; only the gateway's old snapshot is doubtful."""
    loaded = load_all(SHIPPED, dt.date(2026, 11, 30))

    assert loaded.catalogue.workflows() == (
        "chat_stream",
        "evaluation",
        "media_generation",
        "regulated_review",
        "support_chat",
        "support_summary",
    )
    assert all("flatkey-sol" in line for line in loaded.warnings)
    assert any("150 days ago" in line for line in loaded.warnings)


def test_the_shipped_chat_policy_keeps_the_templates_values():
    """The example is the customer's own, with our keys beside it."""
    ours, theirs = (yaml.safe_load(path.read_text()) for path in (SHIPPED / "support_chat.yaml", TEMPLATE))

    assert ours["ai_api_queueing_strategy"] == theirs["ai_api_queueing_strategy"]


def test_compiling_writes_what_loading_reads(folder, tmp_path):
    """The bundle's JSON is the folder's content."""
    out = tmp_path / "policies.json"

    assert main(["compile", str(folder), str(out)]) == 0
    assert Catalogue.load(out.read_bytes()).policy("chat") == load(folder).policy("chat")


def test_compiling_nonsense_fails_with_every_problem(folder, tmp_path, capsys):
    """Exit 1, nothing written."""
    (folder / "chat.yaml").write_text(CHAT + "mode: x\npriority: y\n")
    out = tmp_path / "policies.json"

    assert main(["compile", str(folder), str(out)]) == 1
    assert not out.exists()
    assert len(capsys.readouterr().err.splitlines()) == 2
