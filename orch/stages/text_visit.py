"""What a stage's worker has handed in as text: judged by what is in force for the stage, and then
brought into the worktree, before anything else of the visit is looked at."""

from ..attempts import bring_in, patches, rows
from ..attempts.patches import Judged
from ..attempts.rows import Details, details_with
from ..git import signed as signing
from ..git.repository import Repository
from ..git.worktrees import Hold
from ..patches import ledger
from ..patches.examine import examine
from ..patches.ledger import New
from ..patches.policy import of_task
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.secrets import secrets_of
from .course import Course
from .model import Stage


def refusal(desk: Desk, course: Course, stage: Stage, held: tuple[Repository, Hold]) -> str | None:
    """Bring it in; or why it may not come in, or fits nothing, in a line: then it is kept as a
    patch that was refused. Done again it comes to the same. Errors: those of git where this machine
    is the cause, and of every write."""
    repository, attempt = held[0], course.attempt
    head, denied = course.last_head or str(attempt.base_commit), list[Judged]()

    def judged(made: rows.Brought) -> str | None:
        found = _judged(desk, course, stage, repository, made)
        if not found.denied:
            return None
        patches.keep(repository, attempt, (made.commit,))
        denied.append(found)
        return found.rejection

    about = (course.run, course.task, attempt)
    done = bring_in.bring_in(desk, about, head, held, judged)
    if done.code is None:
        _note(desk, course, done.made)
        return None
    reason = str(done.reason) if denied else f"{done.code}: {done.reason}"
    _record(desk, course, denied, done, reason)
    return reason


def _judged(
    desk: Desk, course: Course, stage: Stage, repository: Repository, made: rows.Brought
) -> Judged:
    """The whole change from the base of the attempt on: several visits bring in no more together
    than one may."""
    run, attempt = course.run, course.attempt
    base = str(attempt.base_commit)
    policy = of_task(config_of(run), course.task, staged=True, stage=stage)
    secrets = secrets_of(config_of(run))
    examined = examine(repository, base, made.commit, policy, secrets=secrets)
    base_tree, tree = signing.trees_of(repository, base, made.commit)
    live = course.live
    author = patches.author_of(desk, attempt)
    new = New(
        run.id,
        attempt.id,
        made.way,
        base,
        base_tree,
        tree,
        made.commit,
        examined.summary._replace(notes=made.notes),
        made.sha256,
        author,
        author=author,
        visit=None if live is None else live.number,
        text=made.sha256,
    )
    # Of what was released it is written down by whoever judges it once it is in the worktree.
    with desk.database.snapshot() as snapshot:
        released = ledger.waivers_for(snapshot, course.task.id, attempt.id, tree)
    examined, waivers = patches.let_in(examined, released)
    return patches.with_name(desk, Judged(new, examined, policy, waivers, made.commit))


def _note(desk: Desk, course: Course, made: rows.Brought | None) -> None:
    """So that whoever writes down the patch knows how it came."""
    with desk.database.transaction() as tx:
        present = rows.get(tx, course.attempt.id)
        assert present is not None
        column = details_with(present, Details(brought=made))
        if column != present.details:
            columns = {"details": column, "updated_at": tx.now.wall_ms}
            rows.update(tx, present.id, columns, expected_state=present.state)


def _record(
    desk: Desk, course: Course, denied: list[Judged], done: bring_in.Brought, reason: str
) -> None:
    run, attempt = course.run, course.attempt
    found: Judged | patches.NotFitting | None = denied[0] if denied else None
    if found is None and done.stored is not None:
        text = (done.way, done.stored.sha256, done.author)
        found = patches.not_fitting(desk, run, attempt, text, reason)
    if found is None or not run.patches:
        return
    with desk.database.transaction() as tx:
        patches.record(desk, tx, run, found)
