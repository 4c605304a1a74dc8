"""Names of runs, councils, tasks and attempts by their beginning: for shells that complete.

Looks only: nothing is reconciled, and git is not asked.
"""

from ..store import names
from .desk import Desk

Named = tuple[str, str]


class Naming(Desk):
    """Names with what each of them is."""

    def runs_beginning(self, beginning: str, limit: int) -> list[Named]:
        """Runs, those first that are not closed."""
        with self.database.snapshot() as snapshot:
            found = names.runs(snapshot, beginning, limit)
        return [(name, f"{state}: {title}") for name, state, title in found]

    def councils_beginning(self, beginning: str, limit: int) -> list[Named]:
        """Councils, those first that are not closed."""
        with self.database.snapshot() as snapshot:
            found = names.councils(snapshot, beginning, limit)
        return [(name, f"{state}: {title}") for name, state, title in found]

    def tasks_beginning(self, run: str | None, beginning: str, limit: int) -> list[Named]:
        """The tasks of a run, or of the only open one. Errors: `not_found`, `usage`."""
        run_id = self.run(run).id
        with self.database.snapshot() as snapshot:
            found = names.tasks(snapshot, run_id, beginning, limit)
        return [(key, f"{state}: {title}") for key, state, title in found]

    def attempts_beginning(self, run: str | None, beginning: str, limit: int) -> list[Named]:
        """The attempts of a run, or of the only open one. Errors: `not_found`, `usage`."""
        run_id = self.run(run).id
        with self.database.snapshot() as snapshot:
            return names.attempts(snapshot, run_id, beginning, limit)
