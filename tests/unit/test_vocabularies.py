"""Every part names its own error codes and kinds of events, and they are joined in one place."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from inbox_orch.inbox.domain.folding import BUS_EVENTS
from inbox_orch.shared.errors import (
    ERRORS,
    EXIT_CODES,
    PARTS,
    InboxOrchError,
    code_named,
    error_codes,
    event_kinds,
    vocabulary,
)

ROOT = Path(__file__).resolve().parents[2]
# The wings of the scheduler that others stand on come first, as in the contract of imports.
ORDER = (
    *("shared", "migrations", "inbox", "git", "runs", "journal", "patches", "gates", "attempts"),
    *("integration", "cleanup", "purge", "stages", "council", "views", "pictures", "documents"),
    *("leader", "schemas", "board", "demo", "cli"),
)


def wing(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return parts[1] if parts[0] == "orch" else parts[0]


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for top in ("inbox", "orch", "shared", "migrations"):
        for path in sorted((ROOT / top).rglob("*.py")):
            # Nor what only puts their kinds into words.
            if path.stem not in ("vocabulary", "errors", "sentences"):
                yield path, ast.parse(path.read_text())


def raised() -> Iterator[tuple[str, str]]:
    """(wing, code) of each call that makes an error with a code of its own."""
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "InboxOrchError":
                code = node.args[0]
                if isinstance(code, ast.Constant) and isinstance(code.value, str):
                    yield wing(path), code.value


def owners() -> dict[str, str]:
    own = dict.fromkeys(ERRORS, "shared")
    for part in PARTS:
        name = part.removeprefix("orch.").split(".")[0]
        own |= dict.fromkeys(vocabulary(part).ERRORS, name)
    return own


def test_every_vocabulary_is_joined():
    found = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts[:-1])
        for path in ROOT.glob("*/*/vocabulary.py")
        if path.parts[len(ROOT.parts)] in ("inbox", "orch", "shared")
    }

    assert found == set(PARTS)


def test_no_two_parts_name_the_same_code():
    named = Counter([*ERRORS, *(code for part in PARTS for code in vocabulary(part).ERRORS)])

    assert [code for code, times in named.items() if times > 1] == []
    assert set(named) == set(EXIT_CODES)


def test_no_two_parts_name_the_same_kind_of_event():
    named = Counter(kind for part in PARTS for kind in vocabulary(part).EVENTS)

    assert [kind for kind, times in named.items() if times > 1] == []
    assert set(named) == set(event_kinds())


def test_no_two_codes_stand_in_one_place():
    places = Counter((each.exit_code, each.place) for each in error_codes().values())

    assert [place for place, times in places.items() if times > 1] == []


def test_a_part_raises_its_own_codes_and_those_of_what_it_stands_on():
    own = owners()
    above = {
        (where, code) for where, code in raised() if ORDER.index(own[code]) > ORDER.index(where)
    }

    assert above == set()


def test_every_code_and_every_kind_is_used():
    said = {
        node.value
        for _, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    # The kinds of a change of a state are put together from what changes and its state.
    made = {*vocabulary("orch.runs").STATE_EVENTS}

    assert sorted(set(EXIT_CODES) - said) == []
    assert sorted(set(event_kinds()) - said - made) == []


def test_every_kind_that_is_recorded_is_named():
    found = set()
    for _, tree in trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            if called.endswith(("events.append", "record_attempt", "record_task", ".record")):
                found |= {
                    each.value
                    for each in node.args
                    if isinstance(each, ast.Constant) and "_" in str(each.value)
                }

    assert {"late_work_kept", "round_closed", "cancel_seen", "worktree_removed"} <= found
    assert sorted(found - set(event_kinds())) == []


def test_the_kinds_about_threads_are_those_that_are_folded():
    assert set(vocabulary("inbox.domain").EVENTS) == BUS_EVENTS


@pytest.mark.parametrize("code", EXIT_CODES)
def test_an_error_knows_what_its_code_stands_for(code):
    failure = InboxOrchError(code, "it failed")

    assert failure.exit_code == EXIT_CODES[code]
    assert failure.retryable == error_codes()[code].retryable


def test_a_code_that_no_part_names_is_a_mistake():
    assert code_named("no_such_code") is None
    with pytest.raises(AssertionError, match="no_such_code"):
        InboxOrchError("no_such_code", "it failed")


@pytest.mark.parametrize(
    "code, loaded",
    [
        ("busy", []),
        ("lease_lost", ["inbox.domain"]),
        ("git_failed", ["inbox.domain", "orch.git"]),
    ],
)
def test_no_part_is_loaded_for_a_code_of_another_that_comes_before_it(code, loaded):
    source = (
        "import sys; from inbox_orch.shared.errors import InboxOrchError;"
        f" InboxOrchError({code!r}, '').exit_code;"
        "print(*sorted(name for name in sys.modules if name.endswith('.vocabulary')))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", source], capture_output=True, text=True)

    assert done.stdout.split() == [f"inbox_orch.{part}.vocabulary" for part in loaded]
