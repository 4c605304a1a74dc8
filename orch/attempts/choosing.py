"""Choosing what is to be dispatched: which tasks, on which bases, into which slots.

Decides, and makes nothing; all that it stores is that a base does not merge.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from ..git.joining import is_unrelated
from ..git.repository import Repository
from ..git.standing import require_apart
from ..runs import readiness
from ..runs import task_rows as tasks
from ..runs.desk import Desk, no_worktree_of
from ..runs.model import Run, Task
from ..runs.readiness import Heads, Picture, Slots, basis_of, taken_by
from . import moving
from . import named as named_tasks
from . import rows as attempts
from .rows import Text


class Base(NamedTuple):
    """The commit, the ref as it was asked for, where it came from.

    `source` is `option`, `run`, `HEAD`, `task`, `merge`, or where the task's own next base came
    from (`integration`, `attempt`); `heads` are the commits that it was computed from;
    `conflicts` are paths, and then there is no commit.
    """

    commit: str | None
    ref: str | None
    source: str
    heads: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


class Chosen(NamedTuple):
    """A task that is to be dispatched, and its base (None without a worktree)."""

    task: Task
    mailbox: str
    base: Base | None


class Asked(NamedTuple):
    """What the call says: the tasks that it names, and of all its attempts; the key of the call
    and what it stands for. `harvest`: whether what workers leave uncommitted is to be committed,
    whatever a task says; `otherwise` of those that say nothing where it is None. `text`: what was
    handed in, so that no worker is needed."""

    names: tuple[str, ...]
    mailbox: str | None
    base: str | None
    within: str | None
    key: str | None
    digest: str
    harvest: bool | None = None
    otherwise: bool = False
    text: Text | None = None

    def harvests(self, task: Task) -> bool:
        """Whether what the task's worker leaves uncommitted is to be committed for it."""
        said = task.harvest if self.harvest is None else self.harvest
        return self.otherwise if said is None else said


class HeldBack(NamedTuple):
    """How many tasks are ready and found no slot, and which limits keep them out, in words."""

    tasks: int = 0
    limits: tuple[str, ...] = ()


def choose(
    desk: Desk, run: Run, asked: Asked, *, store: bool, unmoved: Picture | None = None
) -> tuple[list[Chosen], tuple[dict[str, Any], ...]]:
    """What is to be dispatched, and where a base does not merge. `unmoved` is the run at the
    beginning of the call, if nothing was done to it since, and no attempt lived."""
    picture, named, slots = _standing_now(desk, run, asked, unmoved)
    heads = Heads([s.task for s in picture.standings], picture.dependencies)
    if named:
        named_tasks.require_ready(picture, named, base_given=asked.base is not None)
        named_tasks.require_slots(named, asked.mailbox, slots)
        candidates = named
    else:
        candidates = readiness.dispatch_order(picture.standings, picture.dependencies)
    chosen: list[Chosen] = []
    apart: InboxOrchError | None = None
    # Those found earlier are not ready; the caller wants to know why nothing comes.
    conflicts = [
        {"task": s.task.id, "key": s.task.key, "paths": list(s.conflict_paths)}
        for s in picture.standings
        if s.state == "base_conflict" and not named
    ]
    for task in candidates:
        mailbox = asked.mailbox or task.mailbox
        if slots.full():
            break
        if not slots.free(mailbox):
            continue  # one of another mailbox may find room
        try:
            found = _base(desk, run, task, heads.of(task), asked)
        except InboxOrchError as error:
            if named or not is_unrelated(error):
                raise
            apart = error  # the others go on
            continue
        if found is not None and found.commit is None:
            if store:
                _store_conflict(desk, run, task, found)
            conflicts.append(_conflict(task, found, named=bool(named)))
        else:
            slots.take(mailbox)
            chosen.append(Chosen(task, mailbox, found))
    if apart is not None and not chosen:
        raise apart
    return chosen, tuple(conflicts)


def _standing_now(
    desk: Desk, run: Run, asked: Asked, unmoved: Picture | None
) -> tuple[Picture, list[Task], Slots]:
    """How the run stands, the tasks that were named, and the slots beside what lives."""
    if unmoved is not None:
        return unmoved, [], Slots(run, ())
    with desk.database.snapshot() as snapshot:
        picture = moving.picture(desk, snapshot, run, desk.database.now().wall_ms)
        found = [desk.task(snapshot, run, name) for name in asked.names]
        live = attempts.live_of_run(snapshot, run.id)
    # By id, since a task can be named twice: by its key and by its id.
    named = list({task.id: task for task in found}.values())
    return picture, named, Slots(run, taken_by(live))


def held_back(desk: Desk, run: Run, asked: Asked, planned: Sequence[Chosen] = ()) -> HeldBack:
    """What is ready now, beside what is planned, and finds no slot: "nothing was dispatched"
    must not pass for "nothing is ready"."""
    if asked.names or not Slots(run, ()).bounded():
        return HeldBack()
    with desk.database.snapshot() as snapshot:
        slots = Slots(run, taken_by(attempts.live_of_run(snapshot, run.id)))
        picture = moving.picture(desk, snapshot, run, desk.database.now().wall_ms)
    for choice in planned:
        slots.take(choice.mailbox)
    taken = {choice.task.id for choice in planned}
    waiting = [
        asked.mailbox or standing.task.mailbox
        for standing in picture.standings
        if standing.state == "ready" and standing.task.id not in taken
    ]
    out = [mailbox for mailbox in waiting if not slots.free(mailbox)]
    return HeldBack(len(out), tuple(sorted({slots.limit_of(mailbox) for mailbox in out})))


def _base(desk: Desk, run: Run, task: Task, heads: tuple[str, ...], asked: Asked) -> Base | None:
    if not task.worktree:
        return None
    return base_for(desk.repository(run), run, task, heads, asked.base, asked.within)


def _store_conflict(desk: Desk, run: Run, task: Task, base: Base) -> None:
    """Remember it, so that the task is not ready until one of the heads has changed."""
    with desk.database.transaction() as tx:
        present = tasks.anywhere(tx, task.id)
        if present is None or present.state != "pending":
            return  # another leader was quicker
        tasks.store_base_conflict(tx, task.id, base.heads, base.conflicts, tx.now.wall_ms)
        facts = {"heads": list(base.heads), "paths": list(base.conflicts)}
        moving.record_task(desk, tx, run, present, "base_conflict_found", facts)


def refuse_dirty(
    desk: Desk, run: Run, chosen: Sequence[Chosen], allow_dirty: bool, within: str | None
) -> tuple[str, ...]:
    """What is not committed in the working tree that the call was made in (else the main
    one); error `dirty_repository` when an attempt would start from its HEAD and miss it, and
    `git_failed` when no worktree that git makes now could be used."""
    bases = [c.base for c in chosen if c.base is not None]
    if not bases:
        return ()
    repository = desk.repository(run)
    require_apart(repository.common_directory)
    tree = repository.working_tree_at(within)
    dirty = () if tree is None else repository.dirty_paths(tree)
    if dirty and not allow_dirty and any(b.source == "HEAD" for b in bases):
        shown = ", ".join(dirty[:5]) + (f" and {len(dirty) - 5} more" if dirty[5:] else "")
        raise InboxOrchError(
            "dirty_repository",
            f"{tree} has changes that no worker would see: {shown}",
            hint="commit them; or --allow-dirty, or an explicit --base, goes without them",
            details={"paths": list(dirty)},
        )
    return dirty


def _conflict(task: Task, base: Base, *, named: bool) -> dict[str, Any]:
    shape = {"task": task.id, "key": task.key, "paths": list(base.conflicts)}
    if named:
        raise InboxOrchError(
            "base_conflict",
            f"what task {task.key} depends on does not merge: {', '.join(base.conflicts)}",
            hint=f"merge it by hand: orch dispatch {task.key} --base COMMIT",
            details=shape,
        )
    return shape


# -- the base --------------------------------------------------------------------------------


def base_for(
    repository: Repository,
    run: Run,
    task: Task,
    heads: tuple[str, ...],
    option: str | None,
    within: str | None = None,
) -> Base:
    """The base of the next attempt. Makes objects at most; no ref, no working tree is touched.

    `option` and HEAD are read in the folder `within`, where the call was made: a linked worktree
    has a HEAD of its own.
    Errors: `usage` (a ref that names no commit), `dep_not_in_base`.
    """
    basis = basis_of(task, heads)
    if option is not None:
        commit = repository.commit_of(option, within)
        missing = [head for head in heads if not repository.contains(commit, head)]
        if missing:
            raise InboxOrchError(
                "dep_not_in_base",
                f"{option} lacks work that task {task.key} depends on: {', '.join(missing)}",
                hint="leave --base out, or merge that work into it first",
                details={"task": task.key, "base": commit, "missing": missing},
            )
        return Base(commit, option, "option", basis)
    if task.next_base is not None:
        return _own_base(repository, run, task, heads)
    if not heads:
        if run.base_commit is not None:
            return Base(run.base_commit, run.base_ref, "run")
        return Base(repository.commit_of("HEAD", no_worktree_of(run, within)), "HEAD", "HEAD")
    independent = repository.independent(heads)
    if len(independent) == 1:
        return Base(independent[0], None, "task", heads)
    merged = repository.merge(independent, f"Base of task {task.key} in run {run.name}")
    return Base(merged.commit, None, "merge", heads, merged.conflicts)


def _own_base(repository: Repository, run: Run, task: Task, heads: tuple[str, ...]) -> Base:
    """Where the task is told to start, with what it depends on merged in as far as it is not
    there yet."""
    start, basis = task.next_base, basis_of(task, heads)
    assert start is not None and task.next_base_source is not None
    missing = [head for head in heads if not repository.contains(start, head)]
    if not missing:
        return Base(start, None, task.next_base_source, basis)
    added = repository.independent(missing)
    merged = repository.merge((start, *added), f"Base of task {task.key} in run {run.name}")
    # What an earlier attempt has come to stays what its change is judged from.
    source = "attempt" if task.next_base_source == "attempt" else "merge"
    return Base(merged.commit, None, source, basis, merged.conflicts)
