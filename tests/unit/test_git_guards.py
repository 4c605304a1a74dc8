"""Every git command that changes files runs only after git has said where it is.

The sources are read: who adds such a command has to guard it, or to say here why it needs none.
"""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "orch"
VERBS = {
    *("add", "am", "apply", "bisect", "checkout", "checkout-index", "cherry-pick", "clean"),
    *("merge", "mv", "pull", "read-tree", "rebase", "reset"),
    *("restore", "revert", "rm", "sparse-checkout", "stash", "submodule", "switch"),
    *("update-index", "worktree"),
}
CALLS = {"git", "git_bytes", "git_told", "output_of", "_output_of", "_done"}
RUNS = "Child.start"
GUARDS = {"require_here"}
GUARDED = {
    "git/borrowed.py detach",
    "git/worktrees.py _add_submodules",
    "git/worktrees.py _fill",
    "git/checkouts.py checkout",
    "git/forwarding.py _check_out",
    "git/harvest.py add_to_index",
    "git/harvest.py _tree_with",
    "git/integrating.py _merged_there",
    "git/mending.py _is_mended",
    "git/mending.py _taken_back",
    "git/restoring.py _check_out",
    "git/snapshots.py _refresh",
    "git/untouched.py untouched",
    "gates/running.py _started",
}
NO_FILES = {
    "git/applying.py _apply": "applies to an index of our own",
    "git/applying.py edited": "reads a tree into an index of our own",
    "git/applying.py patched": "reads a tree into an index of our own",
    "git/applying.py store": "writes an index of our own",
    "git/filters.py brought_in": "reads a commit into an index of our own",
    "git/hidden.py _differing": "refreshes a copy of the index",
    "git/hidden.py unmark": "writes a copy of the index",
    "git/integrating.py working_trees": "lists",
    "git/mixed.py taken_back": "reads a tree into an index of our own",
    "git/raw_index.py _update": "writes an index of our own",
    "git/salvage.py _tree": "writes a copy of the index",
    "git/worktrees.py _add": "adds a worktree without files",
}


def functions(path: Path) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            yield f"{path.relative_to(ROOT)} {node.name}", node


def called(node: ast.AST) -> Iterator[tuple[int, str, str]]:
    """(line, what is called, on what) of every call in a function."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call):
            if isinstance(each.func, ast.Name):
                yield each.lineno, each.func.id, ""
            elif isinstance(each.func, ast.Attribute):
                on = each.func.value
                yield each.lineno, each.func.attr, on.id if isinstance(on, ast.Name) else ""


def changes_files(function: ast.FunctionDef) -> list[int]:
    """The lines where git, or a command in a worktree, is run that may change files."""
    body = ast.Module(function.body, [])
    words = {n.value for n in ast.walk(body) if isinstance(n, ast.Constant)}
    lines = [n for n, name, on in called(function) if f"{on}.{name}" == RUNS]
    if words & VERBS:
        lines += [n for n, name, on in called(function) if name in CALLS]
    return lines


@functools.cache
def places(root: Path) -> dict[str, tuple[list[int], list[int]]]:
    """Where files may be changed: the lines of that, and the lines of the guards."""
    found = {}
    for path in sorted(p for p in root.rglob("*.py") if "demo" not in p.parts):
        for name, function in functions(path):
            lines = changes_files(function)
            if lines:
                guards = [n for n, call, _ in called(function) if call in GUARDS]
                found[name] = (lines, guards)
    return found


def test_every_place_where_files_are_changed_is_known():
    assert set(places(ROOT)) == GUARDED | NO_FILES.keys()


@pytest.mark.parametrize("name", sorted(GUARDED))
def test_git_says_where_it_is_before_it_changes_files(name: str):
    lines, guards = places(ROOT)[name]

    assert guards, f"{name} changes files and does not ask where git is"
    assert min(guards) < max(lines)


@pytest.mark.parametrize("name", sorted(NO_FILES))
def test_what_is_not_guarded_changes_no_files(name: str):
    path, _, function = name.partition(" ")
    (node,) = [n for each, n in functions(ROOT / path) if each == name]
    words = {n.value for n in ast.walk(node) if isinstance(n, ast.Constant)}

    harmless = {"within", "--no-checkout", "list"} & (words | {n.id for n in names(node)})
    assert harmless, f"{function} may change files"


def names(node: ast.AST) -> Iterator[ast.Name]:
    return (each for each in ast.walk(node) if isinstance(each, ast.Name))
