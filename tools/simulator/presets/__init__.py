"""Which answers do providers give when something is wrong, by name?

A preset is a fault half filled in. Those named after a provider say what that provider says; the
others take the words of whichever provider is called.
"""

from __future__ import annotations

from . import anthropic, gateway, gemini, openai, wire
from .rows import Template

PRESETS: dict[str, Template] = {
    **openai.ROWS,
    **anthropic.ROWS,
    **gemini.ROWS,
    **gateway.ROWS,
    **wire.ROWS,
}
BY_PROVIDER: dict[str, dict[str, str]] = {
    "rate_limited": {
        "openai": "openai_429_rate",
        "anthropic": "anthropic_429_rate",
        "gemini": "gemini_429_minute",
        "gateway": "openrouter_429_rate",
    },
    "overloaded_529": {
        "openai": "openai_529",
        "anthropic": "anthropic_529",
        "gemini": "gemini_529",
        "gateway": "gateway_529",
    },
    "unavailable_503": {
        "openai": "openai_503_overloaded",
        "anthropic": "anthropic_503",
        "gemini": "gemini_503",
        "gateway": "openrouter_503_overloaded",
    },
    "ok_with_error": {
        "openai": "openai_200_error",
        "anthropic": "anthropic_200_error",
        "gemini": "gemini_200_error",
        "gateway": "gateway_200_error",
    },
}
STANDING: dict[str, str] = {
    "429": "rate_limited",
    "529": "overloaded_529",
    "503": "unavailable_503",
    "hang": "hang",
    "cut": "cut",
    "html": "html_524",
    "200-error": "ok_with_error",
}


def known(name: str) -> bool:
    """Whether there is a preset of this name."""
    return name in PRESETS or name in BY_PROVIDER


def template(name: str, provider: str) -> Template:
    """Return the fields of a fault that the preset fills in for this provider."""
    if name in BY_PROVIDER:
        name = BY_PROVIDER[name][provider]
    return PRESETS[name]
