"""Who asks? Apart from what is asked for: readers of streams must not wait for what only admission needs."""

from __future__ import annotations

from breakwater.domain.errors import NotAuthorised
from breakwater.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who asks: the owner behind an API key, and what the key may do."""

    owner_key: str
    key_id: str
    scopes: frozenset[str]

    def need(self, scope: str) -> None:
        """Raise `NotAuthorised` unless the key carries the scope."""
        if scope not in self.scopes and "operate" not in self.scopes:
            raise NotAuthorised(field="Authorization", rule="scope", fix=f"use a key with the scope `{scope}`")
