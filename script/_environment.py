"""Makes and refreshes the virtual environment that the scripts run in.

Owns what is in that environment and the record of it: each part is made again only when what it
was made from has changed, so that a second run needs no package index and next to no time. The
package itself is installed from a wheel, as its users get it, not as an editable install. Runs
nothing of the package, and uses the standard library only.
"""

import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("inbox", "migrations", "orch", "shared")
PROJECT_FILES = ("LICENSE", "README.md", "pyproject.toml", "setup.py")
# Not sys.executable: that may be the Python of the very environment that is to be replaced.
BASE_PYTHON = Path(sys.executable).resolve()
# They read the sources and say nothing about a library's release, but ask for releases themselves.
# ruff, which asks for none, stays: tests of gates run it.
STATIC_TOOLS = ("import-linter", "mypy", "types-")
# `.venv-lowest` is without what is optional, `.venv-lowest-mcp` with it.
LOWEST = "-lowest"
OPTIONAL = ("mcp", "otel")
# The descriptor on which _environment.sh has opened the lock file, and keeps it afterwards.
LOCK = 9

State = dict[str, str]


def main(scope: str, venv: Path) -> None:
    """Brings `venv` up to date, and returns with a shared lock on it."""
    link_source_tree()
    while True:
        acquire(fcntl.LOCK_SH)
        if is_fresh(scope, venv):
            return
        acquire(fcntl.LOCK_EX)
        # Another process may have done it while this one waited.
        if not is_fresh(scope, venv):
            refresh(scope, venv)


def acquire(kind: int) -> None:
    try:
        fcntl.flock(LOCK, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        say("waiting for another script that uses the environment")
        fcntl.flock(LOCK, kind)


def is_fresh(scope: str, venv: Path) -> bool:
    state = read_state(venv)
    return (
        python_of(venv).exists()
        and state.get("interpreter") == interpreter(venv)
        and state.get(scope) == digest(requirements(scope, venv))
        and state.get("package") == digest_of_sources(ROOT)
    )


def refresh(scope: str, venv: Path) -> None:
    state = read_state(venv)
    if state.get("interpreter") != interpreter(venv) or not python_of(venv).exists():
        say(f"making {venv.name}")
        create(venv)
        state = {"interpreter": interpreter(venv)}
    if state.get(scope) != digest(requirements(scope, venv)):
        say("installing what the project requires")
        install_requirements(scope, venv, state)
    if state.get("package") != digest_of_sources(ROOT):
        say("building and installing the package")
        install_package(venv, state)


def create(venv: Path) -> None:
    """An environment with pip in it, or without where this Python comes without ensurepip."""
    if venv.exists():
        shutil.rmtree(venv)
    command = [str(BASE_PYTHON), "-m", "venv", str(venv)]
    if importlib.util.find_spec("ensurepip") is None:
        if importlib.util.find_spec("pip") is None:
            fail(
                f"{BASE_PYTHON} has neither ensurepip nor pip: install them"
                " (on Debian and Ubuntu: apt install python3-venv)"
            )
        command.insert(3, "--without-pip")
    run(command, "the virtual environment could not be made")


def install_requirements(scope: str, venv: Path, state: State) -> None:
    wanted = requirements(scope, venv)
    forget(venv, state, scope)
    run(
        [*pip(venv), "install", *wanted],
        "the requirements could not be installed; this step needs a package index",
    )
    # What every scope brings includes `runtime`.
    remember(venv, state, "runtime", digest(requirements("runtime", venv)))
    remember(venv, state, scope, digest(wanted))


def install_package(venv: Path, state: State) -> None:
    """Builds from a copy: a build in place would leave files in the tree, and use stale ones."""
    forget(venv, state, "package")
    with tempfile.TemporaryDirectory(prefix="inbox-orch-build-") as folder:
        copy = Path(folder)
        copy_sources(copy)
        offline = ["--no-index", "--no-deps", "--no-build-isolation"]
        run(
            [*pip(venv), "install", *offline, "--force-reinstall", str(copy)],
            "the package could not be built and installed",
        )
        # Of the copy, since the sources may have changed in the meantime.
        remember(venv, state, "package", digest_of_sources(copy))


def copy_sources(target: Path) -> None:
    for name in PROJECT_FILES:
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, target)
    for name in SOURCES:
        shutil.copytree(
            ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__", ".*")
        )


def link_source_tree() -> None:
    """Gives the source folders their place in the package, for tools that read the sources."""
    package = ROOT / "build" / "tree" / "inbox_orch"
    package.mkdir(parents=True, exist_ok=True)
    for name in SOURCES:
        with contextlib.suppress(FileExistsError):
            (package / name).symlink_to(Path("..", "..", "..", name), target_is_directory=True)


def requirements(scope: str, venv: Path) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    runtime = project["project"]["dependencies"]
    extras = project["project"]["optional-dependencies"]
    tools = [] if scope == "runtime" else extras[scope]
    if scope == "proof":
        tools = extras["dev"] + tools
    if scope in ("dev", "proof") and venv.name != f".venv{LOWEST}":
        # An extra may ask for a newer release of what the package requires.
        optional = [requirement for extra in OPTIONAL for requirement in extras[extra]]
        named = {name_of(requirement) for requirement in optional}
        runtime = [r for r in runtime if name_of(r) not in named] + optional
    if LOWEST in venv.name:
        runtime = [requirement.replace(">=", "==") for requirement in runtime]
        tools = [requirement for requirement in tools if not requirement.startswith(STATIC_TOOLS)]
    return [*project["build-system"]["requires"], *runtime, *tools]


def name_of(requirement: str) -> str:
    return requirement.split(">=")[0]


def digest(parts: list[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def digest_of_sources(root: Path) -> str:
    parts = []
    for path in sorted(package_files(root)):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        parts += [path.relative_to(root).as_posix(), content]
    return digest(parts)


def package_files(root: Path) -> list[Path]:
    files = [root / name for name in PROJECT_FILES]
    for name in SOURCES:
        files += (root / name).rglob("[!.]*")
    return [path for path in files if path.is_file() and "__pycache__" not in path.parts]


def interpreter(venv: Path) -> str:
    """The path is part of it, because the commands in an environment carry it inside them."""
    return digest([str(BASE_PYTHON), sys.version, str(venv)])


def python_of(venv: Path) -> Path:
    return venv / "bin" / "python"


def pip(venv: Path) -> list[str]:
    python = str(python_of(venv))
    options = ["--quiet", "--disable-pip-version-check", "--no-input"]
    if (venv / "bin" / "pip").exists():
        return [python, "-m", "pip", *options]
    return [str(BASE_PYTHON), "-m", "pip", "--python", python, *options]


def run(command: list[str], failure: str) -> None:
    # A user's settings for installs elsewhere would send the packages there.
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {"PIP_PREFIX", "PIP_ROOT", "PIP_TARGET"}
    }
    environment["PIP_USER"] = "0"
    # Standard output belongs to the command that the script runs afterwards. The lock goes along,
    # so that an install which outlives a killed script still keeps others out.
    done = subprocess.run(command, stdout=sys.stderr, env=environment, pass_fds=[LOCK])
    if done.returncode:
        fail(failure)


def read_state(venv: Path) -> State:
    try:
        state: State = json.loads((venv / "inbox-orch.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return state


def remember(venv: Path, state: State, part: str, made_from: str) -> None:
    state[part] = made_from
    (venv / "inbox-orch.json").write_text(json.dumps(state), encoding="utf-8")


def forget(venv: Path, state: State, part: str) -> None:
    """Before a change, so that one cut short is done again."""
    remember(venv, state, part, "")


def say(text: str) -> None:
    print(f"set-up: {text}", file=sys.stderr, flush=True)


def fail(text: str) -> None:
    say(text)
    raise SystemExit(1)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
