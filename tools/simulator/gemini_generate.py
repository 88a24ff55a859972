"""How does Gemini's generateContent look?"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from . import sse
from .answers import Answer, answer_to, pieces
from .dialect import Dialect
from .directives import without_directives
from .faults import Fault
from .operation import Operation, directives_in, json_body, limit_in, text_in
from .shapes import Asked, Incoming, Json, Problem, Processed, Tool, Usage, new_id
from .world import World

_FINISH = {"stop": "STOP", "tool": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
_METHODS = {"generateContent": False, "streamGenerateContent": True}


class GenerateContent(Operation):
    """`POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`, also under /v1."""

    def __init__(self, dialect: Dialect) -> None:
        """Serve the route `gemini.generate`."""
        super().__init__("gemini.generate", dialect)

    def read(self, world: World, incoming: Incoming) -> Asked:
        """Understand path and body."""
        del world
        model, _, method = incoming.params["call"].rpartition(":")
        if method not in _METHODS:
            raise Problem("not_found", f"The method {method!r} is not found.")
        if model.startswith("missing-"):
            raise Problem("no_model", f"models/{model} is not found for API version v1beta.")
        body = json_body(incoming)
        config = body.get("generationConfig") or {}
        texts = _texts(body)
        system = (body.get("systemInstruction") or {}).get("parts")
        text = "\n".join((text_in(system), *texts))
        return Asked(
            model=model,
            prompt=without_directives(texts[-1]),
            text=text,
            metadata={k: str(v) for k, v in (body.get("labels") or {}).items()},
            directives=directives_in(text),
            stream=_METHODS[method] and incoming.query.get("alt") == "sse",
            tools=_tools(body),
            schema=config.get("responseJsonSchema") or config.get("responseSchema"),
            max_tokens=limit_in(config, "maxOutputTokens"),
            body={**body, "listed": _METHODS[method]},
        )

    async def process(self, world: World, asked: Asked, fault: Fault | None) -> Processed:
        """Answer; without `alt=sse` a stream is a list."""
        del world, fault
        answer, response_id = answer_to(asked), new_id("")
        chunks = _chunks(answer, response_id)
        if asked.stream:
            frames = self._frames(asked, answer, chunks)
            return Processed(frames=frames, provider_id=response_id, usage=answer.usage)
        if answer.finish == "error":
            status, body = self.dialect.refusal(Problem("server", "An internal error occurred."))
            return Processed(status, json.dumps(body).encode(), provider_id=response_id)
        whole = chunks if asked.body["listed"] else _reply(answer, response_id)
        return Processed(body=json.dumps(whole).encode(), provider_id=response_id, usage=answer.usage)

    async def _frames(self, asked: Asked, answer: Answer, chunks: list[Json]) -> AsyncIterator[bytes]:
        async for frame in sse.paced(map(sse.data, chunks), asked.directives.number("pace")):
            yield frame
        if answer.finish == "error":
            yield self.dialect.stream_error(None)


def _texts(body: Json) -> list[str]:
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        raise Problem("bad_request", "* GenerateContentRequest.contents: contents is not specified")
    return [text_in(each.get("parts")) for each in contents if isinstance(each, dict)]


def _tools(body: Json) -> tuple[Tool, ...]:
    last = body["contents"][-1].get("parts") or ()
    if any("functionResponse" in part for part in last):
        return ()
    return tuple(
        Tool(str(each["name"]), each.get("parametersJsonSchema") or each.get("parameters") or {})
        for tool in body.get("tools") or ()
        for each in tool.get("functionDeclarations") or ()
    )


def _reply(answer: Answer, response_id: str) -> Json:
    about = {"modelVersion": answer.model, "responseId": response_id}
    if answer.finish == "filter":
        feedback = {"blockReason": "PROHIBITED_CONTENT"}
        usage = {"promptTokenCount": answer.usage.input, "totalTokenCount": answer.usage.input}
        return {"promptFeedback": feedback, "usageMetadata": usage, **about}
    parts = _parts(answer)
    candidate: Json = {"finishReason": _FINISH.get(answer.finish, "OTHER"), "index": 0}
    if parts:
        candidate["content"] = {"parts": parts, "role": "model"}
    return {"candidates": [candidate], "usageMetadata": _usage(answer.usage), **about}


def _parts(answer: Answer) -> list[Json]:
    if answer.tool:
        given = json.loads(answer.tool.arguments)
        return [{"functionCall": {"name": answer.tool.name, "args": given}}]
    if answer.finish == "refusal":
        return []
    return [{"text": answer.text}]


def _chunks(answer: Answer, response_id: str) -> list[Json]:
    whole = _reply(answer, response_id)
    if answer.tool or answer.finish in {"filter", "refusal", "error"}:
        return [] if answer.finish == "error" else [whole]
    chunks = []
    for piece in pieces(answer.text) or [""]:
        content = {"parts": [{"text": piece}], "role": "model"}
        chunks.append({**whole, "candidates": [{"content": content, "index": 0}]})
    chunks[-1]["candidates"][0]["finishReason"] = whole["candidates"][0]["finishReason"]
    return chunks


def _usage(usage: Usage) -> Json:
    counts: Json = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": usage.output - usage.reasoning,
        "totalTokenCount": usage.total,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": usage.input}],
    }
    if usage.reasoning:
        counts["thoughtsTokenCount"] = usage.reasoning
    if usage.cached:
        counts["cachedContentTokenCount"] = usage.cached
    return counts
