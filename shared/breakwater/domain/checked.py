"""Is this data what its class says? Checked by pydantic where files are read, and nowhere in a function's start.

The classes and their rules stand in `strategy.py`, `policy.py` and `routes.py`; this is the only module that brings
both together.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

from breakwater.domain.model import Model
from breakwater.domain.policy import Policy
from breakwater.domain.routes import Route

Kind = TypeVar("Kind", bound=Model)


def checked(kind: type[Kind], data: Any) -> Kind:
    """The value behind plain data (YAML or JSON as read); raises pydantic's ValidationError with all that is wrong."""
    made: Kind = _checker(kind).validate_python(data)  # type: ignore[arg-type] # takes __hash__ for the instances'
    return made


@cache
def _checker(kind: type[Model]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def policy_of(data: Any) -> Policy:
    """A policy from plain data; raises pydantic's ValidationError."""
    return checked(Policy, data)


def route_of(data: Any) -> Route:
    """A route from plain data; raises pydantic's ValidationError."""
    return checked(Route, data)
