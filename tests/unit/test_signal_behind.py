"""A signal that arrives where the interpreter wraps it is still a signal."""

import json
import signal

import pytest

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes.signals import Signalled, signal_behind
from inbox_orch.shared.shell.execution import execute


class SignalWhileAClassIsMade:
    """Python 3.11 turns what is raised here into a RuntimeError."""

    def __set_name__(self, owner: type, name: str) -> None:
        raise Signalled(signal.SIGINT)


def make_a_class():
    return type("Made", (), {"attribute": SignalWhileAClassIsMade()})


def fail_while_cleaning_up():
    try:
        raise Signalled(signal.SIGTERM)
    finally:
        raise InboxOrchError("io_error", "the database could not be closed")


@pytest.mark.parametrize(
    "load, code, error",
    [(make_a_class, 130, "interrupted"), (fail_while_cleaning_up, 143, "terminated")],
    ids=["wrapped", "replaced"],
)
def test_it_gives_its_own_exit_code(load, code, error, capfd: pytest.CaptureFixture[str]):
    assert execute("inbox", load, ["list", "--json"]) == code
    assert json.loads(capfd.readouterr().out)["error"]["code"] == error


def test_people_are_told_in_one_line(capfd: pytest.CaptureFixture[str]):
    assert execute("inbox", make_a_class, ["list"]) == 130
    assert capfd.readouterr() == ("", "inbox: stopped by a signal\n")


def test_any_other_error_has_none_behind_it():
    error = RuntimeError("a bug")
    error.__context__ = ValueError("another")
    error.__context__.__context__ = error
    assert signal_behind(error) is None
