"""Where does a running simulator say how it can be reached?"""

from __future__ import annotations

import json
import os
from pathlib import Path

_NAME = "address.json"


def announce(folder: Path, base_url: str) -> None:
    """Write down address and process id, in one step."""
    draft = folder / f"{_NAME}.draft"
    draft.write_text(json.dumps({"base_url": base_url, "pid": os.getpid()}), encoding="utf-8")
    draft.replace(folder / _NAME)


def announced(folder: Path) -> str | None:
    """Return the base URL written down, if there is one."""
    path = folder / _NAME
    return str(json.loads(path.read_text(encoding="utf-8"))["base_url"]) if path.exists() else None


def withdraw(folder: Path) -> None:
    """Take the note away."""
    (folder / _NAME).unlink(missing_ok=True)
