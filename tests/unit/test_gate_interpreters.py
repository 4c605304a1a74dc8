"""Which interpreter runs a gate, by its words and by the files that they lead to; and how what the
canary says is read."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from inbox_orch.orch.gates.canary import canary_read, canary_spec
from inbox_orch.orch.gates.definitions import Gate
from inbox_orch.orch.gates.interpreters import Launch, activated, is_of_node, launch_of
from inbox_orch.orch.gates.proving import UNKNOWN, Sighting
from inbox_orch.orch.gates.spec import GateSpec

TREE = "/tree"


def script(folder: Path, name: str, *lines: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join(lines) + "\n")
    (folder / name).chmod(0o755)
    return str(folder)


def launch(run: Any, path: str = "/none") -> Launch | None:
    return launch_of(run, {"PATH": path}, TREE)


@pytest.mark.parametrize(
    "run, expected",
    [
        (("python3", "-m", "pytest", "-q"), Launch((), ("python3",), (TREE,), ("-q",))),
        (
            "python3.12 -X dev -m pytest tests --junitxml={report}",
            Launch((), ("python3.12", "-X", "dev"), (TREE,), ("tests",)),
        ),
        (
            (".venv/bin/python", "-m", "pytest", "--junitxml", "{report}", "-x"),
            Launch((), (".venv/bin/python",), (TREE,), ("-x",)),
        ),
        (
            "A=1 B='2 3' python -m coverage run -m pytest",
            Launch(("A=1", "B=2 3"), ("python",), (TREE,), ()),
        ),
        ("uv run pytest -q", Launch((), ("uv", "run", "python"), None, ("-q",))),
        ("uv run -m pytest", Launch((), ("uv", "run", "python"), (TREE,), ())),
        ("poetry run py.test", Launch((), ("poetry", "run", "python"), None, ())),
        ("python3 -m unittest", Launch((), ("python3",), (TREE,), None)),
        (
            ("python3", "-m", "unittest", "discover", "-s", "tests"),
            Launch((), ("python3",), ("/tree/tests", TREE), None),
        ),
        ("python3 -u ci/run.py -x", Launch((), ("python3", "-u"), ("/tree/ci",), None)),
        # A shell has to read these, or nothing in them is an interpreter.
        ("cd sub && pytest", None),
        ("make test", None),
        ("pytest 'open", None),
        ("pytest -q", None),
        ((), None),
    ],
)
def test_an_interpreter_is_told_by_the_words(run: Any, expected: Launch | None):
    assert launch(run) == expected


@pytest.mark.parametrize(
    "first, words",
    [
        (("#!/opt/a/bin/python3.11",), ("/opt/a/bin/python3.11",)),
        (("#!/opt/a/bin/python -I",), ("/opt/a/bin/python", "-I")),
        (("#!/usr/bin/env -S python3",), ("python3",)),
        (("#!/bin/sh", '\'\'\'exec\' "/a b/python" "$0" "$@"', "' '''"), ("/a b/python",)),
        (("#!/bin/sh", "'''exec' /a/python \"$0\" \"$@\""), ("/a/python",)),
        (("#!/bin/sh", "exec something"), None),
    ],
)
def test_a_program_names_its_interpreter_in_its_first_lines(tmp_path: Path, first: Any, words: Any):
    path = script(tmp_path / "bin", "pytest", *first)

    expected = None if words is None else Launch((), ("nice", *words), None, ("-q",))
    assert launch("nice pytest -q", path) == expected
    assert launch(f"PATH={path} nice pytest -q") == (
        expected and expected._replace(assigned=(f"PATH={path}",))
    )


def test_beside_a_shim_lies_the_shim_of_its_interpreter(tmp_path: Path):
    path = script(tmp_path, "pytest", "#!/usr/bin/env bash", "exec pyenv exec pytest")
    script(tmp_path, "python", "#!/usr/bin/env bash")

    assert launch("pytest", path) == Launch((), (f"{path}/python",), None, ())


def test_what_is_run_by_node():
    assert is_of_node(("npm", "test"))
    assert is_of_node("npx vitest run")
    assert not is_of_node("make test")
    assert not is_of_node(())


def test_what_set_up_has_made_comes_first(tmp_path: Path):
    given = {"PATH": "/usr/bin", "PYTHONHOME": "/x", "A": "1"}
    assert activated(given, str(tmp_path)) == given

    script(tmp_path / ".venv/bin", "python", "")
    (tmp_path / "node_modules/.bin").mkdir(parents=True)

    assert activated(given, str(tmp_path)) == {
        "PATH": f"{tmp_path}/.venv/bin:{tmp_path}/node_modules/.bin:/usr/bin",
        "VIRTUAL_ENV": f"{tmp_path}/.venv",
        "A": "1",
    }


# -- what the canary is, and what it has said ----------------------------------------------------


def spec_of(gate: Gate, *packages: str) -> GateSpec | None:
    ran = GateSpec("x", TREE, "/main/.git", {"PATH": ""}, 900.0, ("key",), "a.txt", ("x",), "all")
    return canary_spec(gate, ran, packages)


def test_the_canary_is_run_where_the_gate_is():
    gate = Gate("tests", ("python3", "-m", "pytest", "-k", "it's"), "junit")

    spec = spec_of(gate, "src/a", "b.py")

    assert spec is not None
    assert spec.command.startswith("python3 /")
    assert '"sources": {"a": "src/a", "b": "b.py"}' in spec.command
    assert spec._replace(command="") == GateSpec(
        "", TREE, "/main/.git", {"PATH": ""}, 300.0, ("key",)
    )


@pytest.mark.parametrize(
    "gate, packages",
    [
        (Gate("types", ("python3", "-m", "mypy"), "mypy"), ("src/a",)),
        (Gate("tests", ("python3", "-m", "pytest"), "junit"), ()),
        (Gate("tests", ("python3", "-m", "pytest"), "junit"), ("packages/a/package.json",)),
        (Gate("tests", "make test"), ("src/a",)),
        (Gate("tests", ("npm", "test")), ("src/a",)),
    ],
)
def test_where_there_is_nothing_to_see_there_is_no_canary(gate: Gate, packages: tuple[str, ...]):
    assert spec_of(gate, *packages) is None


def said(**names: Any) -> str:
    full = {
        name: {"source": name, "found": [], "imported": False, "beside": [], **facts}
        for name, facts in names.items()
    }
    return f"noise\norch-canary {json.dumps(full)}\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A worktree of a repository, with the package `a`."""
    (tmp_path / "main/.git/worktrees/t").mkdir(parents=True)
    for top in ("main", "tree"):
        script(tmp_path / top / "a", "__init__.py", "")
    (tmp_path / "tree/.git").write_text(f"gitdir: {tmp_path}/main/.git/worktrees/t\n")
    return tmp_path / "tree"


def test_of_what_is_imported_the_worst_counts(tree: Path):
    main = str(tree.parent / "main")
    here, away = [f"{tree}/a/__init__.py"], [f"{main}/a/__init__.py"]

    def read(**names: Any) -> Sighting:
        return canary_read(said(**names), str(tree))

    elsewhere = Sighting("elsewhere", "a", f"{main}/a", main, True)
    assert read(a={"found": here}).state == "here"
    assert read(a={"found": away}) == elsewhere
    assert read(a={"found": away, "imported": True}, b={"found": here, "source": "a"}) == elsewhere
    both = {"b": {"found": here, "imported": True, "source": "a"}}
    assert read(**both, a={"found": away, "imported": True}) == elsewhere
    seen = read(**both, a={"found": away})
    assert (seen.state, seen.name) == ("here", "b")
    assert read(a={"found": []}) == UNKNOWN


def test_a_checkout_of_another_repository_is_not_the_main_one(tree: Path):
    other = tree.parent / "other"
    script(other / "a", "__init__.py", "")
    (other / ".git").mkdir()

    seen = canary_read(said(a={"found": [f"{other}/a/__init__.py"]}), str(tree))

    assert seen == Sighting("elsewhere", "a", f"{other}/a", str(other), False)


@pytest.mark.parametrize(
    "place, state, checkout",
    [
        (".venv/lib/python3/site-packages/a/__init__.py", "copy", "tree"),
        ("build/lib/a/__init__.py", "copy", "tree"),
        ("lib/a/__init__.py", "here", None),
        ("../other/a/__init__.py", "elsewhere", None),
        ("../active/lib/python3/dist-packages/a/__init__.py", "copy", None),
    ],
)
def test_what_was_installed_once_is_no_checkout(
    tree: Path, place: str, state: str, checkout: str | None
):
    found = os.path.normpath(tree / place)

    seen = canary_read(said(a={"found": [found]}), str(tree))

    assert (seen.state, seen.checkout) == (state, checkout and str(tree))


def test_a_package_of_links_and_one_of_several_folders_are_here(tree: Path):
    links = tree / "build/__editable__/a"
    links.mkdir(parents=True)
    (links / "__init__.py").symlink_to(tree / "a/__init__.py")

    linked = canary_read(said(a={"found": [f"{links}/__init__.py"]}), str(tree))
    several = canary_read(said(a={"found": ["/else/a", f"{tree}/a"]}), str(tree))

    assert (linked.state, several.state) == ("here", "here")


@pytest.mark.parametrize(
    "output",
    [
        "",
        "orch-canary {",
        "orch-canary []",
        'orch-canary {"a": 1}',
        'orch-canary {"a": {"source": "a"}}',
        said(a={"found": ["/home/***/a"]}),
    ],
)
def test_what_cannot_be_read_is_not_known(tree: Path, output: str):
    assert canary_read(output, str(tree)) == UNKNOWN
