"""Start the provider simulator from the command line."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from .server import serve
from .world import World


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m tools.simulator", description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="0 picks a free one")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--data-dir", type=Path, required=True, help="for ledger and address")
    parser.add_argument(
        "--background-delay-ms",
        type=int,
        default=300,
        help="how long a background response takes that says nothing else",
    )
    parser.add_argument("--follow-stdin", action="store_true", help="stop when standard input closes")
    given = parser.parse_args()
    try:
        world = World(
            given.data_dir,
            background_delay_ms=given.background_delay_ms,
            standing_fault=os.environ.get("PROVIDER_FAULT") or None,
        )
        serve(world, given.data_dir, given.host, given.port, follow_stdin=given.follow_stdin)
    except (OSError, ValueError) as error:
        sys.exit(f"provider simulator: {error}")


if __name__ == "__main__":
    main()
