"""How is a file with a list of named entries read? Schedules and webhook endpoints are such files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from breakwater.domain.errors import InvalidPolicy

EntryName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]


class Strict(BaseModel):
    """A frozen value that refuses keys it does not know. Apart from the policies' own, which take longer to import."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Entry(Strict):
    """One entry, known by its name."""

    name: EntryName


E = TypeVar("E", bound=Entry)


def load_entries(kind: type[E], raw: Any, key: str) -> dict[str, E]:
    """The entries by name, from a file's mapping or from the list alone.

    Raises `InvalidPolicy` with every problem, one a line, and the path of the first as `field`.
    """
    listed = raw.get(key, []) if isinstance(raw, Mapping) else raw
    if not isinstance(listed, list | tuple):
        raise InvalidPolicy(f"{key}: must be a list", field=key)
    entries: dict[str, E] = {}
    problems: list[tuple[str, str]] = []
    for number, data in enumerate(listed):
        where = f"{key}[{number}]"
        try:
            entry = kind.model_validate(data)
        except ValidationError as error:
            problems += ((_join(where, path), text) for path, text in _complaints(kind, error))
            continue
        if entry.name in entries:
            problems.append((f"{where}.name", f"{entry.name} stands twice"))
        entries[entry.name] = entry
    if problems:
        raise InvalidPolicy("\n".join(f"{path}: {text}" for path, text in problems), field=problems[0][0])
    return entries


def _join(where: str, path: str) -> str:
    return where if path == "file" else f"{where}.{path}"


def _complaints(kind: type[Entry], error: ValidationError) -> Iterator[tuple[str, str]]:
    from breakwater.domain.complaints import complaints  # noqa: PLC0415 - only needed when a file is wrong

    return complaints(kind, error)
