"""Clients as the functions have them, but of the emulator."""

from __future__ import annotations

from typing import Any

import botocore.session

from breakwater.wiring import CALLS
from tools.localcloud.emulator import REGION


def product_client(endpoint: str, service: str) -> Any:
    """The same SDK and settings as `wiring.client`."""
    session = botocore.session.get_session()
    keys: dict[str, Any] = {"aws_access_key_id": "test", "aws_secret_access_key": "any secret will do"}
    return session.create_client(service, region_name=REGION, endpoint_url=endpoint, config=CALLS, **keys)
