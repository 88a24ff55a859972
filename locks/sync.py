"""How does a bare machine get the environments that the locks describe?

`python3 locks/sync.py dev cloud sam` installs pip's hash-checked uv, then lets uv
install each lock into an environment of its own. A stamp names what an environment was
made from; where it still fits, nothing is done. Standard library only, and readable by
an old Python, so that an old Python is told what is wrong instead of failing oddly.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

if sys.version_info < (3, 11):
    sys.exit(
        "Breakwater needs Python 3.11 or newer, and {} is {}.\nName another one: make PYTHON=python3.13 setup".format(
            sys.executable, sys.version.split()[0]
        )
    )

ROOT = Path(__file__).resolve().parent.parent
LOCAL = ROOT / ".local"
UV = LOCAL / "venvs" / "uv" / "bin" / "uv"
LOG = LOCAL / "logs" / "setup.log"

# name of the environment: (folder, lock, is the project itself installed there)
ENVIRONMENTS = {
    "dev": (ROOT / ".venv", ROOT / "locks" / "dev.txt", True),
    "cloud": (LOCAL / "venvs" / "cloud", ROOT / "locks" / "cloud.txt", False),
    "sam": (LOCAL / "venvs" / "sam", ROOT / "locks" / "sam.txt", False),
    "bench": (LOCAL / "venvs" / "bench", ROOT / "locks" / "bench.txt", False),
}
NO_NETWORK = ("dns error", "error sending request", "name resolution", "newconnectionerror", "from versions: none")


def main(names):
    """Bring the named environments up to date, saying how long each took."""
    unknown = [name for name in names if name not in ENVIRONMENTS]
    if unknown or not names:
        sys.exit("usage: sync.py {}".format(" ".join(ENVIRONMENTS)))
    LOG.parent.mkdir(parents=True, exist_ok=True)
    stale = [name for name in names if not _fits(*ENVIRONMENTS[name])]
    if stale and not _installer_fits():
        _timed("installer (uv)", _install_uv)
    for name in stale:
        _timed("environment {}".format(name), _install, *ENVIRONMENTS[name])


def _timed(label, work, *arguments):
    print("  {:<28}".format(label), end="", flush=True)
    started = time.monotonic()
    work(*arguments)
    print("{:6.1f} s".format(time.monotonic() - started), flush=True)


def _installer_fits():
    return _fits(LOCAL / "venvs" / "uv", ROOT / "locks" / "uv.txt", False)


def _install_uv():
    folder, lock = LOCAL / "venvs" / "uv", ROOT / "locks" / "uv.txt"
    _run([sys.executable, "-m", "venv", "--clear", str(folder)])
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    _run([*pip, "install", "--require-hashes", "--only-binary", ":all:", "-r", str(lock)])
    _stamp(folder).write_text(_wanted(folder, lock, editable=False))


def _install(folder, lock, editable):
    """Make the environment, or bring it up to date in place: others may be using it."""
    if not _same_interpreter(folder):
        _run([str(UV), "venv", "--clear", "--python", sys.executable, str(folder)])
        _stamp(folder).write_text("\n".join(["unfinished", *_interpreter(folder)]))
    into = ["--python", str(folder / "bin" / "python")]
    _run([str(UV), "pip", "sync", "--require-hashes", *into, str(lock)])
    if editable:
        # The build backend is in the lock already: no network, nothing unpinned.
        offline = ["--offline", "--no-deps", "--no-build-isolation"]
        _run([str(UV), "pip", "install", *offline, *into, "--editable", str(ROOT)])
    _stamp(folder).write_text(_wanted(folder, lock, editable))


def _fits(folder, lock, editable):
    stamp = _stamp(folder)
    return stamp.is_file() and stamp.read_text() == _wanted(folder, lock, editable)


def _stamp(folder):
    return folder / "made-from.txt"


def _wanted(folder, lock, editable):
    """Say what an environment is made from."""
    contents = lock.read_bytes()
    if editable:
        contents += _packaging().encode()
    return "\n".join([hashlib.sha256(contents).hexdigest(), *_interpreter(folder)])


def _interpreter(folder):
    """Name the interpreter and the place; an environment can't be moved."""
    return [sys.version, os.path.realpath(sys.executable), str(folder), ""]


def _same_interpreter(folder):
    stamp = _stamp(folder)
    return stamp.is_file() and stamp.read_text().endswith("\n".join(["", *_interpreter(folder)]))


def _packaging():
    """Read what an editable install depends on; the settings of tools don't count."""
    import tomllib  # noqa: PLC0415 - an old Python has none, and must get as far as the message above

    parsed = tomllib.loads((ROOT / "pyproject.toml").read_text())
    parts = (parsed["project"], parsed["build-system"], parsed["tool"]["hatch"])
    return json.dumps(parts, sort_keys=True)


def _run(command):
    """Run a step quietly; on failure print its last lines and the likely cause."""
    environment = {**os.environ, "UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1"}
    environment.pop("VIRTUAL_ENV", None)
    done = subprocess.run(
        command,
        cwd=str(ROOT),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    with LOG.open("a") as log:
        log.write("$ {}\n{}\n".format(" ".join(command), done.stdout))
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-12:])
        sys.exit("failed\n\n{}\n\n{}\nEverything is in {}".format(tail, _cause(done.stdout), LOG))


def _cause(output):
    if any(sign in output.lower() for sign in NO_NETWORK):
        return "This looks like no network: the packages come from the Python package index."
    if "ensurepip" in output:
        return "This Python can't make environments: on Debian, install python3-venv."
    return "The command that failed: see the lines above."


if __name__ == "__main__":
    main(sys.argv[1:])
