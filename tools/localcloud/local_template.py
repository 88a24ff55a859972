"""How does the one template become one for this machine?

The literals for runtime and architecture are replaced, and each layer gets a Makefile that names this machine's pair.
Both builds thus read different files and write to different folders: nothing of one can end up in the other.
"""

from __future__ import annotations

import platform
import re
import sys
from pathlib import Path

from tools.localcloud.errors import LocalCloudError

LAYERS = {"CodeLayer": "code", "CoreLayer": "core", "ProvidersLayer": "providers"}
PLATFORMS = {
    ("Linux", "x86_64"): ("x86_64", "x86_64-manylinux_2_28"),
    ("Linux", "aarch64"): ("arm64", "aarch64-manylinux_2_28"),
    ("Darwin", "x86_64"): ("x86_64", "x86_64-apple-darwin"),
    ("Darwin", "arm64"): ("arm64", "aarch64-apple-darwin"),
}


def pair() -> tuple[str, str, str]:
    """This machine's Python version, Lambda's name of its architecture, and uv's name of its platform."""
    here = (platform.system(), platform.machine())
    if here not in PLATFORMS:
        raise LocalCloudError(f"The local cloud runs on Linux and macOS, not on {' '.join(here)}.")
    return (f"{sys.version_info[0]}.{sys.version_info[1]}", *PLATFORMS[here])


def write(root: Path, out: Path) -> None:
    """Write the template and the Makefiles of its layers into `out`."""
    python, architecture, uv_platform = pair()
    out.mkdir(parents=True, exist_ok=True)
    text = (root / "template.yaml").read_text()
    text = _replace(text, r"python3\.13", f"python{python}")
    text = _replace(text, r"\[arm64\]", f"[{architecture}]")
    text = _replace(text, r"(?m)CodeUri: (functions/\S+)", rf"CodeUri: {root}/\1")
    for layer, kind in LAYERS.items():
        folder = out / "layers" / kind
        folder.mkdir(parents=True, exist_ok=True)
        command = f'"{sys.executable}" "{root}/layers/build.py" {kind} --python {python} --platform {uv_platform}'
        (folder / "Makefile").write_text(f'build-{layer}:\n\t@{command} "$(ARTIFACTS_DIR)"\n')
        text = _replace(text, rf"(?s)(\n  {layer}:\n.*?ContentUri:) \S+", rf"\1 {folder}")
    # AWS asks a role for the statements of a PartiQL batch, the emulator for the name of the request.
    named = r'\1- Effect: Allow\n\2Action: ["dynamodb:BatchExecuteStatement"]\n\2Resource: "*"\n\1- Effect'
    text = _replace(text, r"(?m)^( +)- Effect(?=: Allow[^\n]*\n( +)Action: \[[^\n]*PartiQL)", named)
    (out / "template.yaml").write_text(text)


def _replace(text: str, pattern: str, by: str) -> str:
    changed, count = re.subn(pattern, by, text)
    if not count:
        raise LocalCloudError(f"template.yaml has changed its form: nothing in it matches {pattern!r}")
    return changed
