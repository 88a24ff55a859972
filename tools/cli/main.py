"""Which command was asked for? The `breakwater` command; each group of commands is a module of its own."""

from __future__ import annotations

import typer

from tools.cli import policy, schedules

app = typer.Typer(
    name="breakwater",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Look into Breakwater: its policies, decisions and jobs.",
)
app.add_typer(policy.app, name="policy")
app.add_typer(schedules.app, name="schedules")
app.command("decide")(policy.decide_reply)


if __name__ == "__main__":
    app()
