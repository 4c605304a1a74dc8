"""What a shell may complete from the database: runs, councils, tasks, attempts, mailboxes, agents.

Reads only, and never waits.
"""

import click

from inbox_orch.inbox import Bus
from inbox_orch.inbox.services import naming as bus_naming
from inbox_orch.shared.shell.commandline import shell_of
from inbox_orch.shared.shell.completion import MOST_SUGGESTED, Suggestion, commands_and
from inbox_orch.shared.shell.topics import TOPICS

from ...leader import naming
from ...runs.desk import Desk

_TASKS = ("task", "tasks", "--depends-on", "--on")
_RUNS, _COUNCILS = ("--run", "run"), ("--council", "council")
_OTHERS = ("attempt", "checkpoint", "patch")
_UNTIL = ("change", "blocked", "run")


def suggest(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[Suggestion]:
    """(name, what it is) for a parameter; errors of opening the database are the caller's."""
    option = parameter.opts[0]
    if option == "words":
        return commands_and(context, tuple(TOPICS), context.params.get("words") or ())
    if option in ("--to", "--agent"):
        return _of_the_bus(context, option, incomplete)
    if option in (*_TASKS, *_RUNS, *_COUNCILS, *_OTHERS, "--until"):
        return _of_the_scheduler(context, option, incomplete)
    return []


def _of_the_bus(context: click.Context, option: str, incomplete: str) -> list[Suggestion]:
    bus = _open(context)
    if option == "--to":
        return [
            (name, "mailbox")
            for name in bus_naming.mailboxes_beginning(bus.desk, incomplete, MOST_SUGGESTED)
        ]
    return [
        (name, "agent")
        for name in bus_naming.agents_beginning(bus.desk, incomplete, MOST_SUGGESTED)
    ]


def _of_the_scheduler(context: click.Context, option: str, incomplete: str) -> list[Suggestion]:
    desk = Desk(_open(context))
    if option in _RUNS:
        return naming.runs_beginning(desk, incomplete, MOST_SUGGESTED)
    if option in _COUNCILS:
        return naming.councils_beginning(desk, incomplete, MOST_SUGGESTED)
    run = context.params.get("run_name")
    if option == "attempt":
        return naming.attempts_beginning(desk, run, incomplete, MOST_SUGGESTED)
    if option == "checkpoint":
        found = naming.attempts_beginning(desk, run, incomplete.rstrip("/"), MOST_SUGGESTED)
        return [(f"{name}/", about) for name, about in found]
    if option == "patch":
        return naming.patches_beginning(desk, run, incomplete, MOST_SUGGESTED)
    if option != "--until":
        return naming.tasks_beginning(desk, run, incomplete, MOST_SUGGESTED)
    what, colon, key = incomplete.partition(":")
    if not colon or what != "task":
        return [(word, "") for word in (*_UNTIL, "task:")]
    found = naming.tasks_beginning(desk, run, key, MOST_SUGGESTED)
    return [(f"task:{name}", about) for name, about in found]


def _open(context: click.Context) -> Bus:
    """The bus; a shell that completes waits for no lock, and gets no notices."""
    shell = shell_of(context)
    bus = Bus.open(shell.database, database_id=shell.expected_id, busy_seconds=0, looks=True)
    context.call_on_close(bus.close)
    return bus
