"""Documents that a command is given: loaded only then, every problem told."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.commandline import Shell

from ...runs.config import Config
from ...runs.plan import Plan
from ...runs.plan_import import Refused
from ...runs.policies import Named

if TYPE_CHECKING:
    from ...documents.reading import Source


def config_in(shell: Shell, path: str) -> Config:
    """The config in a file; error `usage`, after every problem has been told on stderr."""
    from ...documents.config import read_config

    with problems_told(shell):
        return read_config(path)


def policy_in(shell: Shell, path: str) -> dict[str, Any]:
    """The policy in a file; error `usage` as above."""
    from ...documents.policy import read_policy

    with problems_told(shell):
        return read_policy(path)


def policies_in(shell: Shell, path: str) -> list[Named]:
    """The policies that a file gives, each with its layer's name; error `usage` as above."""
    from ...documents.layers import read_layers

    with problems_told(shell):
        return read_layers(path)


def plan_in(shell: Shell, path: str) -> tuple[Plan, "Source"]:
    """The plan in a file, and the document with its lines; error `usage` as above."""
    from ...documents.plan import read_plan

    with problems_told(shell):
        return read_plan(path)


@contextmanager
def faults_told(shell: Shell, source: "Source") -> Iterator[None]:
    """Turns what speaks against a plan into one error with the lines of the document."""
    from ...documents.problems import Problem

    try:
        yield
    except Refused as refused:
        problems = [
            Problem(fault.path, fault.message, fault.instead, fault.code, cycle=fault.cycle)
            for fault in refused.faults
        ]
        with problems_told(shell):
            raise source.refusal(problems) from refused


@contextmanager
def problems_told(shell: Shell) -> Iterator[None]:
    """One line on stderr for each problem; with --json they stand in the error."""
    from ...documents.problems import lines_of

    try:
        yield
    except InboxOrchError as error:
        if not shell.output.as_json:
            for line in lines_of(error):
                shell.output.notice(line)
        raise
