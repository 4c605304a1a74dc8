"""What the commands that say something of a patch have in common."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from inbox_orch.shared.ids import counted
from inbox_orch.shared.shell.blocks import Sentence, Table
from inbox_orch.shared.shell.commandline import shell_of

from ...patches.model import Patch
from ...runs.desk import Desk
from ...runs.model import Run
from ...views import patches as views
from ...views.patches import Listed
from .base import Command, lead_on, open_scheduler, run_option

if TYPE_CHECKING:
    from ...leader.patches import Said
    from ...leader.scheduler import Scheduler


def patch_argument(command: Command) -> Command:
    """`[--run R] PATCH`."""
    return run_option(click.argument("patch", metavar="PATCH")(command))


def patch_table(found: Sequence[Listed], if_empty: str = "nothing") -> Table:
    """Patches, each with how it stands and why."""
    rows = tuple((each.name, each.state, each.size, each.patch.author, each.why) for each in found)
    headings = ("PATCH", "STATE", "CHANGES", "AUTHOR", "WHY")
    return Table(headings, rows, if_empty, (0, 1), (3, 4), (4,))


def say(
    context: click.Context,
    about: tuple[str | None, str],
    words: str,
    act: Callable[[Desk, Run, Patch], "Said"],
) -> None:
    """Find the patch that is named, by the run's name and its own; let `act` say something of it,
    and tell what that came to."""
    run_name, name = about
    scheduler = open_scheduler(context)
    run, found = views.named(scheduler.desk, name, run_name)
    said = act(scheduler.desk, run, found.patch)
    text = f"{words} patch {said.name}: it is {said.state}"
    if said.missing:
        text += f", and waits for {counted(said.missing, 'more approval')}"
    if said.denied_by:
        text += f", and still denied by {', '.join(said.denied_by)}"
    output = shell_of(context).output
    values = (said.name, said.state) if said.next is None else (said.name, said.state, said.next)
    output.result(said.as_json(), Sentence(text, values))
    tell_next(context, scheduler, run, said.next)


def tell_next(context: click.Context, scheduler: "Scheduler", run: Run, call: str | None) -> None:
    """What to do next about a patch, at a terminal; without that, what there is to do in its run.
    In a pipe and in JSON it is a value of its own."""
    output = shell_of(context).output
    if call is None:
        lead_on(context, scheduler, run)
    elif output.converses and not output.exit_code:
        output.notice(f"next: {call}")
