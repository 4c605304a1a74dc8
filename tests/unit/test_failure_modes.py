"""docs/failure-modes.md cannot rot: every test that it names exists, and no page tells anybody to
do what it warns of."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "failure-modes.md"
_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
_ROW = re.compile(r"^\| ([a-z-]+ \d+) \|", re.MULTILINE)
# From the main file, or the folder around it: `cp .inbox/bus.db x`, `cp -a .inbox x`. Putting a
# backup there is another matter.
_COPY = re.compile(
    r"^\s*(?:\$ )?(?:cp|rsync|scp|install)\b.*(?:bus\.db|\.inbox)\S*[ ]+\S", re.MULTILINE
)


@cache
def names_in(path: Path) -> frozenset[str]:
    """The names of the tests of a module, of its classes too; nothing is run."""
    functions = (n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef))
    return frozenset(f.name for f in functions if f.name.startswith("test_"))


def missing(text: str) -> list[str]:
    """What a page names and is not there."""
    found = []
    for path, name in _TEST.findall(text):
        there = (ROOT / path).is_file()
        if not there or (name and name not in names_in(ROOT / path)):
            found.append(f"{path}::{name}")
    return found


def test_every_test_that_the_page_names_exists():
    text = PAGE.read_text()
    assert len(_TEST.findall(text)) > 300
    assert missing(text) == []


def test_every_row_has_a_number_of_its_own_and_a_test():
    text = PAGE.read_text()
    numbers = _ROW.findall(text)
    assert len(numbers) > 200
    assert len(numbers) == len(set(numbers))
    bare = [
        line
        for line in text.splitlines()
        if _ROW.match(line) and not line.startswith("| not-here") and not _TEST.search(line)
    ]
    assert bare == []


@pytest.mark.parametrize(
    "named",
    ["`tests/unit/test_gone.py`", "`tests/unit/test_failure_modes.py::test_gone`",
     "`tests/unit/test_failure_modes.py::missing`"],
)  # fmt: skip
def test_what_does_not_exist_is_noticed(named: str):
    assert len(missing(f"| x 1 | a | b | {named} |")) == 1


def test_no_page_tells_anybody_to_copy_the_database_file():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    pages += sorted((ROOT / "inbox" / "texts").glob("*")) + sorted(
        (ROOT / "orch" / "texts").glob("*")
    )
    found = {str(p.relative_to(ROOT)): _COPY.findall(p.read_text()) for p in pages if p.is_file()}
    assert len(found) > 15
    assert {page: lines for page, lines in found.items() if lines} == {}


@pytest.mark.parametrize("line", ["cp .inbox/bus.db copy.db", "$ rsync -a .inbox backup/"])
def test_a_copy_of_the_database_file_is_noticed(line: str):
    assert _COPY.search(line)


def test_putting_a_backup_into_its_place_is_no_such_copy():
    assert not _COPY.search("cp -p ../project.db .inbox/bus.db")
