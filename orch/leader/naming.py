"""Names of runs, councils, tasks and attempts by their beginning: for shells that complete.

Looks only: nothing is reconciled, and git is not asked.
"""

from ..runs.desk import Desk
from . import name_rows as names

Named = tuple[str, str]


def runs_beginning(desk: Desk, beginning: str, limit: int) -> list[Named]:
    """Runs, those first that are not closed."""
    with desk.database.snapshot() as snapshot:
        found = names.runs(snapshot, beginning, limit)
    return [(name, f"{state}: {title}") for name, state, title in found]


def councils_beginning(desk: Desk, beginning: str, limit: int) -> list[Named]:
    """Councils, those first that are not closed."""
    with desk.database.snapshot() as snapshot:
        found = names.councils(snapshot, beginning, limit)
    return [(name, f"{state}: {title}") for name, state, title in found]


def tasks_beginning(desk: Desk, run: str | None, beginning: str, limit: int) -> list[Named]:
    """The tasks of a run, or of the only open one, else of the last. Errors as of `Desk.run`."""
    run_id = desk.run(run, shows=True).id
    with desk.database.snapshot() as snapshot:
        found = names.tasks(snapshot, run_id, beginning, limit)
    return [(key, f"{state}: {title}") for key, state, title in found]


def attempts_beginning(desk: Desk, run: str | None, beginning: str, limit: int) -> list[Named]:
    """The attempts of a run, or of the only open one, else of the last. Errors as of `Desk.run`."""
    run_id = desk.run(run, shows=True).id
    with desk.database.snapshot() as snapshot:
        return names.attempts(snapshot, run_id, beginning, limit)


def patches_beginning(desk: Desk, run: str | None, beginning: str, limit: int) -> list[Named]:
    """The patches of a run, or of the only open one, else of the last. Errors as of `Desk.run`."""
    run_id = desk.run(run, shows=True).id
    with desk.database.snapshot() as snapshot:
        return names.patches(snapshot, run_id, beginning, limit)
