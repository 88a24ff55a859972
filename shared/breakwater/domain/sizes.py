"""How much is taken at once, and how much of it stands in the table?

Lambda takes 6 MiB for a whole event, with the body escaped or in base64 inside. In the table every kilobyte is a write
unit; an object put costs as much as about eight of them.
"""

from __future__ import annotations

MAX_BODY_BYTES = 4 * 1024 * 1024
INLINE_BYTES = 16 * 1024
SPARE_INLINE_BYTES = 320 * 1024  # of what is paid for and would else be lost; an item may have 400 KiB in all
