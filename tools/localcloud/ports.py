"""Which port is free?"""

from __future__ import annotations

import os
import socket

from tools.localcloud.errors import LocalCloudError


def choose(preferred: int | None, variable: str | None = None) -> int:
    """The port that `variable` demands, else the preferred one if it is free, else any free one."""
    demanded = os.environ.get(variable, "") if variable else ""
    if demanded:
        if not demanded.isdigit() or not free(int(demanded)):
            raise LocalCloudError(
                f"Port {demanded} ({variable}) is taken by another program.\n"
                f"Stop that program, or choose another port: {variable}=4600 make run",
            )
        return int(demanded)
    if preferred and free(preferred):
        return preferred
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def free(port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
