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


# -- what earlier attempts came to -----------------------------------------------------------


def earlier_part(text: str) -> str:
    return text.split("Earlier attempts\n\n", 1)[1]


def test_a_first_attempts_text_is_the_task_alone():
    assert texts.task_text("Do it", "All of it.", []) == "Do it\n\nAll of it."


def test_earlier_attempts_are_told_whole_and_in_order_where_they_fit():
    earlier = ["Attempt 1: failed.", "x" * 16_000, "Attempt 3: lost."]

    assert texts.fits(earlier)
    assert earlier_part(texts.task_text("T", "", earlier)) == "\n\n".join(earlier)


@pytest.mark.parametrize("size", [1, 100, 8_000, 16_000, 16_384, 20_000, 1_000_000])
@pytest.mark.parametrize("count", [1, 2, 3, 40])
@pytest.mark.parametrize("letter", ["x", "ü", "\udcff"])
@pytest.mark.parametrize("attached", [False, True])
def test_what_is_told_of_earlier_attempts_is_at_most_16_kib(
    size: int, count: int, letter: str, attached: bool
):
    earlier = [f"Attempt {number}: " + letter * (size // 2 + 1) for number in range(count)]

    part = earlier_part(texts.task_text("T", "B", earlier, attached=attached))

    assert len(part.encode("utf-8", "surrogateescape")) <= texts.MAX_EARLIER_BYTES
    assert f"Attempt {count - 1}: " in part, "the newest is always there"
    assert (texts.EARLIER_NAME in part) == attached
    if not texts.fits(earlier):
        assert "(older attempts are left out)" in part or "(cut)" in part
