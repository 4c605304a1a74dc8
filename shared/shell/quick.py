"""Running a command whose line is plain without click, which takes longer to load than Python.

Any other line is left to click before anything has been done.
"""

import contextlib
from collections.abc import Sequence

from ..errors import InboxOrchError
from .declaring import Find
from .output import Output
from .plain_lines import read
from .shell import Shell, helpful


class _Call(contextlib.ExitStack):
    """The context of a command that is run without click's."""

    def __init__(self, shell: Shell) -> None:
        super().__init__()
        self._shell = shell
        self.call_on_close = self.callback

    def find_object(self, kind: type[Shell]) -> Shell:
        """The shell: there is no other object."""
        return self._shell


def run_plain(name: str, find: Find, words: Sequence[str], output: Output) -> int | None:
    """Run the command that the words name, of the program `name`; returns the exit code, or None
    with nothing done when the line is not plain. Errors: those of the command."""
    found = find(words)
    line = None if found is None else read(found[0], words[found[1] :])
    if found is None or line is None:
        return None
    command, count = found
    shell = Shell(output)
    for field, value in line[1].items():
        shell.keep(field, value, field)
    shell.begin()
    try:
        with helpful(" ".join((name, *words[:count]))), _Call(shell) as call:
            command.function(call, **line[0])
    except InboxOrchError as error:
        if command.lenient is None:
            raise
        command.lenient(output, error)
    return output.exit_code
