"""How much is taken at once? Lambda takes 6 MiB for a whole event, with the body escaped or in base64 inside."""

from __future__ import annotations

MAX_BODY_BYTES = 4 * 1024 * 1024
