"""What can come out of a provider's stream? One closed union for all of them.

`sequence` is the provider's own number where it has one (OpenAI Responses): what a stream can be resumed after.
"""

from __future__ import annotations

from breakwater.domain.results import Result, Usage
from breakwater.domain.signals import Signal
from breakwater.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The provider named the job that this stream tells about; only where it can be read again under that name."""

    provider_job_id: str
    sequence: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Something happened that nobody sees: a part began, the model thinks."""

    sequence: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """The next piece of the text."""

    text: str
    sequence: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallDelta:
    """The next piece of a call of a tool: its id and name come once, its arguments in pieces."""

    index: int
    arguments: str = ""
    id: str = ""
    name: str = ""
    sequence: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectBegun:
    """The provider itself began to use a tool of its own: something outside may have happened."""

    kind: str
    sequence: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSeen:
    """What was counted so far; the last one holds."""

    usage: Usage
    sequence: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The provider's terminal event: the answer is complete."""

    result: Result
    sequence: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """No answer, or not all of it. `told`: the provider itself said so, and its work is over.

    Otherwise only the connection or our question failed, and a job that runs at the provider may well go on.
    """

    signal: Signal
    partial: Result | None = None
    told: bool = False
    sequence: int | None = None


Delta = TextDelta | ToolCallDelta | EffectBegun
"""What counts as visible."""

StreamEvent = Opened | Progress | TextDelta | ToolCallDelta | EffectBegun | UsageSeen | Done | Failed
"""Everything a stream can say; `Done` and `Failed` end it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Where to go on: the provider's job, after this event (None: from its beginning)."""

    provider_job_id: str
    after: int | None = None
