"""Where do webhooks go, how are they signed, and what goes wrong on the way?"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

Mode = Literal["normal", "none", "early", "reorder", "wrong_signature", "altered_body"]
MODES: tuple[str, ...] = get_args(Mode)
_WRONG_KEY = b"not the key that was agreed upon"


class WebhookSettings(BaseModel):
    """The one endpoint that background responses report to; without a URL nobody hears of them.

    `none` sends nothing. `early` delivers before the create call returns (which waits up to
    `early_hold_ms`). `reorder` holds `hold` events, or for `flush_ms`, and sends the last first.
    `wrong_signature` signs with another key. `altered_body` follows the genuine delivery with
    another body under the same id. Every mode sends `copies`, after `delay_ms`, each until a 2xx
    or 410 or `max_attempts`, with a back-off that doubles from `backoff_ms`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str | None = None
    secrets: tuple[str, ...] = ()
    mode: Mode = "normal"
    copies: int = Field(default=1, ge=1)
    delay_ms: int = Field(default=0, ge=0)
    max_attempts: int = Field(default=5, ge=1)
    backoff_ms: int = Field(default=250, ge=0)
    early_hold_ms: int = Field(default=2000, ge=0)
    hold: int = Field(default=2, ge=2)
    flush_ms: int = Field(default=1000, ge=0)
    first_signatures: tuple[str, ...] = ()


def signature_header(settings: WebhookSettings, signed: bytes, mode: str) -> str:
    """Sign with every secret, in order; entries of `first_signatures` go in front as they are."""
    keys = [_key(secret) for secret in settings.secrets]
    if mode == "wrong_signature":
        keys = [_WRONG_KEY]
    entries = [f"v1,{_hmac(key, signed)}" for key in keys]
    return " ".join((*settings.first_signatures, *entries))


def _key(secret: str) -> bytes:
    if secret.startswith("whsec_"):
        return base64.b64decode(secret.removeprefix("whsec_"))
    return secret.encode()


def _hmac(key: bytes, signed: bytes) -> str:
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
