"""What is a value that a policy file describes? A frozen dataclass that carries its rules, but not their checker.

Files are checked once, before they are shipped (`checked.py` hands these classes to pydantic, which reads `Rule` and
`After` beside each field). What is shipped is checked data, so a function that starts reads it without the checker:
`of` makes the value, `plain` gives the data back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import date
from enum import Enum
from typing import Annotated, Any, ClassVar, Self

from breakwater.domain.values import dataclass

Handler = Callable[[Any], Any]


class Rule:
    """Bounds of a field, in the words of pydantic's core schema. Nothing looks at them but the checker."""

    __slots__ = ("bounds",)

    def __init__(self, **bounds: Any) -> None:
        self.bounds = bounds

    def __get_pydantic_core_schema__(self, source: Any, handler: Handler) -> Any:
        return {**handler(source), **self.bounds}


class After:
    """A function that checks a field's value and returns it, perhaps tidied; it raises ValueError."""

    __slots__ = ("check",)

    def __init__(self, check: Callable[[Any], Any]) -> None:
        self.check = check

    def __get_pydantic_core_schema__(self, source: Any, handler: Handler) -> Any:
        from pydantic_core import core_schema  # noqa: PLC0415 - the checker is there when it asks

        return core_schema.no_info_after_validator_function(self.check, handler(source))


Ms = Annotated[int, Rule(strict=True, ge=0)]
Count = Annotated[int, Rule(strict=True, ge=0)]
Positive = Annotated[int, Rule(strict=True, ge=1)]
Flag = Annotated[bool, Rule(strict=True)]
Words = Annotated[str, Rule(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A frozen value whose data has no keys but its own. `parts` reads the fields that plain data can't hold."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}
    parts: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """The value behind data that was checked before."""
        return cls(**{name: _read(cls.parts.get(name), value) for name, value in data.items()})

    def plain(self, *, sparse: bool = False) -> dict[str, Any]:
        """The data behind the value, fit for JSON; `sparse`: without what is as by default."""
        values = ((one.name, getattr(self, one.name), one.default) for one in fields(self))
        return {name: _plain(value, sparse=sparse) for name, value, usual in values if not sparse or value != usual}


def _read(part: Callable[[Any], Any] | None, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value) if part is None else tuple(part(one) for one in value)
    return value if part is None or value is None else part(value)


def _plain(value: Any, *, sparse: bool) -> Any:
    if isinstance(value, Model):
        return value.plain(sparse=sparse)
    if isinstance(value, tuple):
        return [_plain(one, sparse=sparse) for one in value]
    if isinstance(value, Enum):
        return value.value
    return value.isoformat() if isinstance(value, date) else value
