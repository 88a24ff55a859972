"""What must an endpoint of a provider be able to do?"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod

from .dialect import Dialect
from .directives import Directives, UnknownDirectiveError, read_directives
from .faults import Fault
from .shapes import Asked, Incoming, Json, Problem, Processed
from .world import World

_MOST_PAIRS = 16
_LONGEST_KEY = 64
_LONGEST_VALUE = 512


class Operation(ABC):
    """One endpoint: reads a request and does its work; the exchange does all the rest."""

    def __init__(self, route: str, dialect: Dialect, *, cost_bearing: bool = True) -> None:
        """Name the route in faults and ledger, and say whether its work is paid for."""
        self.route = route
        self.dialect = dialect
        self.cost_bearing = cost_bearing

    @abstractmethod
    def read(self, world: World, incoming: Incoming) -> Asked:
        """Understand a request, or raise a Problem."""

    @abstractmethod
    async def process(self, world: World, asked: Asked, fault: Fault | None) -> Processed:
        """Do the work; the fault, if there is one, is for background work to heed."""

    def stream_error(self, error: Json | None) -> bytes:
        """Frame an error in the middle of a stream."""
        return self.dialect.stream_error(error)


def json_body(incoming: Incoming) -> Json:
    """Read the body as a JSON object."""
    try:
        body = json.loads(incoming.raw)
    except ValueError as error:
        raise Problem("bad_request", "We could not parse the JSON body of your request.") from error
    if not isinstance(body, dict):
        raise Problem("bad_request", "The body of your request must be a JSON object.")
    return body


def directives_in(text: str) -> Directives:
    """Collect the directives of a request; a script with a mistake is the caller's fault."""
    try:
        return read_directives(text)
    except UnknownDirectiveError as error:
        raise Problem("bad_request", str(error)) from error


def model_in(body: Json) -> str:
    """Return the model asked for; names that start with `missing-` do not exist."""
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise Problem("bad_request", "you must provide a model parameter", "model")
    if model.startswith("missing-"):
        raise Problem("no_model", f"The model `{model}` does not exist.", "model")
    return model


def limit_in(body: Json, *names: str) -> int | None:
    """Return the first token limit given under any of these names."""
    for name in names:
        limit = body.get(name)
        if limit is None:
            continue
        if not isinstance(limit, int) or limit < 1:
            raise Problem("bad_request", f"{name} must be a positive integer.", name)
        return limit
    return None


def metadata_in(body: Json, name: str = "metadata") -> dict[str, str]:
    """Return the metadata, held to 16 pairs of 64 and 512 characters."""
    metadata = body.get(name) or {}
    if not isinstance(metadata, dict):
        raise Problem("bad_request", f"{name} must be an object.", name)
    if len(metadata) > _MOST_PAIRS:
        raise Problem("bad_request", f"{name} may have at most {_MOST_PAIRS} pairs.", name)
    for key, value in metadata.items():
        if not isinstance(value, str) or len(value) > _LONGEST_VALUE or len(key) > _LONGEST_KEY:
            raise Problem("bad_request", f"{name}.{key[:_LONGEST_KEY]} is not valid.", name)
    return metadata


def text_in(content: object) -> str:
    """Return the text of a message's content: plain, or all text parts of a list."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text", "") for part in content if isinstance(part, dict)]
        return " ".join(part for part in parts if isinstance(part, str))
    return ""
