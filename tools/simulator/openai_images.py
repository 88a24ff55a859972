"""How does OpenAI's image generation look, and its list of models?"""

from __future__ import annotations

import base64
import json
import struct
import zlib

from .answers import answer_to
from .dialect import Dialect
from .directives import without_directives
from .faults import Fault
from .operation import Operation, directives_in, json_body, model_in
from .shapes import Asked, Incoming, Json, Problem, Processed, Usage, new_id, now_ms
from .world import World

MODELS = (
    "gpt-5.5",
    "gpt-5.5-mini",
    "gpt-4.1",
    "gpt-image-2",
)
_IMAGE_TOKENS = 1056
_MOST_IMAGES = 10


class GenerateImages(Operation):
    """`POST /images/generations`: real, tiny PNG files whose colour comes from the prompt."""

    def __init__(self, dialect: Dialect) -> None:
        """Serve the route `openai.images`."""
        super().__init__("openai.images", dialect)

    def read(self, world: World, incoming: Incoming) -> Asked:
        """Understand the body."""
        del world
        body = json_body(incoming)
        model, text = model_in(body), body.get("prompt")
        if not isinstance(text, str) or not text:
            raise Problem("bad_request", "Missing required parameter: 'prompt'.", "prompt")
        count = body.get("n") or 1
        if not isinstance(count, int) or not 1 <= count <= _MOST_IMAGES:
            raise Problem("bad_request", f"n must be between 1 and {_MOST_IMAGES}.", "n")
        prompt, directives = without_directives(text), directives_in(text)
        return Asked(model, prompt, text=text, directives=directives, body=body)

    async def process(self, world: World, asked: Asked, fault: Fault | None) -> Processed:
        """Draw, unless moderation objects or the model breaks."""
        del world, fault
        finish = answer_to(asked).finish
        problem = _PROBLEMS.get(finish)
        if problem:
            status, refusal = self.dialect.refusal(problem)
            return Processed(status, json.dumps(refusal).encode())
        usage = _usage(asked)
        body = _images(asked, usage)
        return Processed(body=json.dumps(body).encode(), provider_id=new_id("img_"), usage=usage)


class ListModels(Operation):
    """`GET /models`."""

    def __init__(self, dialect: Dialect) -> None:
        """Serve the route `openai.models`."""
        super().__init__("openai.models", dialect, cost_bearing=False)

    def read(self, world: World, incoming: Incoming) -> Asked:
        """There is nothing to understand."""
        del world, incoming
        return Asked()

    async def process(self, world: World, asked: Asked, fault: Fault | None) -> Processed:
        """List the models."""
        del asked, fault
        created = world.started_ms // 1000
        models = [{"id": name, "object": "model", "created": created, "owned_by": "simulator"} for name in MODELS]
        return Processed(body=json.dumps({"object": "list", "data": models}).encode())


_PROBLEMS = {
    "error": Problem("server", "The model broke (simulated)."),
    "filter": Problem("moderation", "Your request was rejected by the safety system."),
    "refusal": Problem("moderation", "Your request was rejected by the safety system."),
}


def _images(asked: Asked, usage: Usage) -> Json:
    body = asked.body
    image = base64.b64encode(_png(asked.prompt)).decode()
    image += "A" * max(0, asked.directives.number("long") - len(image))
    return {
        "created": now_ms() // 1000,
        "background": body.get("background", "opaque"),
        "output_format": body.get("output_format", "png"),
        "quality": body.get("quality", "low"),
        "size": body.get("size", "1024x1024"),
        "data": [{"b64_json": image} for _ in range(body.get("n") or 1)],
        "usage": {
            "input_tokens": usage.input,
            "input_tokens_details": {"text_tokens": usage.input, "image_tokens": 0},
            "output_tokens": usage.output,
            "output_tokens_details": {"text_tokens": 0, "image_tokens": usage.output},
            "total_tokens": usage.total,
        },
    }


def _usage(asked: Asked) -> Usage:
    return Usage(answer_to(asked).usage.input, output=_IMAGE_TOKENS * (asked.body.get("n") or 1))


def _png(text: str) -> bytes:
    colour = struct.pack(">I", zlib.crc32(text.encode()))[:3]
    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"\0" + colour)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_png_chunk(*chunk) for chunk in chunks)


def _png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
