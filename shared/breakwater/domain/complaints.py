"""What is wrong with a file, in words its author can act on? Pydantic's errors as path and text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

_TEXTS: Mapping[str, str] = {
    "missing": "is missing; add it",
    "greater_than_equal": "must be >= {ge}, got {got}",
    "less_than_equal": "must be <= {le}, got {got}",
    "literal_error": "must be one of {expected}, got {got}",
    "enum": "must be one of {expected}, got {got}",
    "int_type": "must be a whole number, got {got}",
    "int_from_float": "must be a whole number, got {got}",
    "int_parsing": "must be a whole number, got {got}",
    "bool_type": "must be true or false, got {got}",
    "string_type": "must be text, got {got}",
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": "must match {pattern}, got {got}",
    "tuple_type": "must be a list, got {got}",
    "model_type": "must be a mapping of keys, got {got}",
    "dataclass_type": "must be a mapping of keys, got {got}",
    "date_from_datetime_parsing": "must be a date like 2026-11-30, got {got}",
    "date_type": "must be a date like 2026-11-30, got {got}",
}


def complaints(kind: type, error: ValidationError) -> Iterator[tuple[str, str]]:
    """Path and text of everything that is wrong, in the order of the file's model."""
    for one in error.errors(include_url=False):
        yield path_of(one["loc"]), _text(kind, one)


def path_of(loc: tuple[int | str, ...]) -> str:
    """A path as people write it: `fallbacks[0].route`."""
    path = ""
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path or "file"


def _text(kind: type, one: ErrorDetails) -> str:
    if one["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return _unknown_key(kind, one["loc"])
    if one["type"] == "value_error":
        return str(one["ctx"]["error"])
    template = _TEXTS.get(one["type"])
    return template.format(got=_shown(one["input"]), **one.get("ctx", {})) if template else one["msg"]


def _shown(value: Any) -> str:
    return "nothing" if value is None else repr(value)[:60]


def _unknown_key(kind: type, loc: tuple[int | str, ...]) -> str:
    known = tuple(_fields(_model_at(kind, loc[:-1])))
    near = get_close_matches(str(loc[-1]), known, n=1)
    advice = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
    return f"is not a known key; {advice}"


def _model_at(kind: type, loc: tuple[int | str, ...]) -> type:
    for part in loc:
        if isinstance(part, str):
            kind = _models(_fields(kind)[part])[0]
    return kind


def _fields(kind: type) -> dict[str, Any]:
    """The keys of a model, and what they hold."""
    if issubclass(kind, BaseModel):
        return {name: one.annotation for name, one in kind.model_fields.items()}
    hints = get_type_hints(kind)
    return {one.name: hints[one.name] for one in fields(kind)}  # type: ignore[arg-type] # else it is a dataclass


def _models(annotation: Any) -> list[type]:
    """The models an annotation speaks of, through unions and tuples."""
    if get_origin(annotation) in (Union, UnionType, tuple):
        return [model for inner in get_args(annotation) for model in _models(inner)]
    known = isinstance(annotation, type) and (issubclass(annotation, BaseModel) or is_dataclass(annotation))
    return [annotation] if known else []
