"""What may a caller ask for, in full? The model of the body of `POST /v1/jobs` and `POST /v1/run`.

It generates the API reference, names what is wrong with a body, and reads what a body says in another way than usual
(`"n": "3"`). A body that is plainly in order is read by `request.py` itself, so that a start need not wait for the
library behind this model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from breakwater.domain import request as wanted
from breakwater.domain.errors import InvalidRequest
from breakwater.domain.request import (
    MAX_MESSAGES,
    MAX_RESULTS,
    MAX_SHORT,
    MAX_TOOLS,
    MAX_URL,
    SHORT,
    URL,
)
from breakwater.domain.sizes import MAX_BODY_BYTES
from breakwater.domain.states import Priority

Short = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SHORT, pattern=rf"^{SHORT}$")]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Message(_Model):
    """One turn of a conversation: plain text, or a list of parts that goes to the provider as it is."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] = Field(max_length=MAX_BODY_BYTES)
    tool_call_id: str | None = None
    tool_calls: list[dict[str, Any]] | None = None

    @model_validator(mode="before")
    @classmethod
    def _only_calls(cls, given: Any) -> Any:
        """OpenAI's own answers say `"content": null` beside calls of tools, and come back as they are."""
        if isinstance(given, dict) and given.get("tool_calls") and given.get("content", "") is None:
            return {**given, "content": ""}
        return given


class Input(_Model):
    """What the provider is asked. `messages` for text, `prompt` for media."""

    messages: list[Message] | None = Field(default=None, min_length=1, max_length=MAX_MESSAGES)
    prompt: str | None = Field(default=None, min_length=1)
    instructions: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    json_schema: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = Field(default=None, max_length=MAX_TOOLS)
    size: str | None = None
    n: int | None = Field(default=None, ge=1, le=MAX_RESULTS)

    @model_validator(mode="after")
    def _one_of(self) -> Input:
        if (self.messages is None) == (self.prompt is None):
            raise ValueError("give either `messages` or `prompt`")
        return self


class JobRequest(_Model):
    """The body of `POST /v1/jobs` and `POST /v1/run`."""

    workflow: Short
    input: Input
    user_ref: Short | None = None
    priority: Priority | None = None  # may only lower the policy's
    callback_url: Annotated[str, StringConstraints(max_length=MAX_URL, pattern=URL)] | None = None
    side_effect_target: Short | None = None
    stream: bool = False


def read(body: Mapping[str, Any]) -> wanted.JobRequest:
    """The request behind a JSON object; raises `InvalidRequest` naming the first wrong field, the rule and the fix."""
    try:
        found = JobRequest.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise _invalid(first, body) from None
    own = {name: getattr(found, name) for name in JobRequest.model_fields if name != "input"}
    return wanted.JobRequest(**own, payload=_payload(found.input))


def _payload(given: Input) -> dict[str, Any]:
    """The input as it is stored; what can't be stored as it came is refused, not changed."""
    try:
        halves = any(map(wanted.half_character, _names(given.model_dump())))
        payload = given.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    except (ValueError, RecursionError):
        halves, payload = True, {}
    if halves:
        raise InvalidRequest(
            "`input` can't be stored as JSON.",
            field="input",
            rule="json",
            fix="nest less deeply, and name keys in whole characters",
        )
    return payload


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _names(one)


def _invalid(first: Mapping[str, Any], body: Mapping[str, Any]) -> InvalidRequest:
    """A refusal that names the field and the rule, and never repeats what was sent."""
    rule, path = str(first["type"]), tuple(_path(first, body))
    field = ".".join(path) or "body"
    said = str(first["msg"])
    if len(path) < len(first["loc"]):  # of several kinds that would do, pydantic names the first
        said = f"`{field}` is a text or a list of objects"
    fix = {
        "missing": f"add `{field}`",
        "extra_forbidden": f"remove `{field}`: it is not a field of this request",
    }.get(rule, said)
    return InvalidRequest(f"`{field}` breaks the rule `{rule}`.", field=field, rule=rule, fix=fix)


def _path(first: Mapping[str, Any], body: Any) -> Iterator[str]:
    """Where it is in the body: pydantic also names the kind it tried, which is no place."""
    value: Any = body
    for part in first["loc"]:
        if isinstance(value, dict) and (part in value or first["type"] == "missing"):
            yield str(part)
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int):
            yield str(part)
            value = value[part]
