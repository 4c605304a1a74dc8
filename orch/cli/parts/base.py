"""What the commands of `orch` have in common: opening the scheduler, the run, how things look."""

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from inbox_orch.inbox import Bus
from inbox_orch.inbox.domain.limits import check_body
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import counted
from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import Number, shell_of, stand_in
from inbox_orch.shared.shell.inputs import given_text, warn_of_delimiter

from ...attempts.rows import Harvested
from ...leader.scheduler import Scheduler
from ...runs import limits
from ...runs.model import Run

Command = TypeVar("Command", bound=Callable[..., Any])

WAIT = Number(0, limits.MAX_WAIT_SECONDS, seconds=True, forever=True)


def open_scheduler(
    context: click.Context, *, looks: bool = False, perhaps_alone: bool | None = None
) -> Scheduler:
    """The scheduler on the database that the options lead to; closed when the command ends.

    `looks` is for a command that changes nothing: an older schema is read in the newest one and
    stays as it is, and a disk without any room left does not matter. For what makes room, and
    for what may wait, `perhaps_alone` says the latter by itself.
    """
    shell = shell_of(context)
    bus = Bus.open(
        shell.database,
        database_id=shell.expected_id,
        busy_seconds=shell.busy_seconds,
        notice=shell.output.notice,
        looks=looks,
        perhaps_alone=looks if perhaps_alone is None else perhaps_alone,
    )
    context.call_on_close(bus.close)
    return Scheduler(bus, shell.agent)


def one_run(command: Command) -> Command:
    """`[RUN]` or `--run R`, or ORCH_RUN, or the only open run: where a run is all that is meant."""
    return stand_in("run", "run_name")(run_option(command))


def run_option(command: Command) -> Command:
    """`--run R`, or ORCH_RUN, or the only open run."""
    return click.option(
        "--run",
        "run_name",
        envvar="ORCH_RUN",
        metavar="RUN",
        help="The run; default: the only open one.  [env: ORCH_RUN]",
    )(command)


def limit_option(command: Command) -> Command:
    """`--limit N`."""
    return click.option(
        "--limit",
        type=Number(1, limits.MOST_ROWS, whole=True),
        default=limits.DEFAULT_ROWS,
        show_default=True,
        metavar="N",
        help="At most so many tasks; what is left out is counted.",
    )(command)


def tell_left_out(context: click.Context, number: int) -> None:
    """A line on stderr about what is not in a list (with --json it is `truncated`)."""
    output = shell_of(context).output
    if number and not output.as_json:
        output.notice(f"{number} more tasks are left out; --limit N shows more")


def harvest_option(words: str) -> Callable[[Command], Command]:
    """`--harvest/--no-harvest`; None where neither is given."""
    return click.option("--harvest/--no-harvest", default=None, help=words)


def notify_option(command: Command) -> Command:
    """`--notify CMD|bell|desktop`, any number of times."""
    return click.option(
        "--notify",
        multiple=True,
        metavar="CMD|bell|desktop",
        help="Is given each question, failure, decision and the end, as JSON on its standard "
        "input; repeatable.",
    )(command)


def harvested_words(done: Harvested | None) -> str | None:
    """What was committed for a worker, in words."""
    if done is None:
        return None
    return f"{counted(done.files, 'file')} that the worker had left uncommitted, as {done.commit}"


def gate_slots_option(command: Command) -> Command:
    """`--gate-slots N`."""
    return click.option(
        "--gate-slots",
        type=Number(1, limits.MOST_GATE_SLOTS, whole=True),
        metavar="N",
        help="So many checks and gates at once.  [default: checks one at a time, gates of "
        "blueprints on half of the processors, at least 2]",
    )(command)


def key_option(command: Command) -> Command:
    """`--key K`."""
    return click.option(
        "--key", metavar="KEY", help="Makes a repeat of this call return its first result."
    )(command)


def no_verify_option(command: Command) -> Command:
    """`--no-verify`."""
    return click.option(
        "--no-verify", is_flag=True, help="Run no checks: leave them to another leader."
    )(command)


def chosen_run(scheduler: Scheduler, name: str | None) -> Run:
    """The run that the options lead to, for a command that may change it."""
    return scheduler.run(name)


def shown_run(context: click.Context, scheduler: Scheduler, name: str | None) -> Run:
    """The run that the options lead to, for a command that only looks: where none is named and
    none is open it is the last one, and that is said."""
    run = scheduler.run(name, shows=True)
    if name is None:
        tell_of_last(context, run)
    return run


def tell_of_last(context: click.Context, run: Run, kind: str = "run") -> None:
    """Say that a closed run or council was taken because none is open: on stderr; with --json it
    is `last_run` in the data."""
    if run.state != "closed":
        return
    output = shell_of(context).output
    if output.as_json:
        output.also["last_run"] = run.name
    else:
        output.notice(f"no {kind} is open: this is {run.name}, the last; --{kind} names another")


def lead_on(
    context: click.Context, scheduler: Scheduler, run: Run | str, *, just: str | None = None
) -> None:
    """Say what to do next with a run, at a terminal: neither in a pipe nor with --json, where each
    line is a value, nor after what did not go well, which has a hint of its own. `just` is what the
    call has done, where the run does not tell (see `Facts`)."""
    output = shell_of(context).output
    if output.exit_code or not output.converses:
        return
    from ...leader.next_facts import facts_of
    from ...leader.next_rules import next_line

    # What was asked for is done: that must not be hidden by what would have come after.
    with contextlib.suppress(InboxOrchError):
        found = scheduler.run(run) if isinstance(run, str) else run
        facts = facts_of(scheduler.desk, found, os.environ.get("ORCH_RUN") or None, just)
        output.notice(f"next: {next_line(facts)}")


def base_conflict(key: str, paths: Sequence[str]) -> Sentence:
    """What stands in the way of a task whose dependencies do not merge."""
    return Sentence(
        f"{key}: what it depends on does not merge: {', '.join(paths)}",
        (key, "base_conflict", tuple(paths)),
    )


def read_body(body: str | None, body_file: str | None) -> str | None:
    """The body that the options give, None when they give none; error `usage`."""
    text = given_text(body, body_file, limits.MAX_TASK_BODY_BYTES)
    if text is None:
        return None
    warn_of_delimiter(text, shell_of(click.get_current_context()).output)
    return check_body(limits.check_task_body(text))


def obstacle_block(obstacle: str) -> Sentence:
    """Why submitted work cannot be looked at now."""
    return Sentence(f"Submitted work waits: {obstacle}", ("obstacle", obstacle))
