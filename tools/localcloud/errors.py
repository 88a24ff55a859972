"""What can go wrong locally, in words that say what to do."""

from __future__ import annotations

from pathlib import Path

# Lines that tell nothing of a failure and would push out those that do.
NOISE = ("Uploading to ", "skipping upload")


class LocalCloudError(Exception):
    """Something local is missing or failed; the message says what to do about it."""


def with_tail(message: str, log: Path, lines: int = 15) -> LocalCloudError:
    """An error that shows the end of the log which explains it."""
    text = log.read_text(errors="replace").splitlines() if log.is_file() else []
    telling = [line for line in text if line.strip() and not any(noise in line for noise in NOISE)]
    return LocalCloudError("\n".join([message, "", *telling[-lines:], "", f"Everything is in {log}"]))
