"""Does each handler start with nothing but its function and its layers on the path, as in Lambda?

The emulator would not notice a package that is missing from a layer, since its functions see what is installed beside
it. Here an isolated interpreter sees the standard library and the layers only. Nothing may be opened and no variable
may be needed on import: that happens when the first event comes.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.template import ROOT, functions, target

IMPORT = """
import sys
allowed = sys.argv[1:]
sys.path[:0] = allowed
stdlib = [path for path in sys.path if path not in allowed]

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen"):
        raise RuntimeError(f"importing the handler causes {event} {arguments}")

sys.addaudithook(refuse)
import app
assert callable(app.handler)
for name, module in sorted(sys.modules.items()):
    file = getattr(module, "__file__", None)
    assert file is None or file.startswith(tuple(allowed + stdlib)), f"{name} comes from {file}"
    assert "site-packages" not in (file or ""), f"{name} comes from {file}"
"""


@pytest.mark.parametrize("function", sorted(functions()))
def test_a_handler_imports_from_its_function_and_its_layers_alone(builds, function):
    """Every package it imports is in a layer that it has."""
    properties = functions()[function]
    paths = [ROOT / properties["CodeUri"], *(builds.local / target(one) / "python" for one in properties["Layers"])]

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", IMPORT, *map(str, paths)],
        env={},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
