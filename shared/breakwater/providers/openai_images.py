"""How are images made through OpenAI's Images API?

It has no background and no idempotency: a lost answer means an unknown outcome, which is never repeated unasked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from breakwater.domain.reading import count, inside, objects, word
from breakwater.domain.results import Call, Result, Usage
from breakwater.providers.base import Json
from breakwater.providers.conversation import BadPayload, parameters_of, turns_of
from breakwater.providers.openai_base import OpenAIAdapter
from breakwater.providers.request import Request, in_header, post

_MIMES = {"png": "image/png", "jpeg": "image/jpeg", "webp": "image/webp"}


class OpenAIImages(OpenAIAdapter):
    """`POST /images/generations`."""

    def request(self, call: Call) -> Request:
        payload = call.payload
        beside = {key: payload[key] for key in ("n", "size") if payload.get(key) is not None}
        body = {**parameters_of(payload, {}), **beside, "model": call.model, "prompt": _prompt(payload)}
        return post("/images/generations", body, {"X-Client-Request-Id": in_header(call.execution_id)})

    def read(self, body: Json, headers: Mapping[str, str]) -> Result:
        del headers
        mime = _MIMES.get(str(body.get("output_format")), "image/png")
        media = tuple(image for item in objects(body.get("data")) if (image := _image(item, mime)))
        usage = body.get("usage")
        return Result(
            media=media,
            usage=Usage(
                input_tokens=count(inside(usage, "input_tokens")),
                cached_tokens=count(inside(usage, "input_tokens_details", "cached_tokens")),
                output_tokens=count(inside(usage, "output_tokens")),
                images=len(media),
            ),
            served_model=word(body.get("model")),
        )


def _prompt(payload: Json) -> str:
    """The prompt; else what the user said last."""
    prompt = payload.get("prompt")
    if isinstance(prompt, str) and prompt:
        return prompt
    said = [turn.text for turn in turns_of(payload) if turn.role == "user" and turn.text]
    if not said:
        raise BadPayload("An image needs a prompt.")
    return said[-1]


def _image(item: Json, mime: str) -> dict[str, Any] | None:
    if data := word(item.get("b64_json")):
        return {"b64": data, "mime": mime}
    link = word(item.get("url"))
    return {"url": link, "mime": mime} if link else None
