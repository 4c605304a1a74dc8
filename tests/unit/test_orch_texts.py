"""What a worker is given to read is short, and says all that it needs."""

import pytest

from inbox_orch.orch.domain import texts

FACTS = {
    "run": "r" * 40,
    "task": "t" * 40,
    "attempt": 3,
    "thread": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "mailbox": "m" * 64,
    "branch": f"orch/{'r' * 40}/t/{'t' * 40}/3",
    "base_commit": "c" * 64,
    "database_id": "01ARZ3NDEKTSV4RRFFQ69G5FAW",
}


def test_a_brief_names_the_paths():
    brief = texts.brief(**FACTS, worktree="/w/t-3", database="/p/.inbox/bus.db")

    assert "Worktree: /w/t-3\n" in brief
    assert "--db /p/.inbox/bus.db --db-id" in brief


def test_a_brief_without_a_worktree_speaks_of_none():
    brief = texts.brief(**FACTS, worktree=None, database="/p/.inbox/bus.db")

    assert "orktree" not in brief


@pytest.mark.parametrize("worktree", [None, "/w", "/ü" * 2000])
@pytest.mark.parametrize("database", ["/d", "/d" * 2000, "/" + "\udcff" * 2000])
def test_a_brief_is_short_however_long_the_paths_are(worktree: str | None, database: str):
    brief = texts.brief(**FACTS, worktree=worktree, database=database)

    assert len(brief.encode("utf-8", "surrogateescape")) <= texts.MAX_BRIEF_BYTES
    assert f"inbox claim {FACTS['thread']}" in brief
    long = len(database) > 100 or len(worktree or "") > 100
    assert ("stands beside this brief" in brief) == long


def test_a_path_that_is_not_utf_8_does_not_hinder_a_brief():
    brief = texts.brief(**FACTS, worktree="/w/\udcff", database="/d")

    assert "/w/\udcff" in brief
