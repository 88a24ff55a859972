"""How is a generated page kept? Written anew, or with `--check` compared with what stands."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def keep(page: Path, text: str, module: str, arguments: Sequence[str]) -> int:
    """The exit status: 0 when the page was written or is fresh, 1 when it is stale (said on standard error)."""
    if "--check" not in arguments:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
        return 0
    if page.is_file() and page.read_text(encoding="utf-8") == text:
        return 0
    print(f"{page.relative_to(ROOT)} is stale: run `python -m tools.docs.{module}`", file=sys.stderr)
    return 1
