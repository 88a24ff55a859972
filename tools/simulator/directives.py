"""What does a prompt ask of the simulator, beyond being answered?

A directive is written `[[sim:name]]` or `[[sim:name=value]]` anywhere in a request's text, so the
input of a job alone scripts what its provider does.

| directive | effect |
| --- | --- |
| tool_call[=NAME] | calls the named (or first) tool of the request, once, with made-up arguments |
| json | answers with a JSON object although no schema was given |
| bad_json | breaks the schema that was given |
| long=CHARS | an answer of exactly that many characters |
| delay=MS | works that long; a background response completes after it |
| pace=MS | that long between two stream events |
| truncate | stops at the token limit, half of the text written |
| refuse | the model declines in words |
| filter | the content filter takes the answer away |
| fail | the model starts and breaks |
| served=MODEL | answers with another model than the one asked for |
| cached=N, reasoning=N | these token counts in the usage |
| webhook=MODE | this response's webhook is delivered in that mode |
| fault=PRESET or PRESET*N | every call, or the first N, with this text meets a preset |
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_PATTERN = re.compile(r"\[\[sim:([a-z_]+)(?:=([^\]]*))?\]\]")
FLAGS = frozenset({"json", "bad_json", "truncate", "refuse", "filter", "fail"})
NUMBERS = frozenset({"long", "delay", "pace", "cached", "reasoning"})
TEXTS = frozenset({"tool_call", "served", "webhook", "fault"})


class UnknownDirectiveError(ValueError):
    """The text holds a directive that means nothing, so the script has a mistake."""


@dataclass(frozen=True, slots=True)
class Directives:
    """The directives of one request, in the order of their writing."""

    pairs: tuple[tuple[str, str], ...] = ()

    def has(self, name: str) -> bool:
        """Whether the directive was written at all."""
        return any(name == key for key, _ in self.pairs)

    def number(self, name: str, default: int = 0) -> int:
        """Its value as a whole number."""
        text = self.text(name)
        return int(text) if text else default

    def text(self, name: str) -> str | None:
        """Its value, or nothing where it was not written."""
        return next((value for key, value in self.pairs if key == name), None)


NO_DIRECTIVES = Directives()


def read_directives(text: str) -> Directives:
    """Collect the directives of a text; refuse one nobody knows or a value that is no number."""
    pairs = tuple((match[1], match[2] or "") for match in _PATTERN.finditer(text))
    for name, value in pairs:
        if name not in FLAGS | NUMBERS | TEXTS:
            message = f"unknown directive [[sim:{name}]]"
            raise UnknownDirectiveError(message)
        if name in NUMBERS and not (value.isascii() and value.isdigit()):
            message = f"[[sim:{name}]] needs a whole number, not {value!r}"
            raise UnknownDirectiveError(message)
    return Directives(pairs)


def without_directives(text: str) -> str:
    """Return the text as a model would see it."""
    return _PATTERN.sub("", text).strip()
