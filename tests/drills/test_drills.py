"""The drills as commands: what they need, how they end, and that they notice a broken promise."""

from __future__ import annotations

from typing import Any

import pytest

from tools.drills import __main__ as drills
from tools.drills import scenes
from tools.drills.stand import BrokenPromiseError, DrillError, Place, Stand, need, place


def test_an_account_is_named_by_its_url_and_key():
    """A pre-production account needs nothing of the local cloud."""
    where = place({"BREAKWATER_URL": "https://api.test/v1/", "BREAKWATER_API_KEY": "bw_x", "BREAKWATER_STAGE": "pre"})

    assert (where.url, where.key, where.stage, where.cloud, where.simulator) == (
        "https://api.test", "bw_x", "pre", None, None,
    )  # fmt: skip


def test_a_url_without_a_key_says_what_is_missing():
    """And which scopes the key needs."""
    with pytest.raises(DrillError, match="BREAKWATER_API_KEY"):
        place({"BREAKWATER_URL": "https://api.test"})


def test_a_drill_that_breaks_a_provider_needs_one_that_can_be_broken():
    """Nobody breaks the real one."""
    with Stand(Place(url="https://api.test", key="bw_x")) as stand, pytest.raises(DrillError, match="SIMULATOR"):
        _ = stand.simulator


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["worker", "nonsense"]])
def test_an_unknown_drill_is_explained(arguments, capsys):
    """The names are printed, nothing is held."""
    assert drills.main(arguments) == 2
    assert "lease-recovery" in capsys.readouterr().out


def hold(monkeypatch: Any, **scenes_by_name: Any) -> int:
    """Run every drill with these scenes."""
    monkeypatch.setattr(drills, "DRILLS", {name.replace("_", "-"): one for name, one in scenes_by_name.items()})
    monkeypatch.setattr(drills, "place", lambda: Place(url="https://api.test", key="bw_x"))
    return drills.main(["all"])


def test_each_drill_ends_in_one_line_and_all_pass_or_the_command_fails(monkeypatch, capsys):
    """A broken promise fails the run, and the drills after it are held all the same."""

    def broken(_stand):
        need(false := False, "it was paid for twice")
        return str(false)

    assert hold(monkeypatch, one=lambda _stand: "measured 1", two=broken, three=lambda _stand: "measured 3") == 1

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [["PASS", "one"], ["FAIL", "two"], ["PASS", "three"]]
    assert "it was paid for twice" in lines[1]
    assert "measured 3" in lines[2]


def test_a_good_run_is_exit_0_and_what_can_not_be_held_is_2(monkeypatch):
    """Two is no failure of the system: something is missing to hold the drill."""

    def missing(_stand):
        raise DrillError("set something")

    assert hold(monkeypatch, one=lambda _stand: "fine") == 0
    assert hold(monkeypatch, one=missing) == 2


@pytest.mark.parametrize("fault", ["418", "0", ""])
def test_a_fault_nobody_knows_is_no_drill(fault, monkeypatch):
    """The known ones are listed."""
    monkeypatch.setenv("PROVIDER_FAULT", fault)
    with Stand(Place(url="https://api.test", key="bw_x")) as stand, pytest.raises(DrillError, match="429"):
        scenes.worker(stand)


def test_a_promise_that_does_not_hold_is_a_failure_and_not_an_error():
    """The two ends of a drill."""
    need(True, "never said")
    with pytest.raises(BrokenPromiseError, match="said"):
        need(False, "said")


@pytest.mark.timeout(150)
@pytest.mark.parametrize("name", ["idempotency", "webhook-replay"])
def test_a_short_drill_passes_on_the_deployed_stack(deployed_stack, name, monkeypatch):
    """The long ones are commands of their own: `make drills`."""
    known = deployed_stack.remembered()
    where = Place(
        url=deployed_stack.api_url,
        key=known["api_key"],
        simulator=deployed_stack.simulator.url,
        webhook_secret=known["webhook_secret"],
        cloud=deployed_stack,
    )
    monkeypatch.setattr(drills, "place", lambda: where)

    assert drills.main([name]) == 0
