"""What is kept and said of checks, without any process."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inbox_orch.orch.gates.checks import Checked, brief_command, objection, report
from inbox_orch.orch.git.masking import MaskedStream
from inbox_orch.shared.processes.endings import Ending
from inbox_orch.shared.processes.kept import Kept

SECRET = "s3cret"


def checked(ending: Ending, command: str = "make test", tail: str = "") -> Checked:
    return Checked(command, ending, 1.25, tail, len(tail), "check-1.txt", "0" * 64, len(tail))


@pytest.mark.parametrize(
    "ending, sentence",
    [
        (Ending(2), "`make test` ended with exit status 2"),
        (Ending(None, 9), "`make test` was killed by signal 9 (SIGKILL)"),
        (Ending(None, timed_out=600.0), "`make test` was stopped after 600 s, its time limit"),
        (Ending(0, timed_out=5.0), "`make test` was stopped after 5 s, its time limit"),
    ],
)
def test_a_check_that_did_not_pass_is_an_objection(ending: Ending, sentence: str):
    passed = checked(Ending(0), "make")

    assert objection([passed, checked(ending)]) == f"checks: {sentence}"
    assert not checked(ending).passed


def test_checks_that_pass_are_no_objection():
    assert objection([]) is None
    assert objection([checked(Ending(0))]) is None


def test_a_long_command_of_several_lines_is_told_on_one_short_line():
    reason = objection([checked(Ending(1), "set -e\n" + "make test && " * 100)])

    assert reason is not None
    assert reason.startswith("checks: `set -e make test && ")
    assert len(reason) < 150
    assert "\n" not in reason


def test_a_report_has_the_output_of_what_failed_alone():
    text = report([checked(Ending(0), "make", ""), checked(Ending(1), tail="it broke")])

    assert text == (
        "`make` ended with exit status 0 (1.2 s).\n\n"
        "`make test` ended with exit status 1 (1.2 s).\n\nit broke"
    )


@given(st.sampled_from([Ending(0), Ending(3), Ending(None, 15), Ending(None, timed_out=0.5)]))
def test_what_is_stored_of_a_check_comes_back_as_it_was(ending: Ending):
    result = checked(ending, tail="tail")

    assert Checked.from_json(result.as_json()) == result


@given(st.lists(st.integers(1, 12), max_size=40), st.integers(0, 8))
def test_a_secret_is_masked_wherever_the_output_is_cut_into_pieces(cuts: list[int], offset: int):
    whole = ("." * offset + SECRET + "-" + SECRET + SECRET + "!").encode()
    kept = Kept("output", "orch", MaskedStream((SECRET,)))
    rest = whole
    for cut in cuts:
        kept.add(rest[:cut])
        rest = rest[cut:]
    kept.add(rest)
    kept.finish()

    assert kept.content() == whole.replace(SECRET.encode(), b"***")


def test_output_without_secrets_is_kept_as_it_comes():
    kept = Kept("output", "orch", MaskedStream(()))
    kept.add(b"\xff\x00 text")
    kept.finish()

    assert kept.content() == b"\xff\x00 text"


def test_a_command_is_told_whole_up_to_80_characters():
    assert brief_command("x" * 80) == "x" * 80
    assert brief_command("x" * 81) == "x" * 79 + "…"
    assert brief_command(" make\n  test\t") == "make test"


def test_a_check_has_every_key_in_json():
    ending = Ending(None, 9, 5.0)

    assert checked(ending, tail="abc").as_json() == {
        "command": "make test",
        "passed": False,
        "exit_status": None,
        "signal": 9,
        "timed_out_seconds": 5.0,
        "seconds": 1.25,
        "output_tail": "abc",
        "output_bytes": 3,
        "artifact": "check-1.txt",
        "artifact_sha256": "0" * 64,
        "artifact_bytes": 3,
    }
    assert checked(Ending(0)).as_json()["passed"] is True


def test_a_report_has_no_output_of_what_passed_and_no_gap_for_what_printed_nothing():
    assert report([checked(Ending(0), "make", "fine")]) == (
        "`make` ended with exit status 0 (1.2 s)."
    )
    assert report([checked(Ending(1), "make")]) == "`make` ended with exit status 1 (1.2 s)."
