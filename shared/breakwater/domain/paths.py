"""Where in a JSON body does something stand?

A path is dotted, a number in it is a place in a list; of several paths the first that holds something counts. Total:
whatever the body holds, what is not there or of the wrong kind is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MAX_CHARS = 256  # of a word; it becomes part of keys

Paths = tuple[str, ...]


def at(value: Any, path: str) -> Any:
    """What stands at this path."""
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def first(body: Any, paths: Paths) -> Any:
    """What stands at the first path that holds something."""
    return next((value for path in paths if (value := at(body, path)) is not None), None)


def first_word(body: Any, paths: Paths) -> str | None:
    """The first of these paths that holds a short printable text, or a whole number as one."""
    return next((text for path in paths if (text := word(at(body, path))) is not None), None)


def word(value: Any) -> str | None:
    """A short printable text, or a whole number as one."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value) if abs(value) < 2**63 else None
    if isinstance(value, str) and 0 < len(value) <= MAX_CHARS and value.isprintable():
        return value
    return None
