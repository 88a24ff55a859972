"""A memory of a process that can't grow: what lives as long as a warm function must not follow the number of owners."""

from __future__ import annotations

from typing import TypeVar

MOST = 1_000
Key = TypeVar("Key")
Value = TypeVar("Value")


class Bounded(dict[Key, Value]):
    """A dict of at most 1 000 entries: one more, and it begins anew. Only for what can be read again."""

    def __setitem__(self, key: Key, value: Value) -> None:
        if len(self) >= MOST and key not in self:
            self.clear()
        super().__setitem__(key, value)
