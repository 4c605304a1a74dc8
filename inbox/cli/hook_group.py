"""The group `hook` as click knows it: what goes wrong in it is said, and never blocks anybody."""

from typing import Any, NoReturn

import click

from inbox_orch.shared.commandline import Program, shell_of, usage_error
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.output import Output

from .hooking import let_pass

Wrong = InboxOrchError | click.ClickException


class HookProgram(Program):
    """The group, which lets its own errors pass, and those of its commands."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Parse the options of the group."""
        parent = options.get("parent")
        assert isinstance(parent, click.Context)
        try:
            return super().make_context(*arguments, **options)
        except (InboxOrchError, click.ClickException) as error:
            leave(shell_of(parent).output, error)

    def invoke(self, ctx: click.Context) -> Any:
        """Parse and run the command."""
        try:
            return super().invoke(ctx)
        except (InboxOrchError, click.ClickException) as error:
            leave(shell_of(ctx).output, error)


def leave(output: Output, error: Wrong) -> NoReturn:
    """Say what is wrong and end with 0; raise it for those who want the exit code."""
    wrong = error if isinstance(error, InboxOrchError) else usage_error(error)
    assert wrong is not None
    let_pass(output, wrong)
    raise click.exceptions.Exit(0)
