"""What is known of an attempt beyond its columns: values, and the column that they stand in."""

import json

from inbox_orch.orch.attempts.rows import (
    Adopted,
    Brought,
    Details,
    Failure,
    Harvested,
    Late,
    Start,
    Text,
    details_of,
    details_with,
    failure_column,
)
from inbox_orch.orch.gates.checks import Checked
from inbox_orch.orch.git.copying import LeftOut
from inbox_orch.orch.runs.model import Attempt, Conflict
from inbox_orch.shared.processes.endings import Ending

NEW = Attempt(*(None,) * len(Attempt._fields))
CHECK = Checked("make", Ending(2), 1.5, "it broke", 8, "check-1.txt", "ab" * 32, 8)
EVERY = Details(
    not_copied=(LeftOut("data/big", "it is too large"),),
    untracked_at_start=("venv/", "x"),
    dirty_paths=("a.py",),
    unpushed_submodules=("lib",),
    change_summary=" a.py | 1 +",
    adopted=Adopted("c0", "worktree", "lead"),
    checks=(CHECK,),
    verdict_message="17",
    late=Late("c1", 2, "refs/orch/late/A"),
    harvest=False,
    harvested=Harvested("c2", 3),
    start=Start("t0", "c3", "t1", True),
    unverified="no gate could judge it",
    handed_in="c4",
    hands_in_text=True,
    text=Text("p.diff", "d0", 12, "diff", "w1", "P"),
    brought=Brought("c5", "d1", "edits", ("counts mended",)),
    ignored="1 ignored file was there",
)


def test_every_field_is_read_as_it_was_written():
    assert None not in EVERY
    assert details_of(NEW._replace(details=details_with(NEW, EVERY))) == EVERY


def test_nothing_is_known_of_an_attempt_without_details():
    assert details_of(NEW) == Details()
    assert details_with(NEW, Details()) == "{}"


def test_the_column_has_the_bytes_that_earlier_releases_wrote():
    assert details_with(NEW, EVERY) == json.dumps(
        {
            "not_copied": [{"path": "data/big", "reason": "it is too large"}],
            "untracked_at_start": ["venv/", "x"],
            "dirty_paths": ["a.py"],
            "unpushed_submodules": ["lib"],
            "change_summary": " a.py | 1 +",
            "adopted": {"head": "c0", "source": "worktree", "by": "lead"},
            "checks": [CHECK.as_json()],
            "verdict_message": "17",
            "late": {"head": "c1", "commits": 2, "ref": "refs/orch/late/A"},
            "harvest": False,
            "harvested": {"commit": "c2", "files": 3},
            "start": {"tree": "t0", "commit": "c3", "base_tree": "t1", "prove": True},
            "unverified": "no gate could judge it",
            "handed_in": "c4",
            "hands_in_text": True,
            "text": {
                "name": "p.diff",
                "sha256": "d0",
                "size": 12,
                "way": "diff",
                "by": "w1",
                "replaces": "P",
            },
            "brought": {"commit": "c5", "sha256": "d1", "way": "edits", "notes": ["counts mended"]},
            "ignored": "1 ignored file was there",
        }
    )


def test_what_is_there_keeps_its_place_and_unknown_keys_stay():
    before = NEW._replace(details='{"later": {"b": 1}, "checks": [], "change_summary": ""}')
    after = details_with(before, Details(checks=(CHECK,), verdict_message="5"))

    assert after == json.dumps(
        {
            "later": {"b": 1},
            "checks": [CHECK.as_json()],
            "change_summary": "",
            "verdict_message": "5",
        }
    )
    assert details_of(before) == Details(checks=(), change_summary="")


def test_a_failure_says_its_code_first_and_then_what_the_error_says():
    column = failure_column(Failure("disk_full", {"path": "/x", "status": 1}))

    assert column == '{"code": "disk_full", "path": "/x", "status": 1}'
    assert details_of(NEW._replace(details=column)) == Details()


def test_a_conflict_is_read_as_it_was_written_and_has_the_bytes_of_earlier_releases():
    column = Conflict("c0", ("a.py", "ünder")).column()

    assert column == '{"onto": "c0", "paths": ["a.py", "ünder"]}'
    assert NEW._replace(conflict=column).found_conflict == Conflict("c0", ("a.py", "ünder"))
    assert NEW.found_conflict is None
