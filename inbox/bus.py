"""`Bus`: the public Python API, for long-lived processes and for `orch`.

The command line is a thin shell over it. A `Bus` belongs to the thread and process that opened
it; open one for each.
"""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager

from inbox_orch.shared.clock import Clock
from inbox_orch.shared.database import DEFAULT_BUSY_SECONDS, Database, Transaction
from inbox_orch.shared.locate import locate

from .services.claiming import Claiming
from .services.reading import Reading
from .services.sending import Sending
from .services.waiting import Waiting


class Bus(Sending, Claiming, Waiting, Reading):
    """An open bus: `send`, `fetch`, `claim`, `renew`, `update`, `ask`, `wait_reply`, `reply`,
    `done`, `fail`, `release`, `cancel`, `unseal`, `list`, `show`, `watch`, `stats`.

    Failures are `InboxOrchError` with the codes of the command line (`error.code`).
    """

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        agent: str | None = None,
        database_id: str | None = None,
        clock: Clock | None = None,
        busy_seconds: float = DEFAULT_BUSY_SECONDS,
        notice: Callable[[str], None] = lambda text: None,
    ) -> "Bus":
        """Open the database at `path`, or the one that the working directory leads to.

        `agent` is the name under which calls act; `database_id` refuses any other database;
        `busy_seconds` is how long a write waits for other writers.
        Errors: `no_database`, `wrong_database`, `schema_newer`, `corrupt`, `read_only`, `usage`.
        """
        option = None if path is None else os.fspath(path)
        location = locate(option, os.environ.get("INBOX_DB"), os.getcwd())
        database = Database.open(
            location.path,
            expected_id=database_id,
            clock=clock,
            busy_seconds=busy_seconds,
            notice=notice,
        )
        try:
            return cls(database, agent)
        except BaseException:
            database.close()
            raise

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def __enter__(self) -> "Bus":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Join several calls into one transaction: all of them happen, or none.

        Waits must not be called inside it.
        """
        return self.database.transaction()
