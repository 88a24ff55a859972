"""How do calls to AWS fail? One place turns botocore's exceptions into ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from breakwater.domain.errors import StoreUnavailable, Unavailable

CONDITION_FAILED = "ConditionalCheckFailedException"
TRANSACTION_CANCELLED = "TransactionCanceledException"


def code_of(error: ClientError) -> str:
    """The service's own error code."""
    return str(error.response.get("Error", {}).get("Code", ""))


def old_item(error: ClientError) -> dict[str, Any] | None:
    """The item a failed condition was tested against, None when there was none."""
    item = error.response.get("Item")
    return dict(item) if isinstance(item, dict) and item else None


@contextmanager
def answered(kind: type[Unavailable] = StoreUnavailable, *but: str) -> Iterator[None]:
    """Let the named error codes through; everything else the service or the network did becomes `kind`."""
    try:
        yield
    except ClientError as error:
        if code_of(error) in but:
            raise
        raise kind(f"{kind.__doc__} ({code_of(error)})") from error
    except BotoCoreError as error:
        raise kind(f"{kind.__doc__} ({type(error).__name__})") from error
