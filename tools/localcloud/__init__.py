"""The local cloud: an AWS emulator, the real SAM build and deploy, and the provider simulator, without Docker.

`python -m tools.localcloud up` is what `make run` calls; tests use `LocalCloud` directly.
"""

from tools.localcloud.cloud import LocalCloud
from tools.localcloud.errors import LocalCloudError

__all__ = ["LocalCloud", "LocalCloudError"]
