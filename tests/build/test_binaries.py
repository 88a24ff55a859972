"""Does each build hold the binaries of its own platform, and nothing of the other's?"""

from __future__ import annotations

import json
import os
import runpy
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import Loader

from tests.support.template import ROOT
from tools.localcloud import local_template

AARCH64, X86_64 = 183, 62  # e_machine in an ELF header
USED = ("dynamodb", "s3", "sqs", "secretsmanager", "events", "logs")
ARCHITECTURES = {"arm64": AARCH64, "x86_64": X86_64}


def libraries(build: Path) -> Mapping[str, bytes]:
    """Name and head of every extension module."""
    return {str(one.relative_to(build)): one.read_bytes()[:20] for one in build.rglob("*.so*")}


def machine(head: bytes) -> int | None:
    """The machine an ELF file is for; None for another format."""
    return struct.unpack_from("<H", head, 18)[0] if head.startswith(b"\x7fELF") else None


def test_the_build_for_aws_holds_arm_binaries_of_python_3_13(builds):
    """Whatever machine it was built on."""
    found = libraries(builds.aws)

    assert any("pydantic_core" in name for name in found)
    assert any("jiter" in name for name in found)
    assert {machine(head) for head in found.values()} == {AARCH64}
    assert all("cpython-313-aarch64" in name or "abi3" in name for name in found)


def test_the_local_build_holds_binaries_of_this_machine(builds):
    """For the interpreter that runs the emulator."""
    python, architecture, _ = local_template.pair()

    found = libraries(builds.local)

    assert any("pydantic_core" in name for name in found)
    assert all(f"cpython-{python.replace('.', '')}-" in name or "abi3" in name for name in found)
    if sys.platform == "linux":
        assert {machine(head) for head in found.values()} == {ARCHITECTURES[architecture]}


@pytest.mark.parametrize("which", ["aws", "local"])
def test_the_providers_layer_repeats_nothing_of_the_core_layer(builds, which):
    """Two copies of a package would make the order of layers matter."""
    build = getattr(builds, which)

    core, providers, code = (
        {one.name for one in (build / layer / "python").iterdir()} - {"__pycache__"}
        for layer in ("CoreLayer", "ProvidersLayer", "CodeLayer")
    )

    assert {"boto3", "pydantic", "aws_lambda_powertools"} <= core
    assert {"openai", "httpx"} <= providers
    assert code == {"breakwater"}
    assert not core & providers


@pytest.mark.parametrize("which", ["aws", "local"])
def test_the_code_layer_carries_the_compiled_policies(builds, which):
    """So Lambda reads JSON and needs no YAML."""
    policies = getattr(builds, which) / "CodeLayer" / "python" / "breakwater" / "policies.json"

    assert json.loads(policies.read_text())


def test_the_code_layer_carries_no_cache_of_a_tool(tmp_path, monkeypatch):
    """Wherever in the package somebody ran it: such a cache once was nine tenths of the layer."""
    package = tmp_path / "shared" / "breakwater"
    for file in (
        "a.py",
        ".mypy_cache/3.11/cache.db",
        "domain/.x/y",
        "domain/__pycache__/b.pyc",
        "domain/b.py",
    ):
        (package / file).parent.mkdir(parents=True, exist_ok=True)
        (package / file).write_text("")
    layers = runpy.run_path(str(ROOT / "layers" / "build.py"))
    monkeypatch.setitem(layers["copy_code"].__globals__, "ROOT", tmp_path)

    layers["copy_code"](tmp_path / "out")

    found = {str(one.relative_to(tmp_path / "out")) for one in (tmp_path / "out").rglob("*") if one.is_file()}
    assert found == {"breakwater/a.py", "breakwater/domain/b.py"}


@pytest.mark.parametrize("which", ["aws", "local"])
def test_the_sdks_descriptions_are_short_and_still_say_what_to_send(builds, which):
    """Each start parses them: no texts, no other services' endpoints, but every operation, member and rule."""
    data = getattr(builds, which) / "CoreLayer" / "python" / "botocore" / "data"
    ours = Loader(extra_search_paths=[str(data)], include_default_search_paths=False)
    theirs = Loader()

    assert not list(data.rglob("*.gz"))
    assert (data / "endpoints.json").stat().st_size < 100_000
    for service in USED:
        short, whole = (one.load_service_model(service, "service-2") for one in (ours, theirs))
        assert short["operations"].keys() == whole["operations"].keys()
        assert {name: members(one) for name, one in short["shapes"].items()} == {
            name: members(one) for name, one in whole["shapes"].items()
        }
        rules = [one.load_service_model(service, "endpoint-rule-set-1")["parameters"].keys() for one in (ours, theirs)]
        assert rules[0] == rules[1]


def members(shape: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a shape is made of, and what must be there."""
    return (
        shape["type"],
        tuple(shape.get("members", ())),
        tuple(shape.get("required", ())),
        tuple(shape.get("enum", ())),
    )


@pytest.mark.parametrize("which", ["aws", "local"])
def test_the_layers_fit_into_lambda(builds, which):
    """250 MB unpacked is the limit for all layers and the function together; start-up wants far less."""
    size = sum(one.stat().st_size for one in getattr(builds, which).rglob("*") if one.is_file())

    assert size < 100_000_000


def test_the_local_layers_have_byte_code(builds):
    """Without it every cold start would compile what it imports."""
    for module in ("CoreLayer/python/boto3", "ProvidersLayer/python/openai", "CodeLayer/python/breakwater"):
        assert list((builds.local / module / "__pycache__").glob("__init__.*.pyc"))


_CALLS = """
import sys
from botocore.config import Config
from botocore.exceptions import EndpointConnectionError
from botocore.session import Session

line = {"timestamp": 1, "message": "m"}
calls = {
    "dynamodb": ("get_item", {"TableName": "t", "Key": {"pk": {"S": "k"}}}),
    "events": ("put_events", {"Entries": [{"Source": "s", "DetailType": "t", "Detail": "{}"}]}),
    "logs": ("put_log_events", {"logGroupName": "g", "logStreamName": "s", "logEvents": [line]}),
    "s3": ("put_object", {"Bucket": "b", "Key": "k", "Body": b"x"}),
    "secretsmanager": ("get_secret_value", {"SecretId": "s"}),
    "sqs": ("send_message", {"QueueUrl": "http://127.0.0.1:9/q", "MessageBody": "m"}),
}
once = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
session = Session()
session.set_credentials("test", "test")
for name in sys.argv[1:]:
    client = session.create_client(name, "us-east-1", endpoint_url="http://127.0.0.1:9", config=once)
    method, given = calls[name]
    try:
        getattr(client, method)(**given)
    except EndpointConnectionError:
        print(name)
session.create_client("s3", "us-east-1", config=once).generate_presigned_url("get_object", {"Bucket": "b", "Key": "k"})
"""


_VENDOR = """
import openai

client = openai.OpenAI(api_key="k", base_url="http://127.0.0.1:9", max_retries=0)
for api in (client.responses, client.images, client.chat.completions, client.batches, client.files, client.webhooks):
    print(type(api).__name__)
for ask in (client.get, lambda path, **more: client.post(path, body={"a": 1}, **more)):
    try:
        ask("/x", cast_to=object)
    except openai.APIConnectionError as error:
        print(type(error).__name__)
"""


def test_the_vendors_package_works_without_the_apis_that_nobody_uses(builds):
    """Ours asks by path; the rest of what a job could be about can still be asked for by name."""
    layers = [builds.local / layer / "python" for layer in ("ProvidersLayer", "CoreLayer")]
    command = [sys.executable, "-c", _VENDOR]
    where = {"PYTHONPATH": os.pathsep.join(map(str, layers))}

    made = subprocess.run(command, env=where, capture_output=True, text=True, check=False)

    assert made.stdout.split() == [
        *("Responses", "Images", "Completions", "Batches", "Files", "Webhooks"),
        *("APIConnectionError", "APIConnectionError"),
    ], made.stderr[-2000:]
    assert not (layers[0] / "openai" / "types" / "beta").exists()
    assert sum(1 for _ in layers[0].rglob("*.py")) < 1_200


def test_every_service_can_still_be_called_with_the_short_descriptions(builds):
    """Up to the wire: what the SDK asks of a description on its way to a request is there."""
    core = builds.local / "CoreLayer" / "python"
    command = [sys.executable, "-c", _CALLS, *USED]

    made = subprocess.run(command, env={"PYTHONPATH": str(core)}, capture_output=True, text=True, check=False)

    assert made.stdout.split() == list(USED), made.stderr[-2000:]
    assert made.returncode == 0, made.stderr[-2000:]
