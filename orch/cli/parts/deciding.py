"""What a drive does about decisions that nobody takes, as its options say."""

import click

from inbox_orch.shared.errors import usage
from inbox_orch.shared.shell.commandline import Choice, Number

from ...runs.config import DECIDE_WITHIN_SECONDS, ON_NO_ANSWER, NoAnswer
from ...runs.limits import MAX_CLOCK_SECONDS
from .base import Command


def unanswered_options(command: Command) -> Command:
    """`--on-no-answer` and `--decide-within`."""
    within = click.option(
        "--decide-within",
        type=Number(1, MAX_CLOCK_SECONDS, seconds=True),
        metavar="SECONDS",
        help="With --on-no-answer abandon: how long after it was asked for.  "
        f"[default: {DECIDE_WITHIN_SECONDS:.0f}]",
    )
    return click.option(
        "--on-no-answer",
        type=Choice(ON_NO_ANSWER),
        help="What becomes of a decision of a blueprint that nobody takes.  [default: as the "
        "config says, else wait]",
    )(within(command))


def unanswered_of(on_no_answer: str | None, decide_within: float | None) -> NoAnswer | None:
    """What the options say; None where they say nothing. Error `usage`."""
    if decide_within is not None and on_no_answer != "abandon":
        raise usage(
            "--decide-within says when a decision is abandoned",
            hint="add --on-no-answer abandon, or leave it out",
        )
    if on_no_answer in (None, "wait"):
        return None
    return NoAnswer("abandon", decide_within or DECIDE_WITHIN_SECONDS)
