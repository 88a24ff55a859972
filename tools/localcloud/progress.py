"""How does a person see that something is going on, and what takes how long?"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def step(label: str, *, quiet: bool = False) -> Iterator[None]:
    """Print the label at once and the duration when the work inside is done."""
    started = time.monotonic()
    if not quiet:
        sys.stdout.write(f"  {label:<28}")
        sys.stdout.flush()
    try:
        yield
    except BaseException:
        if not quiet:
            sys.stdout.write("failed\n")
        raise
    if not quiet:
        sys.stdout.write(f"{time.monotonic() - started:6.1f} s\n")
        sys.stdout.flush()
