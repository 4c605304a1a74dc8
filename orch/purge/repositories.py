"""The repositories of runs: which objects hold a secret, what keeps them, which refs are ours.

Moves only refs that belong to an ended attempt, or to a closed run, of this database, and no branch
that a working tree has.
"""

import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from ..attempts import rows as attempts
from ..git import expunging, holding, removal, worktrees
from ..git.expunging import KEPT as KEPT_REFS
from ..git.expunging import Move
from ..git.holding import Ref
from ..git.repository import Repository
from ..runs import run_rows as runs
from ..runs.desk import Desk
from ..runs.model import Attempt, Run
from . import files
from .found import FOUND, KEPT, MOST_ITEMS, REMOVED, Place, place
from .scrub import Renames, Scrub

_PLAIN = "refs/orch/"
_MOST_COMMITS = 20

WriteDown = Callable[[Renames, Sequence[str]], object]
"""Is given the new ids, and the refs that are going to move."""


class Project(NamedTuple):
    """A repository, with the runs of it and their attempts."""

    repository: Repository
    runs: tuple[Run, ...]
    attempts: tuple[Attempt, ...]


class Sorted(NamedTuple):
    """Refs of a repository: those that a purge may move, those of live attempts, the branches of
    ended ones that a working tree has, what an earlier purge has left, and everybody else's."""

    ours: tuple[Ref, ...]
    live: tuple[Ref, ...]
    worktrees: tuple[Ref, ...]
    left: tuple[Ref, ...]
    others: tuple[Ref, ...]

    @property
    def stay(self) -> tuple[Ref, ...]:
        """All that are not moved."""
        return (*self.live, *self.worktrees, *self.others)


def projects(desk: Desk) -> tuple[list[Project], list[Place]]:
    """The repositories of all runs; those that are not there any more are places that stay."""
    by_path: dict[str, list[Run]] = {}
    own: dict[str, list[Attempt]] = {}
    with desk.database.snapshot() as snapshot:
        for run in runs.every(snapshot):
            if run.repository is not None:
                by_path.setdefault(run.repository, []).append(run)
                own.setdefault(run.repository, []).extend(attempts.of_run(snapshot, run.id))
    found, gone = [], []
    for path, its in by_path.items():
        try:
            found.append(Project(desk.repository(its[-1]), tuple(its), tuple(own[path])))
        except InboxOrchError as error:
            gone.append(place("repository", path, [], KEPT, error.message)._replace(number=1))
    return found, gone


def looked_at(project: Project, scrub: Scrub) -> list[Place]:
    """Where a repository holds a value, and what a purge would do."""
    held = holding.holding(project.repository, scrub.forms_in_bytes)
    return _objects(project, held, done=False) + _folders(project, scrub, done=False)


def taken_out(
    project: Project,
    scrub: Scrub,
    write_down: WriteDown,
) -> tuple[list[Place], list[str]]:
    """Take a value out of the refs of ours, and of the trash. `write_down` is called once
    what is new is kept, and before the refs move. Returns the places and the commands that are left
    to somebody. Errors: `git_failed`, `busy`, `disk_full`, `read_only`, `io_error`."""
    repository = project.repository
    held = holding.holding(repository, scrub.forms_in_bytes)
    moves: list[Move] = []
    if held:
        with worktrees.locked(repository) as lock:
            moves = _moved(project, scrub, held, write_down, lock)
    _let_go(project)
    places = _objects(project, held, done=True)
    if moves:
        places.insert(0, place("refs", repository.path, [m.ref for m in moves], REMOVED))
    unreachable = any(each.kind == "unreachable_objects" for each in places)
    commands = _commands(repository, moves) if unreachable else []
    return places + _folders(project, scrub, done=True), commands


def _moved(
    project: Project,
    scrub: Scrub,
    held: Mapping[str, str],
    write_down: WriteDown,
    lock: int,
) -> list[Move]:
    repository = project.repository
    refs = sorted_refs(project)
    found = expunging.remade(
        repository, refs.ours, {ref.at for ref in refs.stay}, held, scrub.content
    )
    if not found.moves:
        return []
    # Kept, then spoken of, then where it belongs: cut short anywhere, the same again finishes it.
    expunging.kept(repository, found.moves, (lock,))
    write_down(Renames(found.ids, {}), [move.ref for move in found.moves])
    return [move for move in found.moves if expunging.moved(repository, move, (lock,))]


def _let_go(project: Project) -> None:
    """What another ref leads to by now needs no ref of its own."""
    repository, refs = project.repository, sorted_refs(project)
    leading = dict.fromkeys(ref.at for ref in refs.ours)
    for ref in refs.left:
        if ref.at in leading or any(repository.contains(at, ref.at) for at in leading):
            repository.drop(ref.name, ref.at)


# -- whose refs ------------------------------------------------------------------------------


def sorted_refs(project: Project) -> Sorted:
    """Every ref of a repository, by whose it is."""
    ended = {a.id for a in project.attempts if not a.live}
    live = {a.id for a in project.attempts if a.live}
    closed = {run.id for run in project.runs if run.state == "closed"}
    live |= {run.id for run in project.runs} - closed
    branches = {f"refs/heads/{a.branch}": a for a in project.attempts if a.branch}
    taken = holding.checked_out(project.repository)
    kinds: dict[str, list[Ref]] = {name: [] for name in Sorted._fields}
    for ref in holding.refs(project.repository):
        owner = ref.name.rpartition("/")[2] if ref.name.startswith(_PLAIN) else None
        attempt = branches.get(ref.name)
        if ref.name.startswith(KEPT_REFS):
            kind = "left"
        elif owner in live or (attempt is not None and attempt.live):
            kind = "live"
        elif attempt is not None:
            kind = "worktrees" if ref.name in taken else "ours"
        else:
            kind = "ours" if owner in ended or owner in closed else "others"
        kinds[kind].append(ref)
    return Sorted(**{name: tuple(found) for name, found in kinds.items()})


# -- objects ---------------------------------------------------------------------------------

_WHY = {
    "live": ("live_attempts", "give the same command again once these attempts and runs are over"),
    "worktrees": (
        "worktree_branches",
        "`orch cleanup TASK --force` takes the worktree away; then give the same command again",
    ),
    "others": (
        "your_refs",
        "a purge moves no branch or tag of yours: `git filter-repo` rewrites them; then again",
    ),
}


def _objects(project: Project, held: Mapping[str, str], *, done: bool) -> list[Place]:
    if not held:
        return []
    repository, refs = project.repository, sorted_refs(project)
    staying = [ref.at for ref in refs.stay]
    kept = holding.reached(repository, staying)
    found: list[Place] = []
    if not done:
        own = holding.reached(repository, [r.at for r in refs.ours], staying)
        mine = {name for name in held if name in own}
        names, _ = holding.keepers(repository, refs.ours, mine, MOST_ITEMS) if mine else ([], False)
        found += [place("refs", repository.path, names, FOUND)] if names else []
        kept = {**kept, **own}
    else:
        kept |= holding.reached(repository, [r.at for r in (*refs.ours, *refs.left)])
    found += _kept_by(repository, refs, {name: held[name] for name in held if name in kept})
    loose = sorted(name for name in held if name not in kept)
    if loose:
        why = "no ref leads to them, perhaps a reflog or an index; git collects them when told to"
        found.append(place("unreachable_objects", repository.path, loose, KEPT, why))
    return found


def _kept_by(repository: Repository, refs: Sorted, held: dict[str, str]) -> list[Place]:
    found = []
    for name, (kind, why) in _WHY.items():
        among = getattr(refs, name)
        if not held:
            break
        names, goes_on = holding.keepers(repository, among, held, MOST_ITEMS)
        if not names:
            continue
        more = "; there may be more than these" if goes_on else ""
        found.append(place(kind, repository.path, names, KEPT, why + more))
        if name == "others":
            tips = [ref.at for ref in among if ref.name in names]
            commits = holding.commits_with(repository, held, tips, _MOST_COMMITS)
            found.append(place("commits", repository.path, commits, KEPT, why))
    return found


def _commands(repository: Repository, moves: Sequence[Move]) -> list[str]:
    at = f"git -C {shlex.quote(repository.path)}"
    branches = [shlex.quote(m.ref) for m in moves if m.ref.startswith("refs/heads/")]
    forget = f"{at} reflog expire --expire=now {' '.join(branches)}"
    return [*([forget] if branches else []), f"{at} gc --prune=now"]


# -- folders ---------------------------------------------------------------------------------


def _folders(project: Project, scrub: Scrub, *, done: bool) -> list[Place]:
    """Worktrees of attempts, and their trash."""
    found = list(_trash(project, scrub, done=done))
    common = project.repository.common_directory
    # Reflogs have subjects of commits, the settings addresses of remotes; large files lie as such.
    if names := files.below(common, scrub, but="objects"):
        why = "git's own and yours: look at each; `git reflog expire` forgets what a reflog has"
        found.append(place("files", common, names, KEPT, why))
    for attempt in project.attempts:
        path = attempt.worktree_path
        if attempt.removed_at is None and path is not None and os.path.isdir(path):
            why = "`orch cleanup TASK --force` takes it away; its worker's processes may have more"
            if names := files.below(path, scrub):
                found.append(place("worktree", path, names, KEPT, why))
    return found


def _trash(project: Project, scrub: Scrub, *, done: bool) -> Iterable[Place]:
    roots = {run.id: run.worktree_root for run in project.runs}
    for attempt in project.attempts:
        root = roots[attempt.run_id]
        if attempt.removed_at is None or root is None:
            continue
        trash = removal.trash_of(project.repository, root, attempt.id).worktree
        if os.path.isdir(trash) and (names := files.below(trash, scrub)):
            if done:
                removal.empty_trash(project.repository, root, [attempt.id])
            yield place("trash", trash, names, REMOVED if done else FOUND)
