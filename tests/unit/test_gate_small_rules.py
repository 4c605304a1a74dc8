"""The small rules of gates: paths, what no change may bring in, what a result stands on."""

import os
import re
from pathlib import Path

import pytest

from inbox_orch.orch.gates.built_in import BUILT_IN
from inbox_orch.orch.gates.definitions import Gate
from inbox_orch.orch.gates.globs import matches_any
from inbox_orch.orch.gates.grounds import ground_digest, tool_version
from inbox_orch.orch.gates.listening import MOST_HEARD_BYTES, Ear
from inbox_orch.orch.gates.patch_safety import RawChange, judged
from inbox_orch.orch.gates.results import GateResult
from inbox_orch.shared.processes.kept import Kept


@pytest.mark.parametrize(
    "glob, path, fits",
    [
        ("src/**", "src/a.py", True),
        ("src/**", "src/a/b/c.py", True),
        ("src/**", "other/src/a.py", False),
        ("src/*", "src/a.py", True),
        ("src/*.py", "src/a/b.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "a/b/c.py", True),
        ("**/*.py", "a/b/c.pyc", False),
        ("*.py", "a.py", True),
        ("*.py", "a/b.py", False),
        ("src", "src/a/b.py", True),
        ("src/", "src/a/b.py", True),
        ("src", "src2/a.py", False),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("a.c", "abc", False),
        ("[ab].py", "[ab].py", True),
        ("./src/**", "src/a.py", True),
        ("a**b", "axb", True),
        ("a**b", "a/x/b", False),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b/z", True),
        ("a/**/b/**/c", "a/b/b/c", True),
        ("*a*b", "xaabab", True),
        ("*a*b", "xaaba", False),
        ("**", "any/thing\nat all", True),
    ],
)
def test_globs_mean_what_people_mean(glob: str, path: str, fits: bool):
    assert matches_any((glob,), (path,)) is fits


def test_many_stars_take_no_time():
    glob = "**/a*/" * 40 + "*" * 40 + "x"

    assert not matches_any((glob,), ("a/" * 2000 + "b", "a" * 4000))


def change(path: str = "a.py", **options) -> RawChange:
    return RawChange(path, **{"old_mode": "100644", "mode": "100644", "size": 9, **options})


@pytest.mark.parametrize(
    "one, rules",
    [
        (change(), []),
        (change("a/b/c.py", mode="100755"), []),
        (change(mode="000000"), []),
        (change(".git/config"), ["git"]),
        (change("a/.GIT/hooks/x"), ["git"]),
        (change(".gitattributes"), ["git-settings"]),
        (change("a/.GitModules", mode="000000"), ["git-settings"]),
        (change(".gitignore"), []),
        (change(".husky/pre-commit"), ["hook"]),
        (change("a/.githooks/b"), ["hook"]),
        (change("sub", old_mode="000000", mode="160000"), ["submodule"]),
        (change("sub", old_mode="160000", mode="000000"), ["submodule"]),
        (change("big", size=50 * 1024 * 1024), []),
        (change("big", size=50 * 1024 * 1024 + 1), ["size"]),
        (change("a/b", mode="120000", target="../c"), []),
        (change("a/b", mode="120000", target="../../c"), ["link"]),
        (change("a", mode="120000", target="/etc/passwd"), ["link"]),
        (change("a", mode="120000", target=".git/config"), ["link"]),
        (change("a", mode="120000", target="x/../../a"), ["link"]),
        (change("a", mode="120000", target=None), ["link"]),
        # A link that is only given another text has no line about modes in a diff.
        (change("a", old_mode="120000", mode="120000", target="../out"), ["link"]),
        (change("a", old_mode="120000", mode="000000"), []),
    ],
)
def test_what_no_change_may_bring_in(one: RawChange, rules: list[str]):
    found = judged(BUILT_IN["patch-safety"], [change("fine.py"), one])

    assert found.failures == {f"{one.path}:{rule}": 1 for rule in rules}
    assert found.state == ("failed" if rules else "passed")


def test_gates_and_results_are_as_they_were_after_their_way_through_json():
    gates = [*BUILT_IN.values(), Gate("a", "make", paths=("x", "y"), strict=True, clean=True)]
    result = GateResult(
        "a", "failed", "1 failure", {"x": 2}, {"x": "why"}, 1, ("y",), 3, 0.5, "said",
        ("gate-a.txt", "0" * 64, 4), True, ("p",), "warn",
    )  # fmt: skip

    assert [Gate.from_json(gate.as_json() | {"name": gate.name}) for gate in gates] == gates
    assert GateResult.from_json(result.as_json()) == result


def test_built_in_gates_have_their_names_and_readable_patterns():
    assert all(name == gate.name for name, gate in BUILT_IN.items())
    assert all(re.compile(gate.pattern) for gate in BUILT_IN.values() if gate.pattern)
    assert set(BUILT_IN) == {"ruff", "ruff-format", "mypy", "pytest", "patch-safety"}


def test_a_result_stands_on_the_gate_the_set_up_the_tools_and_the_base():
    gate = BUILT_IN["ruff"]
    grounds = [
        ground_digest(gate, "", ()),
        ground_digest(gate._replace(strict=True), "", ()),
        ground_digest(gate, "npm ci", ()),
        ground_digest(gate, "", ("ruff 1",)),
        ground_digest(gate, "", (), "a" * 40),
    ]

    assert len(set(grounds)) == len(grounds)
    assert grounds[0] == ground_digest(BUILT_IN["ruff"], "", [])


@pytest.mark.parametrize(
    "run", [("tool", "-x"), "tool -x", "A=b C= tool -x", "tool 'unended", ("./bin/tool",)]
)
def test_a_tool_that_is_installed_anew_is_another_one(tmp_path: Path, run):
    tool = tmp_path / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    os.utime(tool, (1, 1))
    found = {"PATH": f"/nowhere:{tool.parent}"}
    before = tool_version(Gate("t", run), found, str(tmp_path))
    os.utime(tool, (2, 2))

    assert "tool" in before
    assert str(tool.parent) in before.replace("/./", "/")
    assert tool_version(Gate("t", run), found, str(tmp_path)) != before


@pytest.mark.parametrize("run", [(), "", ("tool",), "$TOOL"])
def test_a_tool_that_is_not_found_has_its_name_alone(tmp_path: Path, run):
    gate = Gate("t", run)

    assert tool_version(gate, {"PATH": str(tmp_path)}, str(tmp_path)) == (
        "".join(run) if run else ""
    )


def test_what_is_taken_down_is_kept_too_until_it_is_too_much():
    kept = Kept("output", "orch")
    ear = Ear(kept)

    assert (ear.add(b"some"), ear.add(b"thing"), ear.finish()) == (b"", b"", b"")
    assert (ear.heard, kept.content()) == (b"something", b"something")
    for _ in range(17):
        ear.add(b"x" * 1024 * 1024)
    assert ear.heard is None
    assert kept.total == 9 + 17 * 1024 * 1024 > MOST_HEARD_BYTES


@pytest.mark.parametrize(
    "run, shown",
    [
        (("pytest", "-q", "--junitxml={report}"), "pytest -q"),
        (("pytest", "--junitxml", "{report}", "a b"), "pytest 'a b'"),
        ("make test REPORT={report} | tail", "make test REPORT=/dev/null | tail"),
        (("ruff", "check", "."), "ruff check ."),
    ],
)
def test_a_command_is_shown_as_a_person_can_run_it(run: tuple[str, ...] | str, shown: str):
    assert Gate("tests", run).shown == shown
