"""What a stage has changed, judged as soon as it lies there, before anything else sees it; and once
more before it is accepted.

What is judged is the whole change from the base of the attempt on, so that no three visits bring in
what one may not; a stage's own policy is held to what that stage has changed. The patch is what
lies between the start of the stage and its end.
"""

from typing import NamedTuple

from inbox_orch.shared.digests import sha256_hex
from inbox_orch.shared.store.engine import Transaction

from ..attempts import patches
from ..attempts.patches import Judged
from ..attempts.visits import Visit
from ..git import signed as signing
from ..git.signed import Signed
from ..patches import approvals, ledger, rows
from ..patches.examine import Told, examine_told
from ..patches.ledger import New, Word
from ..patches.policy import Examined, Policy, of_stage, of_task
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.secrets import secrets_of
from .course import Course
from .model import Stage


class By(NamedTuple):
    """How a change came, of `model.WAYS`, who wrote it, and what was said with it."""

    way: str
    author: str
    words: str = ""


def judged(desk: Desk, course: Course, stage: Stage | None, head: str, by: By) -> Judged | None:
    """What the policy says of what the live visit has left, which is committed as `head`; None
    where nothing has changed, or nothing of the run is judged. Errors: those of git where this
    machine is the cause."""
    start = course.last_head
    if not course.run.patches or start is None or head == start:
        return None
    repository = desk.repository(course.run)
    base = patches.base_of(desk, repository, course.attempt)
    start_tree, tree = signing.trees_of(repository, start, head)
    if start_tree == tree and base != start:
        return None  # commits that come to nothing; what is accepted has no history
    whole = of_task(config_of(course.run), course.task, staged=True)
    examined = _examined(desk, course, (base, head), whole, by)
    own = of_stage(stage)
    if start != base or own.is_more_than_the_floor:
        of_own = _examined(desk, course, (start, head), own, by)
        known = set(examined.objections)
        more = tuple(each for each in of_own.objections if each not in known)
        examined = Examined(of_own.summary, examined.objections + more)
    new = _new(course, examined, (start, start_tree), (head, tree), by)
    return _let_in(desk, course, Policy((*whole.layers, *own.layers)), examined, new)


def _examined(
    desk: Desk, course: Course, between: tuple[str, str], policy: Policy, by: By
) -> Examined:
    repository, secrets = desk.repository(course.run), secrets_of(config_of(course.run))
    told = Told(secrets, by.author, (by.words,) if by.words else ())
    return examine_told(repository, *between, policy, told)


def _new(
    course: Course, examined: Examined, start: tuple[str, str], end: tuple[str, str], by: By
) -> New:
    live = course.live
    return New(
        course.run.id,
        course.attempt.id,
        by.way,
        *start,
        end[1],
        end[0],
        examined.summary,
        sha256_hex(f"{start[1]} {end[1]}".encode()),
        by.author,
        None if live is None else live.number,
        by.author,
    )


def _let_in(desk: Desk, course: Course, policy: Policy, examined: Examined, new: New) -> Judged:
    """With what was released of it."""
    with desk.database.snapshot() as snapshot:
        released = ledger.waivers_for(snapshot, course.task.id, course.attempt.id, str(new.tree))
    examined, waivers = patches.let_in(examined, released)
    if waivers:
        new = new._replace(replaces=waivers[0].patch.id)
    judged = Judged(new, examined, policy, waivers, str(new.head))
    return patches.with_name(desk, judged)


def record(desk: Desk, tx: Transaction, course: Course, found: Judged) -> None:
    """Write down what was judged. Where it comes in unasked, nobody needs to be asked any more
    about what lay there before."""
    patch, _ = patches.record(desk, tx, course.run, found)
    if found.denied or found.asked:
        return
    for each in approvals.waiting(tx, course.attempt.id):
        if each.patch.id != patch.id:
            why = "what lies there by now needs no approval"
            ledger.say(tx, desk, course.run, each.patch, Word("approval", "void", reason=why))


def refused_before(desk: Desk, course: Course) -> str | None:
    """Why what the live visit has changed was refused, by a leader that did not come to its end."""
    live = course.live
    if live is None or not course.run.patches:
        return None
    with desk.database.snapshot() as snapshot:
        for patch in rows.of_attempt(snapshot, course.attempt.id):
            if patch.visit == live.number and ledger.said_of(snapshot, patch) == "quarantined":
                entries = rows.entries_of(snapshot, patch.id)
                return f"policy: {next((e.reason for e in entries if e.reason), 'it is refused')}"
    return None


# -- before it is accepted -------------------------------------------------------------------


def last_judged(desk: Desk, course: Course, head: str) -> Judged | None:
    """What the policy says of the whole, where no patch of it that came in has this very tree: what
    somebody has changed while it was decided. None where one has, or nothing is judged."""
    if not course.run.patches:
        return None
    repository = desk.repository(course.run)
    base = patches.base_of(desk, repository, course.attempt)
    if head == base:
        return None
    base_tree, tree = signing.trees_of(repository, base, head)
    with desk.database.snapshot() as snapshot:
        for patch in rows.of_attempt(snapshot, course.attempt.id):
            if patch.tree == tree and ledger.said_of(snapshot, patch) in patches.COME_IN:
                return None
    policy = of_task(config_of(course.run), course.task, staged=not course.plain)
    by = By("harvest", author_in(course))
    examined = _examined(desk, course, (base, head), policy, by)
    new = _new(course, examined, (base, base_tree), (head, tree), by)
    return _let_in(desk, course, policy, examined, new)


def accepted_head(desk: Desk, course: Course, head: str) -> str:
    """The commit with which the work comes in: of the tree of `head`, on the base of the attempt.
    Made again it is the same. Errors: those of git."""
    policy = of_task(config_of(course.run), course.task, staged=not course.plain)
    squashes = policy.is_more_than_the_floor and not policy.keeps_history
    if not course.run.patches or course.plain or not squashes:
        return head
    repository = desk.repository(course.run)
    base = patches.base_of(desk, repository, course.attempt)
    if head == base:
        return head
    (tree,) = signing.trees_of(repository, head)
    return signing.commit_of(repository, tree, base, _signed(desk, course))


def _signed(desk: Desk, course: Course) -> Signed:
    """In the name and the words of the worker that has written last."""
    from ..attempts.harvesting import left_by

    wrote = last_writing(course)
    thread = None if wrote is None else wrote.thread_id
    attempt = course.attempt._replace(thread_id=thread, stage=None)
    left = left_by(desk, course.run, course.task, attempt)
    author = left.author if wrote is None else wrote.worker or left.author
    at = left.at if thread is not None else course.attempt.created_at // 1000
    return Signed(author, at, left.message)


def author_in(course: Course) -> str:
    """Who has written last; the leader where no worker has."""
    wrote = last_writing(course)
    return course.run.leader if wrote is None else wrote.worker or course.run.leader


def last_writing(course: Course) -> Visit | None:
    """The last visit of an agent that wrote, or whose text was applied; None without any."""
    applied = False
    for visit in reversed(course.visits):
        stage = course.stage_of(visit)
        if stage is None or visit.state != "succeeded":
            continue
        taken = course.taken_up(visit)
        if taken is not None:
            return taken
        if visit.kind == "agent" and visit.worker and (stage.writes or applied):
            return visit
        applied = applied or stage.action == "apply_patch"
    return None
