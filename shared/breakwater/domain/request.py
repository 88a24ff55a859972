"""What may a caller ask for? The body of `POST /v1/jobs`, and what is refused before anything is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from breakwater.domain.errors import InvalidRequest
from breakwater.domain.sizes import MAX_BODY_BYTES
from breakwater.domain.states import Priority

MAX_KEY_CHARS = 255

Short = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]+$")]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Message(_Model):
    """One turn of a conversation: plain text, or a list of parts that goes to the provider as it is."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] = Field(max_length=MAX_BODY_BYTES)
    tool_call_id: str | None = None
    tool_calls: list[dict[str, Any]] | None = None


class Input(_Model):
    """What the provider is asked. `messages` for text, `prompt` for media."""

    messages: list[Message] | None = Field(default=None, min_length=1, max_length=2_000)
    prompt: str | None = Field(default=None, min_length=1)
    instructions: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    json_schema: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = Field(default=None, max_length=128)
    size: str | None = None
    n: int | None = Field(default=None, ge=1, le=10)

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
    callback_url: Annotated[str, StringConstraints(max_length=2_048, pattern=r"^https?://")] | None = None
    side_effect_target: Short | None = None
    stream: bool = False


def parse(body: Any) -> JobRequest:
    """The request behind a JSON value; raises `InvalidRequest` naming the first wrong field, the rule and the fix."""
    if not isinstance(body, dict):
        raise InvalidRequest(
            "The body must be a JSON object.",
            field="body",
            rule="object",
            fix='send {"workflow": …, "input": …}',
        )
    try:
        return JobRequest.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise _invalid(first) from None


def _invalid(first: Mapping[str, Any]) -> InvalidRequest:
    """A refusal that names the field and the rule, and never repeats what was sent."""
    field = ".".join(str(part) for part in first["loc"]) or "body"
    rule = str(first["type"])
    fix = {
        "missing": f"add `{field}`",
        "extra_forbidden": f"remove `{field}`: it is not a field of this request",
    }.get(rule, str(first["msg"]))
    return InvalidRequest(f"`{field}` breaks the rule `{rule}`.", field=field, rule=rule, fix=fix)


def idempotency_key(raw: str | None) -> str | None:
    """The caller's key, None when absent or blank; raises `InvalidRequest` for one that can't be a key."""
    key = (raw or "").strip()
    if not key:
        return None
    if len(key) > MAX_KEY_CHARS or any(not one.isprintable() for one in key):
        raise InvalidRequest(
            "The idempotency key can't be used.",
            field="Idempotency-Key",
            rule="length_and_characters",
            fix=f"use 1 to {MAX_KEY_CHARS} printable characters, for example a UUID",
        )
    return key
