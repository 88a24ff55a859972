"""How are adapters built, and what is refused?"""

from __future__ import annotations

import subprocess
import sys

import pytest

from breakwater.domain.errors import InvalidPolicy, SecretUnavailable
from breakwater.providers import address
from breakwater.providers.registry import build
from tests.providers.wire import ALL, KEY

HEAVY = ("openai", "httpx", "httpx2", "anthropic")


@pytest.mark.parametrize(
    "url",
    [
        *("http://api.example.com", "ftp://127.0.0.1", "api.example.com", "https://", "", "https://u:p@example.com"),
        *("https://example.com?key=x", "https://example.com/#x", "https://[", "https://example.com:port"),
        *("http://127.0.0.1.example.com", "http://localhost@example.com", "file:///etc/passwd"),
    ],
)
def test_an_unsafe_base_url_is_refused(url):
    """Keys travel over TLS, to a place that is nothing but a place."""
    with pytest.raises(InvalidPolicy) as caught:
        address.checked_url(url or None, None)

    assert caught.value.field == "base_url"


@pytest.mark.parametrize(
    ("url", "checked"),
    [
        ("https://example.com/v1/", "https://example.com/v1"),
        (" https://example.com ", "https://example.com"),
        ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        (None, "https://default.example.com"),
    ],
)
def test_a_safe_base_url_is_taken(url, checked):
    """This machine may be reached without TLS."""
    assert address.checked_url(url, "https://default.example.com") == checked


@pytest.mark.parametrize("key", ["", "  ", "a b", "a\nb", "kéy", "\x00"])
def test_an_unusable_key_is_refused_without_being_shown(key):
    """Empty, or with something no header can carry."""
    with pytest.raises(SecretUnavailable) as caught:
        address.checked_key(key)

    assert not key.strip() or key not in str(caught.value)


def test_the_newline_of_a_file_is_no_part_of_a_key():
    """Secrets are pasted with one."""
    assert address.checked_key("sk-1\n") == "sk-1"


@pytest.mark.parametrize(("provider", "endpoint"), ALL)
def test_every_adapter_checks_where_it_goes(provider, endpoint):
    """No adapter takes a key in clear text to another machine."""
    with pytest.raises(InvalidPolicy):
        build(provider, endpoint, "http://api.example.com/v1", KEY, "r", 1_000)
    with pytest.raises(SecretUnavailable):
        build(provider, endpoint, "https://api.example.com/v1", "\n", "r", 1_000)


def test_a_gateway_has_no_address_of_its_own():
    """It must be said which one."""
    with pytest.raises(InvalidPolicy):
        build("gateway", "chat", None, KEY, "r", 1_000)


def test_an_endpoint_that_nobody_speaks_is_refused():
    """A route can't be built for it."""
    with pytest.raises(InvalidPolicy) as caught:
        build("anthropic", "images", None, KEY, "r", 1_000)

    assert caught.value.field == "endpoint"


@pytest.mark.parametrize(
    ("statement", "loaded"),
    [
        ("import breakwater.providers.registry, breakwater.providers.base, breakwater.providers.batches", set()),
        ("import breakwater.providers.gemini", {"httpx"}),
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(statement, loaded):
    """`openai` costs more than half a second; who calls nobody must not pay for it."""
    program = f"import sys; {statement}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert set(done.stdout.split()) == loaded
