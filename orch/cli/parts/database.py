"""A database for a project that has none yet."""

import os
from collections.abc import Callable

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.commandline import Shell
from inbox_orch.shared.store.layout import database_in
from inbox_orch.shared.store.locate import locate, project_root
from inbox_orch.shared.store.sqlite import creating


def ensure_database(shell: Shell, check: Callable[[], None]) -> str | None:
    """Make the database where `inbox init` would, unless there is one; its path if made.

    `check` refuses a wrong call before anything is made.
    """
    if shell.database is not None:
        path = os.path.abspath(shell.database)
        if os.path.lexists(path):
            return None
    else:
        try:
            locate(None, None, os.getcwd())
        except InboxOrchError as error:
            if error.code != "no_database":
                raise
        else:
            return None
        path = database_in(project_root(os.getcwd()))
    check()
    return path if creating.create(path) else None
