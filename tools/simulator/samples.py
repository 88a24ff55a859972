"""Which value would satisfy a JSON schema, always the same one?"""

from __future__ import annotations

from typing import Any

from .shapes import Json

_DEEPEST = 8
_FORMATS = {
    "date": "2026-01-02",
    "date-time": "2026-01-02T03:04:05Z",
    "email": "sim@example.com",
    "uri": "https://example.com/sim",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def sample(schema: Json, text: str = "sim") -> Any:
    """Build a value for the schema; strings without other constraints become `text`."""
    return _value(schema, schema, text, 0)


def _value(schema: Json, root: Json, text: str, depth: int) -> Any:
    schema = _resolved(schema, root)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = _kind(schema)
    if kind == "object":
        return _object(schema, root, text, depth)
    if kind == "array":
        return _array(schema, root, text, depth)
    return _scalar(kind, schema, text)


def _resolved(schema: Json, root: Json) -> Json:
    for _ in range(_DEEPEST):
        reference = schema.get("$ref")
        choices = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
        if isinstance(reference, str) and reference.startswith("#/"):
            schema = _pointed(root, reference)
        elif choices:
            schema = choices[0]
        else:
            break
    return schema


def _pointed(root: Json, reference: str) -> Json:
    node: Json = root
    for part in reference[2:].split("/"):
        node = node.get(part, {})
    return node


def _kind(schema: Json) -> str:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "null")
    return str(kind).lower()


def _object(schema: Json, root: Json, text: str, depth: int) -> Json:
    required = set(schema.get("required", ()))
    return {
        name: _value(part, root, text, depth + 1)
        for name, part in schema.get("properties", {}).items()
        if name in required or depth < _DEEPEST
    }


def _array(schema: Json, root: Json, text: str, depth: int) -> list[Any]:
    count = int(schema.get("minItems", 1 if depth < _DEEPEST else 0))
    return [_value(schema.get("items", {}), root, text, depth + 1) for _ in range(count)]


def _scalar(kind: str, schema: Json, text: str) -> Any:
    if kind in {"integer", "number"}:
        return schema.get("minimum", schema.get("maximum", 1))
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    value = _FORMATS.get(schema.get("format", ""), text)
    return value[: schema.get("maxLength", len(value))].ljust(schema.get("minLength", 0), "x")
