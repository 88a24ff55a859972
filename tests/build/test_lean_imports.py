"""Does a function that answers people still start with only what it uses? Each import costs everybody's first request.

What a function may load of the heavy packages is listed; another one needs a reason, and a figure from `make bench`.
Packages that no function loads at its start (the SDKs of providers) come with its first call; the model of a request
comes with the first body that is not in plain order.
"""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from tests.support.template import ROOT, functions, target

HEAVY = frozenset(
    """openai httpx httpx2 anthropic google anyio jiter boto3 s3transfer aws_lambda_powertools pydantic standardwebhooks
    yaml cronsim cryptography asyncio unittest sqlite3""".split()  # noqa: SIM905 - a list of words
)
MODELS = frozenset({"pydantic"})  # schedules and what operators send are its models
PLANS = MODELS | {"cronsim"}
NONE = frozenset[str]()
ALLOWED = {
    "WebhookFunction": frozenset({"standardwebhooks"}),
    "OperatorFunction": MODELS,
    "SweepFunction": MODELS,
    "SchedulerFunction": PLANS,
    "CronFunction": PLANS,
}
# Modules of ours that stand for a part of the system which the function has nothing to do with.
FOREIGN = {
    "AuthorizerFunction": ("breakwater.usecases", "breakwater.providers", "breakwater.channels"),
    "StreamFunction": ("breakwater.usecases.admit", "breakwater.providers", "breakwater.channels"),
    "WebhookFunction": (
        "breakwater.usecases.admit",
        "breakwater.usecases.deps",
        "breakwater.providers",
        "breakwater.channels",
    ),
    "AdmissionFunction": ("breakwater.providers", "breakwater.channels", "breakwater.usecases.step"),
}
SHOW = "import sys; sys.path[:0] = sys.argv[1:]; import app; print(sorted(sys.modules))"


def loaded(builds, function: str) -> set[str]:
    """Every module that is there once the handler is imported."""
    properties = functions()[function]
    paths = [ROOT / properties["CodeUri"], *(builds.local / target(one) / "python" for one in properties["Layers"])]
    command = [sys.executable, "-I", "-S", "-B", "-c", SHOW, *map(str, paths)]
    return set(ast.literal_eval(subprocess.run(command, env={}, capture_output=True, text=True, check=True).stdout))


@pytest.mark.parametrize("function", sorted(functions()))
def test_a_function_starts_with_the_heavy_packages_it_uses_and_no_other(builds, function):
    """Whoever adds one sees it here first."""
    modules = loaded(builds, function)

    assert modules & HEAVY == ALLOWED.get(function, NONE)
    assert not [one for one in modules if one.startswith(FOREIGN.get(function, ("none of ours",)))]
