"""Which values do all providers have in common, whatever their wire shape?"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .directives import NO_DIRECTIVES, Directives

Json = dict[str, Any]
ProblemKind = Literal[
    "bad_request",
    "no_credential",
    "bad_credential",
    "no_model",
    "not_found",
    "moderation",
    "server",
]


def now_ms() -> int:
    """The wall clock in integer milliseconds."""
    return time.time_ns() // 1_000_000


def new_id(prefix: str) -> str:
    """An id no other object of this or another run has."""
    return f"{prefix}{uuid.uuid4().hex}"


class Problem(Exception):  # noqa: N818 - it is what a provider answers, not our failure
    """The request cannot be served; each dialect words and numbers it in its own way."""

    def __init__(self, kind: ProblemKind, message: str, param: str | None = None) -> None:
        """Name what is wrong and, if it is one, the parameter at fault."""
        super().__init__(message)
        self.kind: ProblemKind = kind
        self.message = message
        self.param = param


@dataclass(frozen=True, slots=True)
class Incoming:
    """One HTTP request as read from the wire; header names are lower case."""

    method: str
    path: str
    params: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    raw: bytes = b""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function the caller offers to the model."""

    name: str
    schema: Json


@dataclass(frozen=True, slots=True)
class Asked:
    """A request understood: what the answer, the faults and the ledger depend on."""

    model: str = ""
    prompt: str = ""
    text: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    directives: Directives = NO_DIRECTIVES
    stream: bool = False
    background: bool = False
    tools: tuple[Tool, ...] = ()
    schema: Json | None = None
    max_tokens: int | None = None
    body: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts; `output` includes `reasoning`, `input` includes `cached`."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0

    @property
    def total(self) -> int:
        """Everything that is paid for, in and out."""
        return self.input + self.output


@dataclass(frozen=True, slots=True)
class Processed:
    """What a provider has to say once it has done the work."""

    status: int = 200
    body: bytes = b""
    frames: AsyncIterator[bytes] | None = None
    provider_id: str | None = None
    usage: Usage = Usage()
