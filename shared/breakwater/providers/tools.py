"""Which tools may the model call?

Functions come in the form of chat completions (`{"type": "function", "function": {…}}`) or in the flat one of the
Responses API; the adapters write them down in their provider's words. Any other tool is handed on as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from breakwater.domain.values import dataclass
from breakwater.providers.conversation import BadPayload, Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function the model may call."""

    name: str
    description: str | None
    schema: Any
    strict: bool


def tools_of(payload: Json) -> tuple[Tool | Json, ...]:
    """The tools: functions in our words, anything else as it is. Raises `BadPayload`."""
    tools = payload.get("tools") or []
    if not isinstance(tools, list) or not all(isinstance(tool, Mapping) for tool in tools):
        raise BadPayload("Tools are a list of objects.")
    return tuple(_tool(tool) for tool in tools)


def tool_choice_of(payload: Json) -> Any:
    """`auto`, `none`, `required`, or `{"name": …}`; None where nothing was said."""
    choice = payload.get("tool_choice")
    if not isinstance(choice, Mapping):
        return choice
    function = choice.get("function")
    name = function.get("name") if isinstance(function, Mapping) else choice.get("name")
    return {"name": name} if isinstance(name, str) else dict(choice)


def _tool(tool: Json) -> Tool | Json:
    if tool.get("type") != "function":
        return tool
    function = tool.get("function")
    said = function if isinstance(function, Mapping) else tool
    if not isinstance(said.get("name"), str):
        raise BadPayload("A tool has a name.")
    return Tool(
        name=said["name"],
        description=said.get("description"),
        schema=said.get("parameters") or {"type": "object", "properties": {}},
        strict=bool(said.get("strict")),
    )
