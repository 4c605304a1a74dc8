"""`inbox guide`."""

import click

from inbox_orch.shared.commandline import Verb, shell_of
from inbox_orch.shared.texts import packaged


@click.command(
    "guide", cls=Verb, examples=("inbox guide", "inbox guide >> AGENTS.md", "inbox guide --json")
)
@click.pass_context
def command(context: click.Context) -> None:
    """Print a few lines for the AGENTS.md of a repository whose agents use `inbox`.

    Nothing is written; add them where they fit. Needs no database.
    """
    text, output = packaged("inbox_orch.inbox", "guide.md"), shell_of(context).output
    if output.as_json:
        output.result({"text": text})
    else:
        output.text(text)
