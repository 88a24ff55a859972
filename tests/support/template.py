"""What does template.yaml say? Parsed as data: an intrinsic function becomes a mapping, as in JSON."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = ROOT / "template.yaml"


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short forms."""


def _intrinsic(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    name = suffix if suffix in {"Ref", "Condition"} else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
        return {name: value.split(".", 1) if suffix == "GetAtt" else value}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    return {name: loader.construct_mapping(node, deep=True)}


_Loader.add_multi_constructor("!", _intrinsic)


@functools.cache
def template() -> Mapping[str, Any]:
    """The whole template."""
    parsed: Mapping[str, Any] = yaml.load(TEMPLATE.read_text(), _Loader)  # noqa: S506 - a SafeLoader
    return parsed


def resources(kind: str) -> dict[str, Mapping[str, Any]]:
    """Properties of every resource of a type, by logical id."""
    found = template()["Resources"].items()
    return {name: one.get("Properties", {}) for name, one in found if one["Type"] == kind}


def functions() -> dict[str, Mapping[str, Any]]:
    """Properties of every function, the global ones merged in."""
    shared = template()["Globals"]["Function"]
    merged = {}
    for name, own in resources("AWS::Serverless::Function").items():
        both = {**shared, **own, "Layers": [*shared["Layers"], *own.get("Layers", [])]}
        variables = {**shared["Environment"]["Variables"], **own["Environment"]["Variables"]}
        merged[name] = {**both, "Environment": variables}
    return merged


def target(value: Any) -> str:
    """The logical id that a `Ref`, `GetAtt` or `Sub` names."""
    if "Ref" in value:
        return str(value["Ref"])
    if "Fn::GetAtt" in value:
        return str(value["Fn::GetAtt"][0])
    named = re.findall(r"\$\{([A-Za-z0-9]+)[.}]", str(value["Fn::Sub"]))
    return str(named[0]) if named else ""


def statements(role: str) -> Iterator[tuple[list[str], list[Any]]]:
    """Actions and resources of every statement of a role."""
    for policy in resources("AWS::IAM::Role")[role]["Policies"]:
        for one in policy["PolicyDocument"]["Statement"]:
            yield _listed(one["Action"]), _listed(one["Resource"])


def allowed(role: str) -> set[tuple[str, str]]:
    """Pairs of action and logical id that a role may use; an index counts as its table."""
    return {(action, target(one)) for actions, named in statements(role) for action in actions for one in named}


def role_of(function: str) -> str:
    """The role of a function."""
    return target(functions()[function]["Role"])


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
