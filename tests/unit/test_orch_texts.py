"""What a worker is given to read is short, and says all that it needs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inbox_orch.orch.attempts import texts, work

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


def brief_of(**facts) -> str:
    return work.brief(work.Errand(**facts))


def test_a_brief_names_the_paths():
    brief = brief_of(**FACTS, worktree="/w/t-3", database="/p/.inbox/bus.db")

    assert "Worktree: /w/t-3\n" in brief
    assert "--db /p/.inbox/bus.db --db-id" in brief


def test_a_brief_without_a_worktree_speaks_of_none():
    brief = brief_of(**FACTS, worktree=None, database="/p/.inbox/bus.db")

    assert "orktree" not in brief


@pytest.mark.parametrize("worktree", [None, "/w", "/ü" * 2000])
@pytest.mark.parametrize("database", ["/d", "/d" * 2000, "/" + "\udcff" * 2000])
def test_a_brief_is_short_however_long_the_paths_are(worktree: str | None, database: str):
    brief = brief_of(**FACTS, worktree=worktree, database=database)

    assert len(brief.encode("utf-8", "surrogateescape")) <= work.MAX_BRIEF_BYTES
    assert f"inbox claim {FACTS['thread']}" in brief
    long = len(database) > 100 or len(worktree or "") > 100
    assert ("stands beside this brief" in brief) == long


def test_a_path_that_is_not_utf_8_does_not_hinder_a_brief():
    brief = brief_of(**FACTS, worktree="/w/\udcff", database="/d")

    assert "/w/\udcff" in brief


# -- what earlier attempts came to -----------------------------------------------------------


def earlier_part(text: str) -> str:
    return text.split("Earlier attempts\n\n", 1)[1]


def test_a_first_attempts_text_is_the_task_alone():
    assert texts.with_earlier("Do it", []) == "Do it"


def test_earlier_attempts_are_told_whole_and_in_order_where_they_fit():
    earlier = ["Attempt 1: failed.", "x" * 16_000, "Attempt 3: lost."]

    assert texts.fits(earlier)
    assert earlier_part(texts.with_earlier("T", earlier)) == "\n\n".join(earlier)


@pytest.mark.parametrize("size", [1, 100, 8_000, 16_000, 16_384, 20_000, 1_000_000])
@pytest.mark.parametrize("count", [1, 2, 3, 40])
@pytest.mark.parametrize("letter", ["x", "ü", "\udcff"])
@pytest.mark.parametrize("attached", [False, True])
def test_what_is_told_of_earlier_attempts_is_at_most_16_kib(
    size: int, count: int, letter: str, attached: bool
):
    earlier = [f"Attempt {number}: " + letter * (size // 2 + 1) for number in range(count)]

    part = earlier_part(texts.with_earlier("T\n\nB", earlier, attached=attached))

    assert len(part.encode("utf-8", "surrogateescape")) <= texts.MAX_EARLIER_BYTES
    assert f"Attempt {count - 1}: " in part, "the newest is always there"
    assert (texts.EARLIER_NAME in part) == attached
    if not texts.fits(earlier):
        assert "(older attempts are left out)" in part or "(cut)" in part


def test_a_brief_is_these_lines():
    brief = brief_of(
        run="shop",
        task="login",
        attempt=2,
        thread="THREAD",
        mailbox="box",
        worktree="/w/login-2",
        branch="orch/shop/t/login/2",
        base_commit="c0",
        database="/p/bus.db",
        database_id="ID",
    )

    assert brief.splitlines()[:5] == [
        "Task login of run shop, attempt 2, thread THREAD.",
        "Worktree: /w/login-2",
        "Branch: orch/shop/t/login/2, from c0",
        "Work only in the worktree. Commit there; what is not committed does not count.",
        "Claim:  inbox claim THREAD --mailbox box --agent YOU --json   (gives the token)",
    ]
    assert brief.splitlines()[-1] == (
        "Every call takes --db /p/bus.db --db-id ID (or INBOX_DB, INBOX_DB_ID)."
    )


def test_a_brief_says_when_what_is_left_is_committed():
    facts = {**FACTS, "mailbox": "box"}
    brief = brief_of(**facts, worktree="/w", database="/d", harvest=True)

    rule = "What you leave uncommitted there is committed for you once you have ended."
    assert f"Work only in the worktree. {rule}" in brief.splitlines()


def test_a_brief_without_a_worktree_begins_with_how_to_claim():
    facts = {**FACTS, "mailbox": "box"}
    for database in ("/d", "/d" * 2000):
        lines = brief_of(**facts, worktree=None, database=database).splitlines()

        assert lines[1].startswith(f"Claim:  inbox claim {FACTS['thread']} --mailbox box ")
        assert "commit" not in " ".join(lines)


def test_a_path_stands_in_a_brief_as_long_as_all_of_it_has_2_kib():
    def length(path: str) -> int:
        return len(brief_of(**FACTS, worktree=path, database="/d"))

    room = work.MAX_BRIEF_BYTES - length("/")
    whole = brief_of(**FACTS, worktree="/" * (room + 1), database="/d")

    assert len(whole) == work.MAX_BRIEF_BYTES
    assert "Worktree: /" in whole and "--db /d " in whole
    longer = brief_of(**FACTS, worktree="/" * (room + 2), database="/d")
    assert "Worktree: (its path is long: it stands beside this brief)\n" in longer
    assert "--db (its path is long: it stands beside this brief) --db-id" in longer


def test_earlier_attempts_stand_below_the_text_of_the_task():
    assert texts.with_earlier("Do it", ["Attempt 1."]) == (
        "Do it\n\nEarlier attempts\n\nAttempt 1."
    )


def test_earlier_attempts_fit_up_to_16_kib():
    most = ["x" * 8191, "x" * 8191]

    assert texts.fits(most)
    assert not texts.fits(["x" * 8191, "x" * 8192])
    assert earlier_part(texts.with_earlier("T", most)) == "\n\n".join(most)


def test_what_is_attached_is_said_first():
    note = "(All of this, whole, is attached as earlier-attempts.txt.)"

    assert earlier_part(texts.with_earlier("T", ["a", "b"], attached=True)) == f"{note}\n\na\n\nb"

    room = texts.MAX_EARLIER_BYTES - len(note) - 2
    most, more = (
        earlier_part(texts.with_earlier("T", ["x" * size], attached=True))
        for size in (room, room + 1)
    )
    assert most == f"{note}\n\n{'x' * room}"
    assert more.endswith(" … (cut)")


def test_the_oldest_attempts_are_left_out_and_the_last_of_them_is_cut():
    earlier = ["old", "middle" * 2000, "new" * 3000]
    part = earlier_part(texts.with_earlier("T", earlier))
    room = texts.MAX_EARLIER_BYTES - len("(older attempts are left out)\n\n")
    cut = ("middle" * 2000)[: room - 9000 - 2 - len(" … (cut)".encode())] + " … (cut)"

    assert part == f"(older attempts are left out)\n\n{cut}\n\n{'new' * 3000}"


def test_too_little_room_is_not_used_for_a_piece_of_an_attempt():
    room = texts.MAX_EARLIER_BYTES - len("(older attempts are left out)\n\n")

    def told(newest: int) -> list[str]:
        return earlier_part(texts.with_earlier("T", ["o" * 20_000, "n" * newest])).split("\n\n")

    assert told(room - 201) == ["(older attempts are left out)", "n" * (room - 201)]
    assert told(room) == ["(older attempts are left out)", "n" * room]
    assert told(room - 202) == ["o" * 190 + " … (cut)", "n" * (room - 202)]


# -- the commit of what was left -------------------------------------------------------------


def test_a_commit_says_what_the_task_was_and_what_the_worker_said():
    message = texts.commit_message("Rewrite the lexer", "It is done.\r\n\r\n# Not a comment  \n")

    assert message == "Rewrite the lexer\n\nIt is done.\n\n# Not a comment\n"


def test_a_worker_that_says_nothing_leaves_the_title_alone():
    assert texts.commit_message("Rewrite the lexer", " \n") == "Rewrite the lexer\n"


def test_a_subject_is_one_line_of_bounded_length():
    assert texts.commit_message("a\n  b\tc", "") == "a b c\n"
    assert texts.commit_message("x" * 200, "") == "x" * 98 + " …\n"
    assert texts.commit_message("x" * 100, "") == "x" * 100 + "\n"


def test_long_words_are_cut():
    message = texts.commit_message("T", "y" * 5000)

    assert message == f"T\n\n{'y' * 4000} … (cut)\n"


@given(st.text(), st.text())
def test_whatever_was_said_a_commit_can_hold_it(title: str, words: str):
    message = texts.commit_message(title, words)

    message.encode()
    assert "\0" not in message and "\r" not in message
    subject, _, rest = message.partition("\n")
    assert len(subject) <= 100
    assert rest == "" or rest.startswith("\n")


@given(st.lists(st.integers(0xD800, 0xDFFF), min_size=1))
def test_halves_of_characters_do_not_come_in(halves: list[int]):
    message = texts.commit_message("T", "".join(map(chr, halves)))

    assert message == f"T\n\n{'?' * len(halves)}\n"
