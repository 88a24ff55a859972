"""Which functions are there, with which layers and variables? As template.yaml says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
_GET = {"requestContext": {"http": {"method": "GET", "path": "/none"}, "authorizer": {"lambda": {"owner_key": "o"}}}}
# Asks for nothing that needs a network, but everything is built for it.
_EVENTS: Mapping[str, Mapping[str, Any]] = {
    "AuthorizerFunction": {"headers": {}},
    "WebhookFunction": {**_GET, "pathParameters": {"endpoint": "none"}, "headers": {}},
    "SchedulerFunction": {},
    "SweepFunction": {},
}
_QUEUES: Mapping[str, Any] = {"Records": []}


@dataclass(frozen=True, slots=True)
class Function:
    """What Lambda would start."""

    name: str
    code: Path
    layers: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    event: Mapping[str, Any] = field(default_factory=dict)
    memory_mb: int = 1024

    @classmethod
    def naive(cls, code: Path) -> Function:
        """The comparison: one handler that imports everything."""
        return cls("naive", code, ("CodeLayer", "CoreLayer", "ProvidersLayer"), event=_GET)


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short forms."""


def _intrinsic(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        return {suffix: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {suffix: loader.construct_sequence(node, deep=True)}
    assert isinstance(node, yaml.MappingNode)  # noqa: S101 - YAML has no fourth kind
    return {suffix: loader.construct_mapping(node, deep=True)}


_Loader.add_multi_constructor("!", _intrinsic)


def functions() -> tuple[Function, ...]:
    """Every function of the template, in its order."""
    template = yaml.load((ROOT / "template.yaml").read_text(), _Loader)  # noqa: S506 - a SafeLoader
    parameters = {name: str(one.get("Default", "")) for name, one in template["Parameters"].items()}
    shared = template["Globals"]["Function"]
    return tuple(
        _function(name, one["Properties"], shared, parameters)
        for name, one in template["Resources"].items()
        if one["Type"] == "AWS::Serverless::Function"
    )


def _function(name: str, own: Mapping[str, Any], shared: Mapping[str, Any], parameters: Mapping[str, str]) -> Function:
    variables = {**shared["Environment"]["Variables"], **own["Environment"]["Variables"]}
    layers = tuple(str(one["Ref"]) for one in (*shared["Layers"], *own.get("Layers", ())))
    return Function(
        name,
        ROOT / own["CodeUri"],
        layers,
        {key: _value(key, value, parameters) for key, value in variables.items()},
        _EVENTS.get(name, _QUEUES if _reads_queue(own) else _GET),
        int(own["MemorySize"]),
    )


def _reads_queue(own: Mapping[str, Any]) -> bool:
    return any(one["Type"] == "SQS" for one in own.get("Events", {}).values())


def _value(name: str, value: Any, parameters: Mapping[str, str]) -> str:
    """A made-up value in the place of what a deploy would fill in."""
    if not isinstance(value, Mapping):
        return str(value)
    if value.get("Ref") in parameters:
        return parameters[str(value["Ref"])]
    return f"https://sqs.us-east-1.amazonaws.com/000000000000/{name.lower()}" if name.endswith("_URL") else name.lower()


_FUNCTIONS = {
    "admission": "AdmissionFunction",
    "webhook": "WebhookFunction",
    "background": "WorkerBackgroundFunction",
    "interactive": "WorkerInteractiveFunction",
    "completion": "CompletionFunction",
    "effects": "EffectsFunction",
}


def memory_gb(invocation: str) -> float:
    """What the template gives the function of an invocation, named as in the figures: `background: job`."""
    return _memory_mb()[_FUNCTIONS[invocation.partition(":")[0]]] / 1024


@cache
def _memory_mb() -> Mapping[str, int]:
    return {one.name: one.memory_mb for one in functions()}
