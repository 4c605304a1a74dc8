"""`orch show`."""

import click

from inbox_orch.shared.shell.blocks import Block
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..leader import what
from ..leader.scheduler import Scheduler
from ..leader.what import Thing
from .attempt.show import tell_attempt
from .parts.base import open_scheduler, run_option
from .run.show import tell_run
from .task.show import tell_task


@click.command(
    "show",
    cls=Verb,
    agent=True,
    examples=("orch show lexer", "orch show lexer/1 --json", "orch show 01JD"),
)
@run_option
@click.argument("thing", metavar="RUN|TASK|ATTEMPT|THREAD")
@click.pass_context
def command(context: click.Context, run_name: str | None, thing: str) -> None:
    """Print a run, a task, an attempt or a thread, by its name, key or id, or by the beginning of
    one that only it has; as `run show`, `task show`, `attempt show` and `inbox show` print it.
    """
    scheduler = open_scheduler(context, looks=True)
    found = what.named(scheduler.desk, thing, run_name)
    if found.kind == "run":
        tell_run(context, scheduler.run(found.id))
    elif found.kind == "task":
        tell_task(context, scheduler, what.run_of_task(scheduler.desk, found.id), found.id)
    elif found.kind == "attempt":
        tell_attempt(context, scheduler, *scheduler.attempt_named(found.id, None))
    else:
        _tell_thread(context, scheduler, found)


def _tell_thread(context: click.Context, scheduler: Scheduler, found: Thing) -> None:
    from inbox_orch.inbox.cli.base import artifact_table, message_block, thread_facts

    bus = scheduler.bus
    shown = bus.show(found.id, agent=scheduler.desk.caller or bus.agent)
    blocks: list[Block] = [
        thread_facts(shown.thread, bus.now_ms),
        *(message_block(message, bus.now_ms) for message in shown.messages),
    ]
    if shown.artifacts:
        blocks.append(artifact_table(shown.artifacts))
    shell_of(context).output.result(shown.as_json(), *blocks)
