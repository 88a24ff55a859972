"""Does the template give each function the settings that its wiring asks for?"""

from __future__ import annotations

import os

import pytest

from breakwater import wiring
from tests.support import template

BUILT_BY = {
    "AdmissionFunction": "for_admission",
    "RunFunction": "for_worker",
    "WorkerInteractiveFunction": "for_worker",
    "WorkerBackgroundFunction": "for_worker",
    "CompletionFunction": "for_worker",
    "EffectsFunction": "for_effects",
    "SweepFunction": "for_sweep",
    "WebhookFunction": "for_intake",
    "StreamFunction": "for_stream",
    "SchedulerFunction": "for_schedules",
    "CronFunction": "for_schedules",
    "AuthorizerFunction": "keys",
    "OperatorFunction": "for_operator",
}


def _forget():
    for one in vars(wiring).values():
        if hasattr(one, "cache_clear"):
            one.cache_clear()


@pytest.mark.parametrize("function", sorted(BUILT_BY))
def test_a_function_can_be_wired_with_what_the_template_gives_it(function, monkeypatch, tmp_path):
    """A setting that is missing would only show when the function is called."""
    _forget()
    (tmp_path / "policies.json").write_text(
        '{"default_route":null,"routes":{},"policies":{},"schedules":[],"endpoints":[]}'
    )
    monkeypatch.setattr(wiring, "POLICIES", tmp_path / "policies.json")
    for name in list(os.environ):
        if name.endswith(("_TABLE", "_URL", "_BUCKET", "_SECRET", "_NAME")):
            monkeypatch.delenv(name)
    for name in template.functions()[function]["Environment"]:
        monkeypatch.setenv(name, "{}" if name == "PROVIDER_BASE_URLS" else f"https://sqs.us-east-1.test/1/{name}")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")

    assert getattr(wiring, BUILT_BY[function])() is not None

    _forget()


@pytest.mark.parametrize("function", ["AdmissionFunction", "RunFunction", "EffectsFunction"])
def test_a_callback_is_judged_alike_wherever_it_is_named_or_called(function):
    """What is valid at `/v1/jobs` is valid at `/v1/run`, and is called in the end."""
    assert template.functions()[function]["Environment"]["CALLBACK_LOOPBACK_HOSTS"] == {"Ref": "CallbackLoopbackHosts"}


@pytest.mark.parametrize(
    ("config", "function"),
    [(wiring.AT_THE_GATE, "AuthorizerFunction"), (wiring.QUICK, "WebhookFunction"), (wiring.QUICK, "CronFunction")],
)
def test_a_service_that_hangs_does_not_use_up_the_function(config, function):
    """A hanging nudge or secret must not kill what stored its answer already; and the SDK's repeat comes in time."""
    most = config.retries["total_max_attempts"] * (config.connect_timeout + config.read_timeout)

    assert config.retries["total_max_attempts"] > 1
    assert most < template.functions()[function]["Timeout"]
