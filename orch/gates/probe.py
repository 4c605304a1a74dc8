"""A program for the interpreter of a gate, whichever that is: says from where it would import the
packages of a repository, and from where its tests do import them.

It is run as a file, in a worktree, with one argument in JSON, and prints one line, marked. It has
to be understood by every Python from 3.7 on, and imports nothing of ours.
"""

from __future__ import annotations

import json
import os
import sys

MARK = "orch-canary "


class Collected:
    """Looks once pytest has collected the tests, while its path is as the tests have it."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.found: dict[str, list[str]] | None = None

    def pytest_sessionfinish(self) -> None:
        """Before pytest takes its folders off the path again."""
        self.found = places(self.names)


def places(names: list[str]) -> dict[str, list[str]]:
    """From where each would be imported now."""
    return {name: place(name) for name in names}


def place(name: str) -> list[str]:
    """The files or folders that a module comes from, none where it is not found."""
    from importlib.util import find_spec

    module = sys.modules.get(name)
    try:
        spec = getattr(module, "__spec__", None) or find_spec(name)
    except Exception:  # noqa: BLE001 - a finder of somebody's, which may raise anything
        return []
    origin = getattr(module, "__file__", None) or getattr(spec, "origin", None)
    if origin and os.path.isabs(origin):
        return [] if is_of_python(origin) else [origin]
    return list(getattr(spec, "submodule_search_locations", None) or [])


def is_of_python(path: str) -> bool:
    """Whether a file comes with Python itself: a folder of the repository may happen to be called
    as a module of it is."""
    inside = path.startswith(os.path.dirname(os.__file__) + os.sep)
    return inside and "-packages" + os.sep not in path


def collect(arguments: list[str], names: list[str]) -> dict[str, list[str]] | None:
    """Let pytest collect, silently and without a file in the worktree; what it then imports from
    where, None where it has not come so far."""
    import shutil
    import tempfile

    folder = tempfile.mkdtemp()
    looking = Collected(names)
    os.environ["COVERAGE_FILE"] = os.path.join(folder, "coverage")
    try:
        import pytest

        options = ["--collect-only", "-q", "-o", "cache_dir=" + os.path.join(folder, "cache")]
        pytest.main([*arguments, *options], plugins=[looking])
    except BaseException as error:  # whatever tests raise when they are loaded
        if isinstance(error, KeyboardInterrupt):
            raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return looking.found


def main() -> None:
    """Look, and say so on the standard output, which nothing else gets."""
    asked = json.loads(sys.argv[1])
    names = sorted(asked["sources"])
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    own = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [each for each in sys.path if os.path.abspath(each or ".") != own]
    out, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    beside = places(names)
    if not getattr(sys.flags, "safe_path", False):
        paths = asked["paths"]
        sys.path[:0] = [os.path.dirname(sys.executable)] if paths is None else paths
    found = None if asked["pytest"] is None else collect(asked["pytest"], names)
    told = {
        name: {
            "source": asked["sources"][name],
            # A pytest that was not able to collect says nothing, and nothing is guessed.
            "found": place(name) if asked["pytest"] is None else (found or {}).get(name, []),
            "imported": found is not None and name in sys.modules,
            "beside": beside[name],
        }
        for name in names
    }
    os.write(out, ("\n" + MARK + json.dumps(told) + "\n").encode())
    os._exit(0)


if __name__ == "__main__":
    main()
