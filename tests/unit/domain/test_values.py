"""A value behaves as the standard library's frozen dataclass does, whichever way it is made."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from functools import partial
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakwater.domain import values


def classes(dataclass: Any, **options: bool) -> tuple[type, ...]:
    """The same classes, made by one of both decorators."""

    @dataclass(frozen=True, **options)
    class Point:
        x: int
        y: int = 0
        tags: list[str] = field(default_factory=list, compare=False)
        secret: str = field(default="", repr=False)
        unit: ClassVar[str] = "m"

        def __post_init__(self) -> None:
            if self.x == 13:
                raise ValueError("unlucky")

        @property
        def sum(self) -> int:
            return self.x + self.y

    @dataclass(frozen=True, **options)
    class Place(Point):
        name: str = "here"

    @dataclass(frozen=True, **options)
    class Empty:
        pass

    return Point, Place, Empty


@dataclasses.dataclass(frozen=True, slots=True)
class Standard:
    """At the top of a module, where pickle finds it."""

    a: int
    b: tuple[int, ...] = ()


@values.dataclass(frozen=True, slots=True)
class Ours:
    """The same."""

    a: int
    b: tuple[int, ...] = ()


OPTIONS = [{}, {"slots": True}, {"kw_only": True}, {"slots": True, "kw_only": True}]
ARGUMENTS = st.tuples(
    st.integers(0, 2),
    st.lists(st.integers(11, 14), max_size=5),
    st.dictionaries(st.sampled_from(["x", "y", "tags", "secret", "name", "other"]), st.integers(11, 14), max_size=4),
)


def tried(work: Callable[[], Any]) -> Any:
    """What comes of it: a value, or the class of the error."""
    try:
        return work()
    except (TypeError, ValueError) as error:
        return type(error)


def shown(made: Any) -> Any:
    """A value as fields, text and hash."""
    return made if isinstance(made, type) else (dataclasses.asdict(made), repr(made), hash(made))


def replaced(value: Any, changes: dict[str, Any]) -> Any:
    """As the standard library changes it."""
    return dataclasses.replace(value, **changes)


def story(dataclass: Any, change: Any, options: dict[str, bool], first: Any, second: Any) -> list[Any]:
    """Everything that can be seen of two values, and of one with fields of the other."""
    kinds = classes(dataclass, **options)
    one, two = (tried(partial(kinds[which], *args, **names)) for which, args, names in (first, second))
    changed = tried(partial(change, one, second[2]))
    return [*map(shown, (one, two, changed)), one == two, one == changed, one == one]  # noqa: PLR0124 - equality itself


@pytest.mark.parametrize("options", OPTIONS)
@given(ARGUMENTS, ARGUMENTS)
def test_made_compared_shown_and_replaced_alike(options, first, second):
    """For any arguments, right or wrong, and any two values."""
    theirs = story(dataclasses.dataclass, replaced, options, first, second)

    assert story(values.dataclass, replaced, options, first, second) == theirs
    assert story(values.dataclass, values.changed, options, first, second) == theirs


@pytest.mark.parametrize("options", OPTIONS)
def test_a_value_cannot_be_changed(options):
    """Neither a field, nor a new name, nor by taking a field away."""
    point, *_ = classes(values.dataclass, **options)
    one = point(x=1)

    for change in (lambda: setattr(one, "x", 2), lambda: setattr(one, "z", 2), lambda: delattr(one, "x")):
        with pytest.raises(FrozenInstanceError):
            change()
    assert one == point(x=1)
    assert one != (1, 0)


@pytest.mark.parametrize("options", OPTIONS)
def test_fields_slots_and_match_are_the_standard_librarys(options):
    """What other libraries read of a dataclass is there."""
    theirs, ours = classes(dataclasses.dataclass, **options)[1], classes(values.dataclass, **options)[1]

    assert [one.name for one in dataclasses.fields(ours)] == [one.name for one in dataclasses.fields(theirs)]
    assert ours.__match_args__ == theirs.__match_args__
    assert hasattr(ours, "__slots__") == hasattr(theirs, "__slots__")
    assert hasattr(ours(x=1), "__dict__") == hasattr(theirs(x=1), "__dict__")
    assert ours.unit == "m"
    assert ours(x=1, y=2).sum == 3


@pytest.mark.parametrize("kind", [Standard, Ours])
def test_a_value_can_be_copied_and_sent(kind):
    """As tests and processes do."""
    one = kind(1, (2,))

    assert pickle.loads(pickle.dumps(one)) == copy.copy(one) == copy.deepcopy(one) == one  # noqa: S301 - our own bytes


def test_what_is_not_frozen_is_the_standard_librarys():
    """A class that changes is made as ever."""

    @values.dataclass(slots=True)
    class Count:
        n: int = 0

    one = Count()
    one.n += 1

    assert one == Count(1)
