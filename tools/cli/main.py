"""Which command was asked for? The `breakwater` command; each group of commands is a module of its own."""

from __future__ import annotations

import typer

from tools.cli import batches, dead, desk, jobs, policy, rotate, schedules
from tools.cli.api import configure

app = typer.Typer(
    name="breakwater",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Run, watch and repair AI-provider work: jobs, dead letters, routes, policies.",
)
app.callback()(configure)
app.add_typer(policy.app, name="policy")
app.add_typer(schedules.app, name="schedules")
app.command("decide")(policy.decide_reply)
for name, command in (
    ("submit", jobs.submit),
    ("watch", jobs.watch),
    ("cancel", jobs.cancel),
    ("jobs", jobs.jobs),
    ("job", jobs.job),
    ("diagnose", jobs.diagnose),
    ("dead-letters", dead.dead_letters),
    ("preview", dead.preview),
    ("replay", dead.replay),
    ("close", dead.close),
    ("usage", desk.usage),
    ("audit", desk.audit),
):
    app.command(name)(command)
for name, group in (
    ("batches", batches.app),
    ("review", dead.review),
    ("switch", desk.switch),
    ("routes", desk.routes),
    ("keys", desk.keys),
    ("owners", desk.owners),
    ("secrets", rotate.secrets),
):
    app.add_typer(group, name=name)


if __name__ == "__main__":
    app()
