"""`orch doctor`."""

import click

from inbox_orch.inbox.services.examining import Examined
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.blocks import Block, Sentence, Table
from inbox_orch.shared.shell.commandline import Verb, shell_of

from .parts.base import open_scheduler


@click.command(
    "doctor",
    cls=Verb,
    agent=True,
    examples=("orch doctor", "orch doctor --verify --json", "orch doctor --with claude"),
)
@click.option("--verify", is_flag=True, help="Fold the events and compare the tables with them.")
@click.option(
    "--with",
    "adapters",
    multiple=True,
    metavar="NAME",
    help="Also look whether this coding agent can be run here; repeatable.",
)
@click.pass_context
def command(context: click.Context, verify: bool, adapters: tuple[str, ...]) -> None:
    """Check that runs, git and the events agree; `inbox doctor` checks the database itself.

    Changes nothing. Exit 11 when there is a problem, with the whole result.
    """
    found = open_scheduler(context, looks=True).doctor(verify=verify)
    if adapters:
        from inbox_orch.shared.adapters.probing import probe

        found = found._replace(checks=(*found.checks, *probe(adapters)))
    output = shell_of(context).output
    if found.problems:
        output.outcome(_problems(found), *_blocks(found))
    else:
        output.result(found.as_json(), *_blocks(found))


# What helps, by the check that found it.
_REMEDIES = {
    "git": "install a release of git that is new enough",
    "repositories": "put the repository back where its run says: it and its worktrees lead to each"
    " other by their paths; or change the setting that is named",
    "worktrees": "put them back, or mount what they lie on; `orch cancel TASK` ends what is gone"
    " for good",
    "events": "`inbox doctor --verify` looks at the rest of the database",
}


_OF_AGENTS = "install the agent, or log in; its check says how"


def _problems(found: Examined) -> InboxOrchError:
    names = [check.name for check in found.checks if check.status == "problem"]
    return InboxOrchError(
        "problems_found",
        f"{found.problems} of {len(found.checks)} checks found a problem: {', '.join(names)}",
        hint="; ".join(_REMEDIES.get(name, _OF_AGENTS) for name in names),
        data=found.as_json(),
    )


def _blocks(found: Examined) -> list[Block]:
    rows = tuple((check.name, check.status, check.text) for check in found.checks)
    items = [(check.name, item) for check in found.checks for item in check.items]
    return [
        Table(("CHECK", "STATUS", "FINDING"), rows, fixed=(0, 1), folded=(2,)),
        *(Sentence(f"{name}: {item}", (name, "item", item)) for name, item in items),
    ]
