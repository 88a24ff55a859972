"""What can go wrong locally, in words that say what to do."""

from __future__ import annotations

from pathlib import Path


class LocalCloudError(Exception):
    """Something local is missing or failed; the message says what to do about it."""


def with_tail(message: str, log: Path, lines: int = 15) -> LocalCloudError:
    """An error that shows the end of the log which explains it."""
    text = log.read_text(errors="replace").splitlines()[-lines:] if log.is_file() else []
    return LocalCloudError("\n".join([message, "", *text, "", f"Everything is in {log}"]))
