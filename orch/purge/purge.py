"""`purge`: a secret that got in is taken out of rows, contents and refs of ours, for good.

In this order, so that it may be cut short anywhere, and the same again comes to the end: contents
are stored anew; then the rows speak of those, without the secret; then the old contents go. In git
what is made anew is kept by a ref, the rows speak of it, and then the refs move. Last, the database
is written anew without what no row has any more; that is done whatever was found, since what an
earlier purge, or pruning, has left there cannot be seen.
"""

from collections.abc import Mapping, Sequence

from inbox_orch.inbox.domain.states import THREAD_STATES
from inbox_orch.inbox.store import care
from inbox_orch.shared.errors import event_kinds, usage
from inbox_orch.shared.ids import counted

from ..git import mending
from ..journal.finishing import finish_intents
from ..patches.states import ENTRIES
from ..runs.desk import Desk
from ..runs.states import ATTEMPT_STATES, RUN_STATES, TASK_STATES
from . import database, files, repositories
from .database import Seen
from .files import Content
from .found import FOUND, KEPT, REMOVED, Place, Purged, place
from .scrub import MASK, MIN_BYTES, Renames, Scrub

MOST_VALUES = 100
_NAMES = (
    "rows, folders and refs are found by it, so that it stays; begin anew under another name, and"
    " prune what is over"
)


def purge(desk: Desk, values: Sequence[str], *, yes: bool, reason: str | None = None) -> Purged:
    """Look for values; with `yes`, put `MASK` in their place wherever they can be reached.

    Without it nothing is changed. Doing it again is safe, and finishes what was cut short. Errors:
    `usage` (a value that is too short or is the mask; inside a transaction), `busy`, and those of
    every write and of git.
    """
    scrub = _scrub(values)
    if desk.database.in_transaction:
        raise usage("a purge takes several commits and cannot be done inside a transaction")
    found = _done(desk, scrub, reason) if yes else _looked(desk, scrub)
    return _told(found, scrub)


def _told(found: Purged, scrub: Scrub) -> Purged:
    """Paths and refs may have the value in their names, and what is said of them has not."""
    places = tuple(
        each._replace(
            name=scrub.digested(each.name),
            reason=each.reason and scrub.digested(each.reason),
            items=tuple(map(scrub.digested, each.items)),
        )
        for each in found.places
    )
    return found._replace(places=places, commands=tuple(map(scrub.digested, found.commands)))


def _scrub(values: Sequence[str]) -> Scrub:
    found = list(dict.fromkeys(values))
    if not found:
        raise usage("there is no value to look for", hint="--from FILE has one on each line")
    if len(found) > MOST_VALUES:
        raise usage(f"there are {len(found)} values; at most {MOST_VALUES} are taken at once")
    for number, value in enumerate(found, 1):
        what = "the value" if len(found) == 1 else f"value {number}"
        size = len(value.encode("utf-8", "surrogateescape"))
        if size < MIN_BYTES or not value.strip():
            raise usage(
                f"{what} has {counted(size, 'byte')}; a purge looks for {MIN_BYTES} or more",
                hint="shorter ones stand in many places that have nothing to do with them",
            )
        if value in MASK or MASK in value:
            raise usage(f"{what} cannot be told from {MASK}, which is put in its place")
        if any(value in word for word in _own_words()):
            raise usage(
                f"{what} is a word that events are told with, and no secret",
                hint="give the secret alone, whole",
            )
    return Scrub(found)


def _own_words() -> set[str]:
    """By which events are folded: what says how things stand, and what has happened."""
    said = {word for pair in ENTRIES for word in pair} | {e.target or "" for e in ENTRIES.values()}
    return {*RUN_STATES, *TASK_STATES, *ATTEMPT_STATES, *THREAD_STATES, *event_kinds(), *said}


# -- only looking ----------------------------------------------------------------------------


def _looked(desk: Desk, scrub: Scrub) -> Purged:
    contents = files.contents(desk, scrub)
    seen = database.look(desk, scrub.carrying(files.forecast(scrub, contents)))
    places = [*_rows(seen), *_artifacts(contents, FOUND)]
    projects, gone = repositories.projects(desk)
    with desk.database.snapshot() as snapshot:
        free = desk.database.admin.free_bytes(snapshot)
    for project in projects:
        places += repositories.looked_at(project, scrub)
    places += [*gone, *_around(desk, scrub, seen)]
    if free:
        why = "may have what rows had once; written anew without it"
        path = desk.database.address
        places.append(place("free_pages", path, [], FOUND, why)._replace(number=free))
    return Purged(False, len(scrub.values), tuple(places), ())


def _rows(seen: Seen) -> list[Place]:
    by_table: dict[str, list[str]] = {}
    for each in seen.rows:
        by_table.setdefault(each.table, []).append("/".join(map(str, each.key)))
    return [place("rows", table, keys, FOUND) for table, keys in by_table.items()]


def _artifacts(contents: Sequence[Content], action: str) -> list[Place]:
    """How many: a digest of a file that has nothing else is one of the secret."""
    found = place("artifacts", "artifacts", [], action)._replace(number=len(contents))
    return [found] if contents else []


def _around(desk: Desk, scrub: Scrub, seen: Seen) -> list[Place]:
    """What no purge touches: names, and files that somebody has put beside the database."""
    found = []
    columns: dict[str, list[str]] = {}
    for name in seen.names:
        columns.setdefault(f"{name.table}.{name.column}", []).append(scrub.text(name.value))
    found += [place("names", column, values, KEPT, _NAMES) for column, values in columns.items()]
    if seen.begun:
        why = "another process is in the middle of it: give the same command again once it is over"
        found.append(place("live_attempts", "begun", seen.begun, KEPT, why))
    if beside := files.beside(desk, scrub):
        why = "not ours to change, perhaps a copy of the database: remove what you do not need"
        found.append(place("files", "beside the database", beside, KEPT, why))
    return found


# -- taking out ------------------------------------------------------------------------------


def _done(desk: Desk, scrub: Scrub, reason: str | None) -> Purged:
    _finish(desk)
    why = {} if reason is None else {"reason": scrub.text(reason)}
    told = {**why, "values": len(scrub.values)}
    contents = files.contents(desk, scrub)
    with desk.database.snapshot() as snapshot:
        needed = [each for each in contents if care.is_referenced(snapshot, each.sha256)]
    stored = files.stored_anew(desk, scrub, needed)
    first = database.look(desk, scrub.carrying(stored))
    new = [stored.ids[each.sha256] for each in needed]
    counts = database.put_down(desk, scrub, stored, told, {"contents": new} if contents else None)
    places = [place("rows", table, [], REMOVED)._replace(number=n) for table, n in counts.items()]
    files.collected(desk, contents)
    places += _artifacts(contents, REMOVED)
    more, commands = _in_git(desk, scrub, told)
    places += [*more, *_around(desk, scrub, first)]
    desk.database.admin.erase()
    return Purged(True, len(scrub.values), tuple(places), tuple(commands))


def _finish(desk: Desk) -> None:
    """What killed processes have begun, and what of it is left in git."""
    for project in repositories.projects(desk)[0]:
        mending.mend(project.repository)
        for run in project.runs:
            if run.state != "closed":
                finish_intents(desk, run)


def _in_git(desk: Desk, scrub: Scrub, told: Mapping[str, object]) -> tuple[list[Place], list[str]]:
    def write_down(renames: Renames, refs: Sequence[str]) -> None:
        database.put_down(desk, scrub, renames, told, {"refs": list(refs)})

    projects, places = repositories.projects(desk)
    commands: list[str] = []
    for project in projects:
        found, left = repositories.taken_out(project, scrub, write_down)
        places += found
        commands += left
    return places, commands
