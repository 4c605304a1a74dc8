"""Documents that a command is given: loaded only then, every problem told."""

from inbox_orch.shared.commandline import Shell
from inbox_orch.shared.errors import InboxOrchError

from ..domain.config import Config


def config_in(shell: Shell, path: str) -> Config:
    """The config in a file; error `usage`, after every problem has been told on stderr."""
    from ..documents.config import read_config

    try:
        return read_config(path)
    except InboxOrchError as error:
        tell_problems(shell, error)
        raise


def tell_problems(shell: Shell, error: InboxOrchError) -> None:
    """One line for each problem of a document; with --json they stand in the error."""
    from ..documents.problems import lines_of

    if not shell.output.as_json:
        for line in lines_of(error):
            shell.output.notice(line)
