"""What do the policy files say? Reads a folder of YAML into one checked catalogue, and compiles it to JSON.

`routes.yaml` holds the routes, `schedules.yaml` the schedules and `endpoints.yaml` the webhook endpoints (both may be
missing), every other `*.yaml` one workflow.
Used when a bundle is built and by the command line; Lambda reads the compiled JSON and needs no YAML.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from breakwater.domain.checked import Kind, checked
from breakwater.domain.complaints import complaints
from breakwater.domain.crosscheck import Finding, findings
from breakwater.domain.endpoint_entries import load_endpoints
from breakwater.domain.errors import InvalidPolicy
from breakwater.domain.policy import Policy
from breakwater.domain.routes import Catalogue, Route
from breakwater.domain.schedule_request import unfit
from breakwater.domain.schedules import load_schedules
from breakwater.domain.values import dataclass

ROUTES, SCHEDULES, ENDPOINTS = "routes.yaml", "schedules.yaml", "endpoints.yaml"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A catalogue that may be used, and what is doubtful about it."""

    catalogue: Catalogue
    warnings: tuple[str, ...] = ()


class _Loader(yaml.SafeLoader):
    """Safe YAML that refuses a key given twice, and leaves dates as text."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the name is PyYAML's
        first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None,
                    None,
                    f"key {key.value!r} stands twice",
                    key.start_mark,
                )
            seen.add(getattr(key, "value", "") if isinstance(key, yaml.ScalarNode) else "")
        return super().construct_mapping(node, deep=deep)


def load(directory: Path | str, today: dt.date | None = None) -> Catalogue:
    """The catalogue of a folder. Raises InvalidPolicy with every problem found."""
    return load_all(directory, today).catalogue


def load_all(directory: Path | str, today: dt.date | None = None) -> Loaded:
    """The catalogue and the warnings. Raises InvalidPolicy with every problem found, one a line."""
    folder = Path(directory)
    if not (folder / ROUTES).is_file():
        raise InvalidPolicy(f"{folder / ROUTES}: is missing; it lists the routes", field=ROUTES)
    problems: list[str] = []
    catalogue, files = _read(folder, problems)
    _refuse(problems)
    found = findings(catalogue, today)
    _refuse([_line(one, files) for one in found if not one.warning])
    return Loaded(catalogue, tuple(_line(one, files) for one in found if one.warning))


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        file, path, _ = problems[0].split(": ", 2)
        raise InvalidPolicy("\n".join(problems), field=path, rule=problems[0], problems=tuple(problems), file=file)


def _line(one: Finding, files: dict[str, str]) -> str:
    return f"{files[one.workflow] if one.workflow else ROUTES}: {one.path}: {one.text}"


def _read(folder: Path, problems: list[str]) -> tuple[Catalogue, dict[str, str]]:
    table = _parse(folder / ROUTES, problems)
    catalogue = Catalogue(default_route=table.get("default_route"))
    problems.extend(
        f"{ROUTES}: {unknown}: is not a known key; known are default_route and routes"
        for unknown in sorted(set(table) - {"default_route", "routes"})
    )
    for key, data in _entries(table, problems):
        route = _model(Route, {**data, "route_key": key}, f"{ROUTES}: routes.{key}", problems)
        if isinstance(route, Route):
            catalogue.routes[route.route_key] = route
    catalogue.schedules = _listed(folder / SCHEDULES, problems)
    catalogue.endpoints = _listed(folder / ENDPOINTS, problems)
    files = _policies(folder, catalogue, problems)
    problems.extend(_of_list(ENDPOINTS, lambda: load_endpoints(catalogue.endpoints)))
    problems.extend(_of_list(SCHEDULES, lambda: _schedules(catalogue)))
    return catalogue, files


def _entries(table: dict[str, Any], problems: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    routes = table.get("routes")
    if not isinstance(routes, dict) or not routes:
        problems.append(f"{ROUTES}: routes: must map at least one route key to its route")
        return
    for key, data in routes.items():
        if isinstance(data, dict):
            yield str(key), data
        else:
            problems.append(f"{ROUTES}: routes.{key}: must be a mapping")


def _listed(path: Path, problems: list[str]) -> list[Any]:
    """The list under the key of the file's own name; empty where there is no such file."""
    if not path.is_file():
        return []
    entries = _parse(path, problems).get(path.stem, [])
    if isinstance(entries, list):
        return entries
    problems.append(f"{path.name}: {path.stem}: must be a list")
    return []


def _of_list(name: str, loading: Callable[[], object]) -> Iterator[str]:
    """What is wrong with a file of entries, in its own words."""
    try:
        loading()
    except InvalidPolicy as error:
        yield from (f"{name}: {line}" for line in str(error).splitlines())


def _schedules(catalogue: Catalogue) -> None:
    """Raises InvalidPolicy for a schedule that does not read, or whose input could never become a job."""
    wrong = list(unfit(load_schedules(catalogue.schedules, catalogue.workflows()).values()))
    if wrong:
        raise InvalidPolicy("\n".join(wrong))


def _policies(folder: Path, catalogue: Catalogue, problems: list[str]) -> dict[str, str]:
    files: dict[str, str] = {}
    for path in sorted(folder.glob("*.y*ml")):
        if path.name in (ROUTES, SCHEDULES, ENDPOINTS):
            continue
        policy = _model(Policy, _parse(path, problems), path.name, problems)
        if not isinstance(policy, Policy):
            continue
        if policy.workflow in files:
            problems.append(f"{path.name}: workflow: {policy.workflow} is in {files[policy.workflow]} already")
        catalogue.policies[policy.workflow], files[policy.workflow] = policy, path.name
    return files


def _parse(path: Path, problems: list[str]) -> dict[str, Any]:
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506 - it is the safe loader, stricter
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "file"
        problems.append(f"{path.name}: {where}: {getattr(error, 'problem', None) or 'is not readable YAML in UTF-8'}")
        return {}
    if isinstance(data, dict):
        return data
    problems.append(f"{path.name}: file: must be a mapping of keys")
    return {}


def _model(kind: type[Kind], data: dict[str, Any], where: str, problems: list[str]) -> Kind | None:
    if not data:
        return None  # said already
    try:
        return checked(kind, data)
    except ValidationError as error:
        joint = ": " if where.endswith((".yaml", ".yml")) else "."
        problems.extend(f"{where}{joint}{path}: {text}" for path, text in complaints(kind, error))
        return None


def main(argv: Sequence[str] | None = None) -> int:
    """`compile SRC OUT.json`: 0 when written, 1 with every problem on stderr."""
    parser = argparse.ArgumentParser(prog="python -m breakwater.policy_yaml", description="Compile policies to JSON.")
    commands = parser.add_subparsers(required=True)
    compiling = commands.add_parser("compile")
    compiling.add_argument("source", type=Path)
    compiling.add_argument("out", type=Path)
    given = parser.parse_args(argv)
    try:
        catalogue = load(given.source)
    except InvalidPolicy as error:
        sys.stderr.write(f"{error}\n")
        return 1
    given.out.write_bytes(catalogue.dump())
    return 0


if __name__ == "__main__":
    sys.exit(main())
