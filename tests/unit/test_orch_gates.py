"""What a gate is and what is told of it, without any process."""

import pytest

from inbox_orch.orch.gates.checks import Checked
from inbox_orch.orch.gates.spec import (
    GateSpec,
    NotStarted,
    Outcome,
    checked,
    limit_seconds,
    patience_seconds,
)
from inbox_orch.orch.runs.limits import DEFAULT_CHECK_SECONDS, FOREIGN_SECONDS
from inbox_orch.orch.runs.model import Limits
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes.endings import Ending

SPEC = GateSpec("curl  --key s3cret", "/tree", "/repo/.git", {}, 5.0, ("s3cret",))


def test_what_is_stored_of_a_command_has_no_secret_and_no_artifact_yet():
    assert checked(SPEC, Ending(1), 0.5, "tail", 4) == Checked(
        "curl  --key ***", Ending(1), 0.5, "tail", 4
    )


def test_output_is_called_by_the_artifact_that_keeps_it():
    assert SPEC.output == "output"
    assert SPEC._replace(artifact="check-2.txt").output == "check-2.txt"


@pytest.mark.parametrize(
    "ending, tail", [(Ending(0), ""), (Ending(1), "tail"), (Ending(0, timed_out=1.0), "tail")]
)
def test_of_what_passed_the_artifact_alone_has_the_output(ending: Ending, tail: str):
    before = Checked("make", ending, 1.5, "tail", 900)
    kept = before.with_artifact("check-1.txt", "0" * 64, 900)

    assert kept == Checked("make", ending, 1.5, tail, 900, "check-1.txt", "0" * 64, 900)
    assert before.output_tail == "tail"


def test_without_an_artifact_nothing_is_said_of_one():
    told = Checked("make", Ending(0), 1.5, "", 0).as_json()

    assert not {name for name in told if name.startswith("artifact")}


def test_an_outcome_has_passed_when_its_command_has():
    assert Outcome(checked(SPEC, Ending(0), 0.5, "", 0), b"").passed
    assert not Outcome(checked(SPEC, Ending(0, timed_out=5.0), 5.0, "", 0), b"").passed


def test_a_check_that_could_not_be_started_is_told_without_secrets():
    failed = NotStarted(SPEC, "Not a directory", gone=False)
    error = failed.as_error("try again")

    assert (error.code, error.hint) == ("io_error", "try again")
    assert error.message == "the check `curl --key ***` could not be started: Not a directory"
    assert error.details == {"folder": "/tree"}
    assert (str(failed), failed.gone, failed.of_git) == ("Not a directory", False, None)


def test_what_git_failed_with_goes_along():
    of_git = InboxOrchError("git_failed", "git status failed")

    assert NotStarted(SPEC, "No such file", gone=True, of_git=of_git).of_git is of_git


def test_each_check_has_its_limit_and_a_minute_more():
    assert limit_seconds(Limits(check_seconds=7.0)) == 7.0
    assert limit_seconds(Limits()) == DEFAULT_CHECK_SECONDS
    assert patience_seconds(0, Limits(check_seconds=7.0)) == FOREIGN_SECONDS
    assert patience_seconds(3, Limits(check_seconds=7.0)) == FOREIGN_SECONDS + 3 * 67.0
