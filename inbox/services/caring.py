"""Looking after the database: doctor, backup, export, prune.

Each is rare and stands in a module of its own, loaded when it is called: the commands that
agents run all day must not pay for it.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..domain import limits
from .desk import Desk

if TYPE_CHECKING:
    from .copying import BackedUp
    from .examining import Examined
    from .pruning import Pruned

MOST_DAYS = 36_500.0


class Caring(Desk):
    """`doctor`, `backup`, `export`, `prune`."""

    def doctor(self, *, verify: bool = False, fix: bool = False) -> "Examined":
        """Check the database and what lies beside it, as of one commit.

        `verify` also checks every index and every text, folds the event log from the start and
        compares it with the tables, and compares bodies and files with their digests. `fix`
        repairs what needs no guessing; nothing else is written.
        Problems are in the result, not raised. Errors: `usage` (`fix` inside a transaction);
        `corrupt`: the file itself is damaged; `details.findings` says how, and the hint how to
        read out what can be read.
        """
        from .examining import examine

        return examine(self, verify=verify, fix=fix)

    def backup(
        self, path: str | os.PathLike[str], *, force: bool = False, artifacts: bool = False
    ) -> "BackedUp":
        """Copy the database as of one commit into a new file, whole or not at all.

        `force` replaces a file that is there; `artifacts` also copies the contents that the
        copy refers to, into the folder in which a database at `path` looks for them.
        Errors: `file_exists`, `usage` (no such folder, the live database itself), `disk_full`,
        `read_only`, `io_error`, `corrupt` (the copy fails its check).
        """
        from .copying import back_up

        return back_up(self, os.fspath(path), force=force, artifacts=artifacts)

    def export(self) -> Iterator[dict[str, Any]]:
        """Everything as of one commit, sealed threads included, as flat objects with a `type`.

        It is read out of a private copy, so that a slow reader holds nobody up.
        Errors: `disk_full` (no room for the copy), `io_error`, `corrupt`.
        """
        from .copying import export

        return export(self)

    def prune(
        self,
        older_than_days: float,
        *,
        dry_run: bool = False,
        unread: bool = False,
        agent: str | None = None,
    ) -> "Pruned":
        """Remove bodies, payloads, artifacts and keys of threads that have been final for at
        least `older_than_days`; rows and events stay, marked. `dry_run` only counts.

        A thread stays whole while whoever opened it has not fetched what others wrote on it;
        `unread` prunes these, too.
        What was written on a pruned thread later goes the next time; keys that belong to no
        thread go when they themselves are that old.
        Errors: `usage` (also inside a transaction), and those of every write.
        """
        from .pruning import prune

        limits.check_number("older-than", older_than_days, 0, MOST_DAYS)
        return prune(self, older_than_days, dry_run=dry_run, unread=unread, agent=agent)
