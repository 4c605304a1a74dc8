"""`orch drive`."""

import contextlib
import os
from collections.abc import Generator
from typing import Any

import click

from inbox_orch.inbox.worker.plan import MAX_SLOTS
from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.shell.commandline import Number, Verb, shell_of

from ..leader.crew import Crew
from ..leader.drive import Drive, Driven, Step
from ..leader.notices import Notifier, end_of
from ..leader.posts import cast
from ..leader.tracing import Tracing
from ..runs.config import config_of
from .parts.base import (
    WAIT,
    chosen_run,
    gate_slots_option,
    harvest_option,
    lead_on,
    no_verify_option,
    notify_option,
    one_run,
    open_scheduler,
)
from .parts.crewing import posts_wanted, with_option
from .parts.deciding import unanswered_of, unanswered_options
from .parts.naming_blueprints import blueprint_option, drawn_by, folder_of
from .parts.progress import Progress


@click.command(
    "drive",
    cls=Verb,
    agent=True,
    examples=(
        "orch drive",
        "orch drive --until blocked --wait 90",
        "orch drive --to reviewers --json",
        "orch drive --worker './agent.sh' --slots 3",
        "orch drive --with claude --with reviewers=codex",
        "orch drive --with claude --with frontier_reviewer=codex",
    ),
)
@one_run
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
@click.option(
    "--worker",
    "workers",
    multiple=True,
    metavar="[MAILBOX=]CMD",
    help="Start a worker with this command, and end it with the drive; repeatable. It serves "
    "MAILBOX, else every mailbox of the run that no other --worker names.",
)
@with_option()
@click.option(
    "--slots",
    type=Number(1, MAX_SLOTS, whole=True),
    metavar="N",
    help=f"How many tasks each worker does at once, 1 to {MAX_SLOTS}.  [default: 1]",
)
@harvest_option(
    "Commit for the workers what they leave uncommitted.  [default: as each task says, else with a "
    "worker, else the config's]"
)
@gate_slots_option
@blueprint_option("Tasks that name none, and have not begun, go through its stages.")
@notify_option
@unanswered_options
@click.pass_context
def command(
    context: click.Context,
    /,
    run_name: str | None,
    to: str | None,
    no_verify: bool,
    workers: tuple[str, ...],
    adapters: tuple[str, ...],
    slots: int | None,
    harvest: bool | None,
    blueprint: str | None,
    notify: tuple[str, ...],
    **options: Any,
) -> None:
    """Bring a run to its end: reconcile, dispatch what is ready, wait; again and again.

    Ends when the run does (0 when it succeeded, else 11), or when nothing moves without a
    decision (11). Exit 8: time is over. Stopping it, or a crash, loses nothing: workers go on,
    and the next drive takes up where this one was. Several may drive one run at once.

    With --worker nothing else has to run: an `inbox work` is started for each, told to end when
    the drive ends, and hands back what it has not finished. What its command leaves uncommitted is
    committed for it (--no-harvest: it is rejected). --with does the same with a coding agent, and
    knows how it is called, and what its results and failures mean.

    On a terminal it shows how the run stands. In a pipe: a line for each thing that happens: time,
    task, kind, words, tab-separated; the last has the kind `outcome`. --json prints JSON Lines, the
    last of which has the type `outcome`.
    """
    if slots is not None and not (workers or adapters):
        raise usage("--slots is for the workers that --worker starts", hint="leave it out")
    unanswered = unanswered_of(options.pop("on_no_answer"), options.pop("decide_within"))
    output, scheduler = shell_of(context).output, open_scheduler(context)
    run = chosen_run(scheduler, run_name)
    drawn = drawn_by(shell_of(context), blueprint, folder_of(run))
    posts = posts_wanted(output, workers, adapters)
    run, posts = cast(scheduler.desk, run, posts, drawn)
    crew = Crew(scheduler.desk, run, posts, to=to, slots=slots or 1) if posts else None
    progress = Progress(output, scheduler, run)
    notifier = Notifier((*config_of(run).notify, *notify), output.notice)
    wanted = Drive(
        mailbox=to,
        within=os.getcwd(),
        checks=not no_verify,
        on_look=progress.looked,
        pulse=progress.pulse,
        harvest=harvest,
        unsaid_harvest=True if posts else None,
        blueprint=drawn,
        unanswered=unanswered,
        **options,
    )
    try:
        _drive(progress, wanted if crew is None else crew.on(wanted, progress), crew, notifier)
        lead_on(context, scheduler, run)
    except InboxOrchError as error:
        progress.fail(error)


def _drive(progress: Progress, wanted: Drive, crew: Crew | None, notifier: Notifier) -> None:
    """Drive to the end, with all that goes on beside it: workers, notices, exports of the trace."""
    scheduler, run = progress.scheduler, progress.run
    tracing = Tracing(scheduler.desk, run, progress.output.notice)
    with notifier, tracing, notifier.told_of_failure(run), crew or contextlib.nullcontext():
        driven = scheduler.drive(run, tracing.on(notifier.on(wanted)))
        steps = tracing.through(notifier.through(driven))
        ending = _follow(progress, steps, told=wanted.after is None)
        notifier.tell(end_of(ending, ending.failure))


def _follow(progress: Progress, steps: Generator[Step, None, None], *, told: bool) -> Driven:
    """Tell each step, and note in the caller's cursor that it was, if it is to be `told`; returns
    how it ended."""
    # A check that runs is ended before the database is closed, even if the reader is gone.
    with contextlib.closing(steps):
        for step in steps:
            progress.tell(step)
            if told:
                progress.mark(step)
            if step.ending is not None:
                return step.ending
    raise AssertionError("a drive ends with its ending")
