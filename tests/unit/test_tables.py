"""Tables on a terminal that is too narrow: names keep what tells them apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inbox_orch.shared.shell.blocks import Table
from inbox_orch.shared.shell.terminal import render

RUN = "orch/fix-the-parser-2k4m8p1q"
BRANCHES = [f"{RUN}/t/{key}/{number}" for key in ("lexer", "p" * 40) for number in (1, 2)]


def drawn(monkeypatch: pytest.MonkeyPatch, columns: int, table: Table) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    return [line.rstrip() for line in render([table]).splitlines()]


@pytest.mark.parametrize("columns", [80, 60, 40])
def test_a_branch_that_is_cut_keeps_its_end(monkeypatch, columns: int):
    rows = tuple((f"a/{n}", "succeeded", branch) for n, branch in enumerate(BRANCHES))
    table = Table(("ATTEMPT", "STATE", "BRANCH"), rows, fixed=(0, 1), named=(2,))

    lines = drawn(monkeypatch, columns, table)

    assert len(lines) == 1 + len(BRANCHES)
    assert max(map(len, lines)) <= columns
    for line, branch in zip(lines[1:], BRANCHES, strict=True):
        assert line.endswith(branch[-10:]), line
        assert branch in line or "…" in line
        assert line.split()[2].startswith("or")


def test_a_name_that_fits_is_whole(monkeypatch):
    table = Table(("ATTEMPT", "BRANCH"), (("a/1", BRANCHES[0]),), named=(1,))
    assert drawn(monkeypatch, 80, table)[1].split() == ["a/1", BRANCHES[0]]


@given(st.text(st.characters(exclude_categories=("C", "Z", "M")), min_size=1, max_size=60),
       st.integers(8, 60))  # fmt: skip
def test_no_name_is_wider_than_its_column(name: str, columns: int):
    with pytest.MonkeyPatch.context() as monkeypatch:
        lines = drawn(monkeypatch, columns, Table(("NAME",), ((name,),), fixed=(), named=(0,)))
    assert len(lines) == 2
