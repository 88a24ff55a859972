"""Six switches by name, in the order of severity; over when their time is over; about what they name."""

from __future__ import annotations

from breakwater.domain.states import Priority
from breakwater.domain.switches import MEANING, Switch, SwitchName, concerning, in_force, paused


def test_there_are_six_from_light_to_heavy():
    """As the requirements order them, each with a sentence for people."""
    assert [one.value for one in SwitchName] == [
        "queue_instead_of_fail",
        "pause",
        "serve_last_result",
        "alternative_route",
        "circuit_override",
        "manual_retry",
    ]
    assert set(MEANING) == set(SwitchName)


def test_a_switch_survives_its_storage():
    """As plain data and back."""
    switch = Switch(
        name=SwitchName.PAUSE, who="ann", why="outage", since=5, until=9, workflows=("a",), priorities=("low",)
    )

    stored = {"pause": switch.stored(), "rev": 3, "pk": "SWITCH"}

    assert in_force(stored, 8) == {SwitchName.PAUSE: switch}
    assert in_force(stored, 9) == {}


def test_a_pause_holds_what_it_names_and_nothing_else():
    """By workflow, by priority, or both; one that names nothing holds nothing."""
    by_priority = {"pause": Switch(name=SwitchName.PAUSE, priorities=("low",)).stored()}
    both = {"pause": Switch(name=SwitchName.PAUSE, priorities=("low",), workflows=("a",)).stored()}

    assert paused(by_priority, 1, "any", Priority.LOW)
    assert not paused(by_priority, 1, "any", Priority.HIGH)
    assert paused(both, 1, "a", Priority.LOW)
    assert not paused(both, 1, "b", Priority.LOW)
    assert not paused({"pause": {}}, 1, "a", Priority.LOW)
    assert not paused({"pause": "nonsense"}, 1, "a", Priority.LOW)


def test_an_answer_shows_only_what_concerns_it():
    """With reason and times, in order of severity, never who."""
    stored = {
        "circuit_override": Switch(
            name=SwitchName.CIRCUIT_OVERRIDE, why="maintenance", routes=("r",), until=50
        ).stored(),
        "queue_instead_of_fail": Switch(name=SwitchName.QUEUE_INSTEAD_OF_FAIL, who="ann", why="slow").stored(),
    }

    shown = [one.shown() for one in concerning(stored, 5, "w", Priority.LOW, "r")]

    assert [one["name"] for one in shown] == ["queue_instead_of_fail", "circuit_override"]
    assert "who" not in shown[0]
    assert (shown[1]["why"], shown[1]["until"]) == ("maintenance", 50)
    assert [one.name.value for one in concerning(stored, 5, "w", None, "other")] == ["queue_instead_of_fail"]
