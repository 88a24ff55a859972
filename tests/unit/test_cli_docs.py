"""Every command that the documentation tells people to type exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from tools.cli.main import app

DOCS = Path(__file__).parents[2] / "docs"
COMMAND = re.compile(r"(?:^|`)(breakwater (?!-)[a-z][^`\n|]*)", re.MULTILINE)


def written():
    """(page, command line) of every command in the docs."""
    for page in sorted(DOCS.rglob("*.md")):
        for line in COMMAND.findall(page.read_text()):
            yield page.relative_to(DOCS), line.rstrip()


@pytest.mark.parametrize(("page", "line"), list(written()), ids=lambda one: str(one)[:80])
def test_a_command_in_the_docs_exists_with_its_flags(page, line):
    """Down to the flags, so that nobody copies a line that is refused."""
    command = typer.main.get_command(app)
    words = line.split()[1:]
    while words and hasattr(command, "commands"):
        assert words[0] in command.commands, f"{page}: {line}"
        command = command.commands[words.pop(0)]

    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}
    flags = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert flags <= known, f"{page}: {line}"
