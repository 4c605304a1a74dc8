"""What a shell may complete from the database: runs, councils, tasks, attempts, mailboxes, agents.

Reads only, and waits for nobody.
"""

import click

from inbox_orch.inbox import Bus
from inbox_orch.inbox.services.naming import Naming as BusNaming
from inbox_orch.shared.commandline import shell_of
from inbox_orch.shared.completion import MOST_SUGGESTED, Suggestion, commands_and
from inbox_orch.shared.topics import TOPICS

from ..services.naming import Naming

_TASKS = ("task", "tasks", "--depends-on", "--on")
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
    if option in (*_TASKS, "--run", "--council", "--until", "attempt"):
        return _of_the_scheduler(context, option, incomplete)
    return []


def _of_the_bus(context: click.Context, option: str, incomplete: str) -> list[Suggestion]:
    bus = BusNaming(_open(context).database)
    if option == "--to":
        return [(name, "mailbox") for name in bus.mailboxes_beginning(incomplete, MOST_SUGGESTED)]
    return [(name, "agent") for name in bus.agents_beginning(incomplete, MOST_SUGGESTED)]


def _of_the_scheduler(context: click.Context, option: str, incomplete: str) -> list[Suggestion]:
    names = Naming(_open(context))
    if option == "--run":
        return names.runs_beginning(incomplete, MOST_SUGGESTED)
    if option == "--council":
        return names.councils_beginning(incomplete, MOST_SUGGESTED)
    run = context.params.get("run_name")
    if option == "attempt":
        return names.attempts_beginning(run, incomplete, MOST_SUGGESTED)
    if option != "--until":
        return names.tasks_beginning(run, incomplete, MOST_SUGGESTED)
    what, colon, key = incomplete.partition(":")
    if not colon or what != "task":
        return [(word, "") for word in (*_UNTIL, "task:")]
    found = names.tasks_beginning(run, key, MOST_SUGGESTED)
    return [(f"task:{name}", about) for name, about in found]


def _open(context: click.Context) -> Bus:
    """The bus; a shell that completes waits for no lock, and gets no notices."""
    shell = shell_of(context)
    bus = Bus.open(shell.database, database_id=shell.expected_id, busy_seconds=0, looks=True)
    context.call_on_close(bus.close)
    bus.database.read_as_newest()
    return bus
