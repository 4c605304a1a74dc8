"""`orch demo`."""

from collections.abc import Callable

import click

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.blocks import Block, Sentence, Table
from inbox_orch.shared.shell.commandline import Verb, shell_of
from inbox_orch.shared.shell.output import Output

from ..demo.mending import Mending
from ..demo.story import Ending, Story
from ..demo.workshop import Workshop
from ..views.status import Status
from .parts.standings import blocks as status_blocks


@click.command(
    "demo", cls=Verb, examples=("orch demo", "orch demo --blueprint", "orch demo --keep")
)
@click.option(
    "--blueprint", is_flag=True, help="The loop of a blueprint that mends itself, instead."
)
@click.option("--keep", is_flag=True, help="Leave the folder there, to look at.")
@click.pass_context
def command(context: click.Context, blueprint: bool, keep: bool) -> None:
    """Play the main job from start to end: offline, in a temporary folder, with a real
    repository and real worker processes.

    Five tasks: one worker asks a question, one task fails once, one worker is killed. In the end
    all of it is integrated on `main`. With --blueprint one task: two repairs, a review that asks
    for a change, leader and worker killed at once, a decision. Exit 0 only if everything that was
    expected held.
    """
    output = shell_of(context).output
    with Workshop(keep=keep) as workshop:
        story = (Mending if blueprint else Story)(workshop, teller(output))
        ending = story.play()
        shown = blocks_of(ending, story.status())
    if keep:
        output.notice(f"kept {ending.folder}")
    if ending.held:
        output.result(ending.as_json(), *shown)
    else:
        output.outcome(_disappointed(ending), *shown)


def teller(output: Output) -> Callable[[str], None]:
    """Tells what happens as it happens; with --json on stderr, since stdout has one value."""

    def tell(text: str) -> None:
        if output.as_json:
            output.notice(text)
        else:
            output.show(Sentence(text))

    return tell


def blocks_of(ending: Ending, status: Status) -> list[Block]:
    """The end: the status table, the commits, and what held."""
    expectations = tuple(("held" if e.held else "FAILED", e.text) for e in ending.expectations)
    return [
        *status_blocks(status),
        Sentence("Commits:"),
        *map(Sentence, ending.commits),
        Table(("EXPECTATION", ""), expectations, folded=(1,)),
        Sentence(f"Done in {ending.seconds:.1f} s."),
    ]


def _disappointed(ending: Ending) -> InboxOrchError:
    failed = [e.text for e in ending.expectations if not e.held]
    return InboxOrchError(
        "problems_found",
        "did not hold: " + "; ".join(failed),
        hint="--keep leaves the folder there, with the logs of the workers",
        data=ending.as_json(),
    )
