"""Where may a call go, and with which key?

Both come from configuration and are checked once, when an adapter is built: a key must never travel in clear text,
and neither a base URL nor a key may carry anything that changes the request around it.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

from breakwater.domain.errors import InvalidPolicy, SecretUnavailable

_LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})
_KEY = re.compile(r"[\x21-\x7e]+", re.ASCII)
_VERSION = re.compile(r"/v\d+(?:(?:alpha|beta)\d*)?$", re.ASCII)


def checked_url(base_url: str | None, default: str | None) -> str:
    """The base URL without a slash at its end. Raises `InvalidPolicy`."""
    url = (base_url or default or "").strip()
    parts = _split(url)
    local = parts.hostname in _LOCAL
    if not parts.hostname or parts.scheme not in ({"http", "https"} if local else {"https"}):
        raise InvalidPolicy("A base URL must begin with https:// (http:// only for this machine).", field="base_url")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InvalidPolicy("A base URL holds no key, query or fragment.", field="base_url")
    return url.rstrip("/")


def versioned(url: str, version: str) -> str:
    """The URL with the API's version, unless its path ends in one."""
    return url if _VERSION.search(url) else f"{url}/{version}"


def is_local(url: str) -> bool:
    """Whether the URL names this machine, where no proxy belongs in between."""
    return urlsplit(url).hostname in _LOCAL


def checked_key(api_key: str) -> str:
    """The key without the blanks of its file. Raises `SecretUnavailable`, which never shows the key."""
    key = api_key.strip()
    if not _KEY.fullmatch(key):
        raise SecretUnavailable("The provider key is empty or holds characters that no header can carry.")
    return key


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port  # read here, since a wrong one is only found when it is asked for
    except ValueError as error:
        raise InvalidPolicy("A base URL must be a URL.", field="base_url") from error
    return parts
