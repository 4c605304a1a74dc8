"""`orch council ballot`."""

import click

from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...council import stored
from ..parts.council_asked import DEADLINE
from ..parts.council_base import chosen_council, one_council


@click.command("ballot", cls=Verb, agent=True, examples=("orch council ballot --deadline 900",))
@one_council
@click.option(
    "--deadline",
    type=DEADLINE,
    default=stored.DEFAULT_DEADLINE_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="The second round ends then; `inf`: never by itself.",
)
@click.pass_context
def command(context: click.Context, council_name: str | None, deadline: float) -> None:
    """Ask each reviewer about the recommendations that it did not raise, without names.

    Answers are shown apart from what was raised; who does not answer keeps its first round.
    `orch council wait` waits for the end.
    """
    scheduler, run = chosen_council(context, council_name)
    data = scheduler.open_ballot(
        run, deadline_seconds=None if deadline == float("inf") else deadline
    )
    names = [seat["reviewer"] for seat in data["seats"]]
    text = f"Opened the ballot of {run.name}: asked {', '.join(names)}"
    shell_of(context).output.result(data, Sentence(text, (run.name, names)))
