"""What does a job's input say, before any provider's dialect?

Our one input shape: `messages` of `{role, content}` (content is a text or a list of parts), `instructions`,
`parameters`, `json_schema`, `tools`. Here it becomes turns and parts; the adapters write them down in their
provider's words. A part of a type we don't know is handed on as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from breakwater.domain.values import dataclass

Json = Mapping[str, Any]

_TEXT_TYPES = ("text", "input_text", "output_text")
_IMAGE_TYPES = ("image", "image_url", "input_image")
_SYSTEM_ROLES = ("system", "developer")

RESERVED = frozenset(
    {
        *("model", "stream", "stream_options", "background", "store", "metadata", "webhook"),
        *("models", "fallbacks", "provider", "route"),
    }
)
"""Parameters that no input may set: they belong to the route, or would change it without a word."""


class BadPayload(ValueError):  # noqa: N818
    """The input can't be written down for this provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A text, an image (by URL, or as base64 with its type), or something only the provider knows (`raw`)."""

    text: str = ""
    url: str = ""
    data: str = ""
    mime: str = "image/png"
    raw: Json | None = None

    @property
    def is_image(self) -> bool:
        return bool(self.url or self.data)

    @property
    def source(self) -> str:
        """The image as a URL, its own or one that holds the data."""
        return self.url or f"data:{self.mime};base64,{self.data}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call of a tool; `arguments` is JSON text. `signature` is what Gemini wants back with its own calls."""

    id: str
    name: str
    arguments: str
    signature: str | None = None

    @property
    def parsed(self) -> Any:
        """The arguments as JSON. Raises `BadPayload`."""
        try:
            return json.loads(self.arguments or "{}")
        except (ValueError, RecursionError) as error:
            raise BadPayload("The arguments of a tool call must be JSON.") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message. `result_of` is the id of the call that a tool's message answers."""

    role: str
    parts: tuple[Part, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    result_of: str | None = None

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if part.text)


def turns_of(payload: Json) -> tuple[Turn, ...]:
    """The conversation; a bare `prompt` is one message of the user. Raises `BadPayload`."""
    messages = payload.get("messages")
    if messages is None and isinstance(payload.get("prompt"), str):
        messages = [{"role": "user", "content": payload["prompt"]}]
    if not isinstance(messages, list) or not messages:
        raise BadPayload("The input needs messages.")
    return tuple(_turn(message) for message in messages)


def without_system(payload: Json) -> tuple[str, tuple[Turn, ...]]:
    """Instructions and system messages as one text, and the other turns, for APIs that keep them apart."""
    turns = turns_of(payload)
    texts = [instructions_of(payload), *(turn.text for turn in turns if turn.role in _SYSTEM_ROLES)]
    rest = tuple(turn for turn in turns if turn.role not in _SYSTEM_ROLES)
    if not rest:
        raise BadPayload("The input needs a message that is no instruction.")
    return "\n\n".join(text for text in texts if text), rest


def instructions_of(payload: Json) -> str:
    """The instructions, empty where there are none. Raises `BadPayload`."""
    instructions = payload.get("instructions") or ""
    if not isinstance(instructions, str):
        raise BadPayload("Instructions are a text.")
    return instructions


def parameters_of(payload: Json, names: Mapping[str, str]) -> dict[str, Any]:
    """The parameters under the provider's names; those without one are handed on. Raises `BadPayload`."""
    parameters = payload.get("parameters") or {}
    if not isinstance(parameters, Mapping):
        raise BadPayload("Parameters are an object.")
    return {names.get(key, key): value for key, value in parameters.items() if key not in RESERVED}


def schema_of(payload: Json) -> Json | None:
    """The JSON schema that the answer must keep: `{name, schema, strict}`. Raises `BadPayload`."""
    wanted = payload.get("json_schema")
    if wanted is not None and (not isinstance(wanted, Mapping) or not isinstance(wanted.get("schema"), Mapping)):
        raise BadPayload("A JSON schema is an object with name and schema.")
    return wanted


def joined(turns: Iterable[tuple[str, Sequence[Any]]]) -> list[dict[str, Any]]:
    """Messages in a row of one role as one message, for APIs whose roles alternate: `[{role, parts: […]}]`."""
    messages: list[dict[str, Any]] = []
    for role, parts in turns:
        if messages and messages[-1]["role"] == role:
            messages[-1]["parts"].extend(parts)
        elif parts:
            messages.append({"role": role, "parts": list(parts)})
    return messages


def _turn(message: Any) -> Turn:
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        raise BadPayload("A message is an object with role and content.")
    result_of = message.get("tool_call_id")
    return Turn(
        role=message["role"],
        parts=_parts(message.get("content")),
        calls=_calls(message.get("tool_calls")),
        result_of=result_of if isinstance(result_of, str) else None,
    )


def _parts(content: Any) -> tuple[Part, ...]:
    if content is None or content == "":
        return ()
    if isinstance(content, str):
        return (Part(text=content),)
    if not isinstance(content, list):
        raise BadPayload("The content of a message is a text or a list of parts.")
    return tuple(_part(part) for part in content)


def _part(part: Any) -> Part:
    if isinstance(part, str):
        return Part(text=part)
    if not isinstance(part, Mapping):
        raise BadPayload("A part is a text or an object.")
    if part.get("type") in _TEXT_TYPES and isinstance(part.get("text"), str):
        return Part(text=part["text"])
    return (_image(part) if part.get("type") in _IMAGE_TYPES else None) or Part(raw=part)


def _image(part: Json) -> Part | None:
    link = part.get("image_url", part.get("url"))
    link = link.get("url") if isinstance(link, Mapping) else link
    if isinstance(link, str) and link.startswith("data:"):
        head, _, data = link.removeprefix("data:").partition(",")
        return Part(data=data, mime=head.removesuffix(";base64") or "image/png")
    if isinstance(link, str) and link:
        return Part(url=link)
    data, mime = part.get("b64", part.get("data")), part.get("mime", "image/png")
    return Part(data=data, mime=mime) if isinstance(data, str) and isinstance(mime, str) and data else None


def _calls(calls: Any) -> tuple[ToolCall, ...]:
    if calls is not None and not isinstance(calls, list):
        raise BadPayload("Tool calls are a list.")
    return tuple(_call(call) for call in calls or ())


def _call(call: Any) -> ToolCall:
    """A tool call in our output shape, or in the one of chat completions."""
    if not isinstance(call, Mapping):
        raise BadPayload("A tool call is an object.")
    function = call.get("function")
    said = function if isinstance(function, Mapping) else call
    call_id, name, arguments = call.get("id"), said.get("name"), said.get("arguments", "{}")
    if not (isinstance(call_id, str) and isinstance(name, str) and isinstance(arguments, str)):
        raise BadPayload("A tool call has id, name and arguments, all of them texts.")
    signature = call.get("signature")
    signed = signature if isinstance(signature, str) else None
    return ToolCall(id=call_id, name=name, arguments=arguments, signature=signed)
