"""What the commands about councils have in common: which council, and how its seats look."""

from collections.abc import Mapping, Sequence

import click

from inbox_orch.shared.shell.blocks import Block, Sentence, Table
from inbox_orch.shared.shell.commandline import stand_in

from ...council.views import CouncilView, SeatView, missing_reason
from ...leader.scheduler import Scheduler
from ...runs.model import Run
from .base import Command, open_scheduler, tell_of_last


def council_option(command: Command) -> Command:
    """`--council C`, or ORCH_COUNCIL, or the only open council."""
    return click.option(
        "--council",
        "council_name",
        envvar="ORCH_COUNCIL",
        metavar="COUNCIL",
        help="The council; default: the only open one.  [env: ORCH_COUNCIL]",
    )(command)


def one_council(command: Command) -> Command:
    """`[COUNCIL]` or `--council C`, or ORCH_COUNCIL, or the only open council."""
    return stand_in("council", "council_name")(council_option(command))


def chosen_council(
    context: click.Context, name: str | None, *, shows: bool = False
) -> tuple[Scheduler, Run]:
    """The scheduler, and the run of the council that the options lead to; for a command that only
    looks (`shows`), where none is named and none is open, the last one, and that is said."""
    scheduler = open_scheduler(context, looks=True)
    run = scheduler.council(name, shows=shows)
    if name is None:
        tell_of_last(context, run, "council")
    return scheduler, run


def in_words(terms: Sequence[str], whole: Mapping[str, str]) -> list[str]:
    """What items have in common; `whole` has the word for each term, and is empty for a pipe."""
    return [whole.get(term, term) for term in terms]


def _note(seat: SeatView) -> str | None:
    """Why a seat has no reply that counts, and what has come of it since."""
    reason = missing_reason(seat)
    if seat.too_late is None:
        return reason
    why = seat.too_late.reason or seat.too_late.state
    return f"{reason}; what came after it does not count: {why}"


def council_blocks(view: CouncilView) -> list[Block]:
    """How a council stands: a line, and its seats."""
    declared = len(view.seats_of(1))
    text = (
        f"{view.run.name}: {view.status}, {view.valid} of {declared} valid, "
        f"quorum {view.council.quorum}"
    )
    rows = tuple(
        (
            seat.seat.reviewer,
            seat.seat.round,
            seat.stands.state,
            0 if seat.attempt is None else seat.attempt.number,
            _note(seat),
        )
        for seat in view.seats
    )
    return [
        Sentence(text, ("council", view.run.name, view.status, view.valid, declared)),
        Table(("REVIEWER", "ROUND", "STATE", "TRY", "NOTE"), rows, fixed=(0, 1, 2), folded=(4,)),
    ]
