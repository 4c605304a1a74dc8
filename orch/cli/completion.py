"""`orch completion`."""

import click

from inbox_orch.shared.commandline import Verb, shell_of

SHELLS = ("bash", "zsh", "fish")


@click.command(
    "completion",
    cls=Verb,
    examples=(
        'eval "$(orch completion bash)"',
        "orch completion fish > ~/.config/fish/completions/orch.fish",
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print what makes a shell complete the commands and options of `orch`.

    Needs no database.
    """
    from inbox_orch.shared.completion import source

    from . import program

    output, code = shell_of(context).output, source("orch", program, shell)
    if output.as_json:
        output.result({"shell": shell, "source": code})
    else:
        output.text(code)
