"""Where do provider keys and webhook secrets come from?

Secrets Manager, through a cache of 60 s that serves stale when a refresh fails, so a rotation takes effect within a
minute without a deploy. A secret is a JSON object; nothing of it ever reaches a log or an error text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from breakwater.domain.errors import SecretUnavailable
from breakwater.store.client import answered

KEEP_MS = 60_000


class SecretStore:
    """Reads JSON secrets by id."""

    def __init__(self, client: Any, monotonic: Callable[[], int]) -> None:
        self._client, self._monotonic = client, monotonic
        self._kept: dict[str, tuple[int, Mapping[str, Any]]] = {}

    def read(self, secret_id: str) -> Mapping[str, Any]:
        """The secret's entries. Raises `SecretUnavailable` when it was never readable."""
        now = self._monotonic()
        kept = self._kept.get(secret_id)
        if kept is not None and kept[0] > now:
            return kept[1]
        try:
            value = self._load(secret_id)
        except SecretUnavailable:
            if kept is None:
                raise
            value = kept[1]
        self._kept[secret_id] = (now + KEEP_MS, value)
        return value

    def _load(self, secret_id: str) -> Mapping[str, Any]:
        with answered(SecretUnavailable):
            text = self._client.get_secret_value(SecretId=secret_id).get("SecretString") or "{}"
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise SecretUnavailable("the secret is no JSON object")
        return value
