"""What does the text of an event stream say about its end?

The recorded text of a stream is read event by event: an error event outweighs all else, an end that is no success
outweighs one that is, and a stream without any terminal event is incomplete however cleanly it was closed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from breakwater.domain.rules.bodies import parse_json
from breakwater.domain.rules.endings import End, Ending, ending_of, first

_FIELDS = ("data:", "event:", "id:", "retry:", ":")
_DONE = "[DONE]"
_ERROR_TYPES = ("error", "response.error")
_COMPLETED = Ending(End.COMPLETED)
_OF_A_CHUNK = frozenset({"choices", "candidates", "response", "delta", "type"})
_STATUS = re.compile(r"[45]\d\d", re.ASCII)


def is_stream(text: str) -> bool:
    """Whether this is the text of an event stream."""
    return text.lstrip().startswith(_FIELDS)


def read_stream(text: str) -> tuple[Ending, Any]:
    """How the stream ended, and the event that says so (None where none does)."""
    ends = [(ending, event) for event in _events(text) if (ending := event_ending(event)) is not None]
    for wanted in (_is_error, _is_no_success, _is_success):
        if found := next((pair for pair in ends if wanted(pair[0])), None):
            return found
    return Ending(End.INCOMPLETE), None


def event_ending(event: Any) -> Ending | None:
    """How a stream ends by this event; None where it goes on."""
    if event == _DONE:
        return _COMPLETED
    if not isinstance(event, Mapping):
        return None
    if event.get("error") or event.get("type") in _ERROR_TYPES or event.get("event_type") == "error":
        return Ending(End.ERROR)
    if _is_flat_error(event):
        return Ending(End.ERROR)
    if event.get("type") == "message_stop":
        return _COMPLETED
    return _chunk_ending(event)


def named(name: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The data of an event that is called an error, so that it reads as one whatever it looks like."""
    said = event_ending(data) if name == "error" else None
    return data if name != "error" or (said is not None and _is_error(said)) else {"error": data}


def _is_flat_error(event: Mapping[str, Any]) -> bool:
    """An error that stands where a chunk should: it calls itself one, or has a status beside its message."""
    if event.get("object") == "error":
        return True
    if event.keys() & _OF_A_CHUNK:
        return False
    told = isinstance(event.get("message"), str) and _STATUS.fullmatch(str(event.get("code"))) is not None
    return told or (isinstance(event.get("error_type"), str) and event["error_type"] != "")


def _chunk_ending(event: Mapping[str, Any]) -> Ending | None:
    if isinstance(event.get("response"), Mapping):
        ending = ending_of(event)
        return None if ending.end in {End.RUNNING, End.NONE} else ending
    choice, candidate = first(event.get("choices")), first(event.get("candidates"))
    if choice.get("error"):
        return Ending(End.ERROR)
    if "promptFeedback" in event and not candidate:
        return ending_of(event)
    return _by_finish_word(choice.get("finish_reason") or candidate.get("finishReason")) or _by_delta(event)


def _by_finish_word(word: Any) -> Ending | None:
    """The last chunk carries a finish word; its content came in the chunks before."""
    return ending_of({"stop_reason": word, "content": [{"text": word}]}) if isinstance(word, str) else None


def _by_delta(event: Mapping[str, Any]) -> Ending | None:
    """Anthropic's `stop_reason` comes before `message_stop`: only one that is no success ends the stream."""
    delta = event.get("delta")
    ending = _by_finish_word(delta.get("stop_reason")) if isinstance(delta, Mapping) else None
    return None if ending is None or _is_success(ending) else ending


def _events(text: str) -> Iterator[Any]:
    """The data of each event: JSON where it is some, else its text."""
    for block in text.replace("\r\n", "\n").replace("\r", "\n").split("\n\n"):
        lines = [line[len("data:") :].removeprefix(" ") for line in block.split("\n") if line.startswith("data:")]
        if lines:
            data = "\n".join(lines)
            told = _DONE if data.strip() == _DONE else parse_json(data)
            yield named(_name(block), told) if isinstance(told, Mapping) else told


def _name(block: str) -> str:
    names = [line[len("event:") :].strip() for line in block.split("\n") if line.startswith("event:")]
    return names[-1] if names else ""


def _is_error(ending: Ending) -> bool:
    return ending.end is End.ERROR


def _is_success(ending: Ending) -> bool:
    return ending.end in {End.COMPLETED, End.EMPTY}


def _is_no_success(ending: Ending) -> bool:
    return not _is_success(ending)
