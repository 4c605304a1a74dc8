"""`orch drive`."""

import contextlib
import os
from typing import Any

import click

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..leader.drive import Drive, Step
from .parts.base import WAIT, chosen_run, no_verify_option, open_scheduler, run_option
from .parts.progress import Progress


@click.command(
    "drive",
    cls=Verb,
    agent=True,
    examples=(
        "orch drive",
        "orch drive --until blocked --wait 90",
        "orch drive --to reviewers --json",
    ),
)
@run_option
@click.option(
    "--until",
    default="run",
    show_default=True,
    metavar="WHAT",
    help="`run`, `blocked`, `change`, or `task:KEY`.",
)
@click.option("--after", metavar="N", help="Tell what came after this event id.")
@click.option(
    "--wait",
    "wait_seconds",
    type=WAIT,
    default="inf",
    show_default=True,
    metavar="SECONDS",
    help="For how long; 0 does what can be done now.",
)
@click.option("--to", metavar="MAILBOX", help="Instead of the tasks' own mailboxes.")
@click.option("--allow-dirty", is_flag=True, help="Also when HEAD lacks changes of yours.")
@no_verify_option
@click.pass_context
def command(
    context: click.Context, /, run_name: str | None, to: str | None, no_verify: bool, **options: Any
) -> None:
    """Bring a run to its end: reconcile, dispatch what is ready, wait; again and again.

    Ends when the run does (0 when it succeeded, else 11), or when nothing moves without a
    decision (11). Exit 8: time is over. Stopping it, or a crash, loses nothing: workers go on,
    and the next drive takes up where this one was. Several may drive one run at once.

    On a terminal it shows how the run stands; elsewhere it prints JSON Lines, the last of which
    has the type `outcome`.
    """
    scheduler = open_scheduler(context)
    run = chosen_run(scheduler, run_name)
    output = shell_of(context).output
    progress = Progress(output, scheduler, run)
    wanted = Drive(
        mailbox=to,
        within=os.getcwd(),
        checks=not no_verify,
        on_look=progress.looked,
        pulse=progress.pulse,
        **options,
    )
    steps = scheduler.drive(run, wanted)
    try:
        # A check that runs is ended before the database is closed, even if the reader is gone.
        with contextlib.closing(steps):
            for step in steps:
                progress.tell(step)
                if wanted.after is None:
                    _mark(progress, step)
    except InboxOrchError as error:
        progress.fail(error)


def _mark(progress: Progress, step: Step) -> None:
    try:
        progress.scheduler.mark_told(step)
    except InboxOrchError as error:
        # It has been told; being told again is all that can follow.
        progress.output.notice(f"the cursor was not moved: {error.message}")
