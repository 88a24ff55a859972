"""How does the content of a layer come to be, for a platform that need not be this one?

    layers/build.py core|providers|code --python 3.13 --platform aarch64-manylinux_2_28 OUT

Dependencies are unpacked from wheels chosen for that interpreter and platform (plain pip
would judge markers by this machine), then compiled to byte code with that interpreter if
there is one. SAM calls this through the Makefile of each layer. Standard library only.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
UV = ROOT / ".local" / "venvs" / "uv" / "bin" / "uv"
DEV_PYTHON = ROOT / ".venv" / "bin" / "python"
CORE = ROOT / "layers" / "dependencies" / "core" / "requirements.txt"
LOCKS = {"core": CORE, "providers": CORE.parent.parent / "providers" / "requirements.txt"}
# botocore describes every AWS service; the bundle talks to these.
SERVICES = frozenset(
    {"cloudwatch", "dynamodb", "events", "lambda", "logs", "s3", "scheduler", "secretsmanager", "sqs", "sts"}
)
# The vendor's package describes every API of the vendor's; ours calls paths by name and reads JSON, and importing the
# package needs none of these. They are two of three files of the layer, which each new environment has to unpack.
UNUSED_APIS = (
    *("admin", "audio", "beta", "containers", "conversations", "evals", "fine_tuning", "live", "realtime"),
    *("safety", "skills", "uploads", "vector_stores"),
)


def main() -> None:
    """Build one layer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layer", choices=[*LOCKS, "code"])
    parser.add_argument("--python", required=True, help="version of the interpreter it is for")
    parser.add_argument("--platform", required=True, help="platform it is for, as uv names it")
    parser.add_argument("out", type=Path)
    wanted = parser.parse_args()
    if not UV.exists() or not DEV_PYTHON.exists():
        sys.exit("The layers are built with the project's own environments: run `make setup` first.")
    target = wanted.out / "python"
    if wanted.layer == "code":
        copy_code(target)
    else:
        install(LOCKS[wanted.layer], target, wanted.python, wanted.platform)
        trim(target)
    compile_to_byte_code(target, wanted.python)


def copy_code(target: Path) -> None:
    """The package and, compiled from YAML so that Lambda needs no parser, its policies."""
    source = ROOT / "shared"
    ignore = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")  # tools leave caches wherever they are run
    shutil.copytree(source / "breakwater", target / "breakwater", ignore=ignore)
    if not (source / "policies").is_dir():
        return
    if not (source / "breakwater" / "policy_yaml.py").is_file():
        sys.exit("shared/policies can't be compiled: shared/breakwater/policy_yaml.py is missing.")
    out = target / "breakwater" / "policies.json"
    command = [DEV_PYTHON, "-m", "breakwater.policy_yaml", "compile", source / "policies", out]
    run(command, PYTHONPATH=str(source), PYTHONDONTWRITEBYTECODE="1")


def install(lock: Path, target: Path, python: str, platform: str) -> None:
    """Unpack the locked wheels for that interpreter and platform, and no source ever."""
    command = [UV, "pip", "install", "--quiet", "--require-hashes", "--no-deps", "--only-binary", ":all:"]
    command += ["--link-mode", "copy", "--python-version", python, "--python-platform", platform]
    run([*command, "--python", DEV_PYTHON, "--target", target, "--requirement", lock], UV_PYTHON_DOWNLOADS="never")


def trim(target: Path) -> None:
    """Leave out what no function reads: other services and APIs, command line tools, examples."""
    for models in (target / "botocore" / "data").glob("*/"):
        if models.name not in SERVICES:
            shutil.rmtree(models)
    shorten(target / "botocore" / "data")
    for part in ("types", "resources"):
        for api in UNUSED_APIS:
            shutil.rmtree(target / "openai" / part / api, ignore_errors=True)
    for unused in ("bin", "boto3/examples", "boto3/data", ".lock", ".gitignore", "CACHEDIR.TAG"):
        path = target / unused
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    # These name the folder of the build, so that two equal builds would differ.
    for record in target.glob("*.dist-info"):
        for name in ("RECORD", "direct_url.json", "uv_cache.json", "INSTALLER", "REQUESTED"):
            (record / name).unlink(missing_ok=True)


def shorten(data: Path) -> None:
    """Leave out of botocore's descriptions what nobody reads at run time; each start parses them.

    That is the documentation, other services' endpoints, and the compression (a layer is compressed as a whole).
    """
    for packed in data.rglob("*.json.gz"):
        write_json(packed.with_suffix(""), shortened(json.loads(gzip.decompress(packed.read_bytes()))))
        packed.unlink()
    if (data / "endpoints.json").is_file():
        endpoints = json.loads((data / "endpoints.json").read_bytes())
        for partition in endpoints["partitions"]:
            partition["services"] = {name: one for name, one in partition["services"].items() if name in SERVICES}
        write_json(data / "endpoints.json", endpoints)


def shortened(description: Any) -> Any:
    """One description without its texts, but for those that the SDK asks for by name."""
    found = undocumented(description)
    for one in found.get("clientContextParams", {}).values():
        one["documentation"] = ""
    return found


def undocumented(value: Any) -> Any:
    """The same description without its texts; a member that is called `documentation` is no text, and stays."""
    if isinstance(value, dict):
        kept = (item for item in value.items() if item[0] != "documentation" or not isinstance(item[1], str))
        return {name: undocumented(inner) for name, inner in kept}
    return [undocumented(inner) for inner in value] if isinstance(value, list) else value


def write_json(file: Path, value: Any) -> None:
    """Without a blank."""
    file.write_text(json.dumps(value, separators=(",", ":")))


def compile_to_byte_code(target: Path, python: str) -> None:
    """Without byte code an import takes twice as long: Lambda can't write it next to a layer."""
    interpreter = find_interpreter(python)
    if interpreter is None:
        print(f"warning: no python{python} here, so the layer has no byte code and starts more slowly", file=sys.stderr)
        return
    # Unchecked: unpacking a layer does not keep the times that a check would compare.
    options = ["-q", "-j", "0", "--invalidation-mode", "unchecked-hash", "-s", target, "-p", "/opt/python"]
    run([interpreter, "-m", "compileall", *options, target])


def find_interpreter(python: str) -> str | None:
    """An interpreter of exactly this version that really starts (a shim may not)."""
    for candidate in (sys.executable, str(DEV_PYTHON), shutil.which(f"python{python}"), *_known_to_uv(python)):
        if candidate and _version(candidate) == python:
            return candidate
    return None


def _known_to_uv(python: str) -> list[str]:
    command = [UV, "python", "find", "--no-python-downloads", "--system", python]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()


def _version(interpreter: str) -> str:
    show = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([interpreter, "-c", show], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def run(command: list[str | Path], **environment: str) -> None:
    """Run a step of the build and stop the build when it fails."""
    done = subprocess.run([str(part) for part in command], env={**os.environ, **environment}, check=False)
    if done.returncode:
        sys.exit(f"{Path(command[0]).name} failed with status {done.returncode}")


if __name__ == "__main__":
    main()
