"""`orch logs`."""

import contextlib

import click

from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.blocks import harmless
from inbox_orch.shared.shell.commandline import Number, Verb, shell_of
from inbox_orch.shared.shell.output import Output

from ..leader.follow import logs_of
from ..runs.limits import MOST_ATTEMPTS_EVER
from ..views import logs
from ..views.changes import newest_or_named
from .parts.base import open_scheduler, run_option, tell_of_last

_HEADINGS = {"setup": "set-up", "check": "check", "output": "output", "message": "said"}


@click.command(
    "logs",
    cls=Verb,
    agent=True,
    examples=("orch logs lexer", "orch logs lexer --follow", "orch logs lexer --attempt 1"),
)
@run_option
@click.argument("task", metavar="TASK|ATTEMPT")
@click.option(
    "--attempt",
    "number",
    type=Number(1, MOST_ATTEMPTS_EVER, whole=True),
    metavar="N",
    help="Of this attempt of the task.  [default: the newest]",
)
@click.option("--follow", is_flag=True, help="Go on with what comes, until the attempt ends.")
@click.pass_context
def command(
    context: click.Context, run_name: str | None, task: str, number: int | None, follow: bool
) -> None:
    """Print what an attempt has left to read, each under a heading: the output of a set-up that
    failed, what was said on its thread, the output of the worker's command, that of its checks.

    A worker's output is there once its command has ended, since `inbox work` keeps it then; what
    it says with `inbox update` is there at once. Of each text the last MiB. --json prints JSON
    Lines; the last has the type `outcome`.
    """
    scheduler = open_scheduler(context, looks=True, perhaps_alone=not follow)
    named = task if number is None else f"{task}/{number}"
    run, listed = newest_or_named(scheduler.desk, named, run_name)
    if run_name is None and task.partition("/")[0] == listed.key:
        tell_of_last(context, run)
    output, attempt, count = shell_of(context).output, listed.attempt, 0
    try:
        with contextlib.closing(logs_of(scheduler.desk, run, attempt, follow=follow)) as pieces:
            for attempt, new in pieces:  # noqa: B007 - its last state is told
                for source in new:
                    _tell(output, logs.read(scheduler.desk, run, source))
                count += len(new)
    except InboxOrchError as error:
        if not output.as_json or not output.answered:
            raise
        output.last_line(None, error)
        output.complain(error.message)
        return
    data = {"attempt": listed._replace(attempt=attempt).as_json(), "logs": count, **output.also}
    if output.as_json:
        output.last_line(data, None)
    elif not count:
        output.notice(f"{listed.name} is {attempt.state}: it has left nothing to read yet")


def _tell(output: Output, log: logs.Log) -> None:
    if output.as_json:
        output.line({"type": "log", **log.as_json()})
        return
    source = log.source
    facts = [] if source.stage is None else [source.stage]
    facts += [_HEADINGS[source.what], source.name, *([source.by] if source.by else [])]
    facts.append(str(rfc3339(source.at)))
    if log.missing:
        facts.append("pruned")
    elif log.truncated:
        facts.append(f"the end of {source.size} bytes")
    text = harmless(log.text, lines=True).rstrip("\n")
    heading = harmless("  ".join(facts))
    output.text(f"==> {heading} <==\n" + (f"{text}\n\n" if text else "\n"))
