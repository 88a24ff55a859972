"""Which HMAC key does a configured secret mean?

Secrets are pasted by people: with blanks around them, with `v1,` in front, without their prefix, cut, masked, or not at
all. What is no whole secret becomes no key: an empty or a three-byte key would let anybody sign.
"""

from __future__ import annotations

import base64
import binascii

VERSION = "v1,"
SHORTEST = 16  # bytes; Standard Webhooks asks for 24 to 64, and what is shorter than this could be guessed
_PREFIX = "whsec_"
_ASYMMETRIC = ("whpk_", "whsk_")  # of Standard Webhooks: the public one is known to anybody


def keys_of(secret: str | None) -> tuple[bytes, ...]:
    """The HMAC keys a configured secret can mean, none when it is missing, too short or broken.

    `whsec_` and base64, also pasted with `v1,` in front or blanks around it, is one key. Without the prefix it is read
    as base64 first (as senders of Standard Webhooks mean it), then as plain text (as the official SDK does).
    """
    if not isinstance(secret, str):
        return ()
    text = secret.strip().removeprefix(VERSION)
    if text.removeprefix("v1a,").startswith(_ASYMMETRIC):
        return ()
    if text.startswith(_PREFIX):
        return _whole(_key(text.removeprefix(_PREFIX)))
    return _whole(_key(text), utf8(text))


def strict_base64(text: str) -> bytes | None:
    """Padded base64 without a foreign character, else None."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def utf8(text: str) -> bytes | None:
    """The text as bytes, None where it holds halves of characters."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None


def _key(text: str) -> bytes | None:
    """A key from base64, with or without its padding; strictly, as `whsec_…3frh` must not become a short key."""
    compact = "".join(text.split()).rstrip("=")
    return strict_base64(compact + "=" * (-len(compact) % 4))


def _whole(*keys: bytes | None) -> tuple[bytes, ...]:
    return tuple(key for key in keys if key is not None and len(key) >= SHORTEST)
