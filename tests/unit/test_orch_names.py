"""Keys of tasks, and the branches and folders that are named after them."""

import re
import subprocess

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from inbox_orch.orch.runs import names
from inbox_orch.orch.runs.model import Run
from inbox_orch.shared.errors import InboxOrchError
from support.buses import refused

ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
ALLOWED = "abz019._-"


def run_called(name: str) -> Run:
    return Run(**dict.fromkeys(Run._fields))._replace(name=name)


def is_accepted(key: str) -> bool:
    try:
        names.check_task_key(key)
    except InboxOrchError:
        return False
    return True


@settings(max_examples=150)
@given(st.text(st.sampled_from(ALLOWED), min_size=1, max_size=41))
def test_every_accepted_key_gives_a_branch_that_git_accepts(key: str):
    assume(is_accepted(key))
    branch = run_called(names.run_name("A title", ULID)).branch_of(key, 1)

    checked = subprocess.run(["git", "check-ref-format", "--branch", branch], capture_output=True)

    assert checked.returncode == 0, branch


@settings(max_examples=300)
@given(st.one_of(st.text(max_size=45), st.text(st.sampled_from(ALLOWED), max_size=45)))
def test_exactly_the_keys_of_the_rule_are_accepted(key: str):
    ruled = re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,39}", key, re.ASCII) is not None
    ruled = ruled and ".." not in key and not key.endswith((".", ".lock"))

    assert is_accepted(key) == ruled


@pytest.mark.parametrize(
    "key", ["", " ", "A", "a b", "a/b", "..", "a..b", "a.", "a.lock", "-a", ".a", "ä", "a\n"]
)
def test_keys_that_git_or_a_file_system_would_take_amiss_are_refused(key: str):
    with refused("usage"):
        names.check_task_key(key)


@settings(max_examples=100)
@given(st.text(min_size=1, max_size=300))
def test_a_run_is_named_in_ascii_whatever_its_title(title: str):
    name = names.run_name(title, ULID)

    assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,32}", name), name
    assert name.endswith("-" + ULID[-8:].lower())


@given(st.lists(st.tuples(st.text("ab1-.", min_size=1, max_size=5), st.integers(1, 30))))
def test_no_two_attempts_share_a_folder_or_a_branch(attempts: list[tuple[str, int]]):
    run = run_called("run")

    assert len({run.folder_of(*a) for a in attempts}) == len(set(attempts))
    assert len({run.branch_of(*a) for a in attempts}) == len(set(attempts))


@pytest.mark.parametrize(
    "title, name",
    [
        ("Log In", "log-in"),
        ("  --A  &  B--  ", "a-b"),
        ("Ärger über 3 Dinge", "arger-uber-3-dinge"),
        ("A\u0308rger", "arger"),
        ("Größe, œuvre, Łódź, İş", "grosse-oeuvre-lodz-is"),
        ("日本語", "run"),
        ("x" * 30, "x" * 24),
        ("x" * 23 + " yz", "x" * 23),
        ("..." + "x" * 30, "x" * 24),
        ("...", "run"),
    ],
)
def test_a_run_has_the_words_of_its_title_in_its_name(title: str, name: str):
    assert names.run_name(title, ULID) == f"{name}-{ULID[-8:].lower()}"


def test_a_task_has_the_letters_of_its_title_in_its_key():
    assert names.task_key("Größe ändern") == "grosse-andern"
    assert names.task_key("日本語") == "task"


def test_an_attempt_is_named_after_its_run_its_task_and_its_number():
    assert run_called("shop").branch_of("login", 2) == "orch/shop/t/login/2"
    assert run_called("r" * 50).branch_of("login", 2) == f"orch/{'r' * 40}/t/login/2"
    assert run_called("shop").folder_of("login", 2) == "shop/login-2"


def test_a_key_that_is_refused_is_told_with_the_rule():
    with refused("usage") as failure:
        names.check_task_key("A" * 70)

    assert failure.value.message == f"'{'A' * 60}' cannot be the key of a task"
    assert failure.value.hint == (
        "1 to 40 of a-z, 0-9, '.', '_', '-'; the first a letter or a digit; "
        "no '..', not ending in '.' or '.lock'"
    )
    assert names.check_task_key("a.b_c-1") == "a.b_c-1"
