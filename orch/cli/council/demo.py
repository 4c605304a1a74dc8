"""`orch council demo`."""

import click

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.blocks import Block, Page, Sentence, Table
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...demo.sitting import Ending, Sitting
from ...demo.workshop import Workshop
from ..demo import teller


@click.command("demo", cls=Verb, examples=("orch council demo", "orch council demo --keep"))
@click.option("--keep", is_flag=True, help="Leave the folder there, to look at.")
@click.pass_context
def command(context: click.Context, keep: bool) -> None:
    """Play a council from start to end: offline, in a temporary folder, with three reviewers that
    are shell scripts with canned replies, one of them late.

    Exit 0 only if everything that was expected held.
    """
    output = shell_of(context).output
    with Workshop(keep=keep) as workshop:
        ending = Sitting(workshop, teller(output)).play()
    if keep:
        output.notice(f"kept {ending.folder}")
    if ending.held:
        output.result(ending.as_json(), *_blocks(ending))
    else:
        output.outcome(_disappointed(ending), *_blocks(ending))


def _blocks(ending: Ending) -> list[Block]:
    expectations = tuple(("held" if e.held else "FAILED", e.text) for e in ending.expectations)
    return [
        Page(ending.report),
        Table(("EXPECTATION", ""), expectations, folded=(1,)),
        Sentence(f"Done in {ending.seconds:.1f} s."),
    ]


def _disappointed(ending: Ending) -> InboxOrchError:
    failed = [e.text for e in ending.expectations if not e.held]
    return InboxOrchError(
        "problems_found",
        "did not hold: " + "; ".join(failed),
        hint="--keep leaves the folder there, with the logs of the reviewers",
        data=ending.as_json(),
    )
