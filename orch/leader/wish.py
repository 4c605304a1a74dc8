"""A wish: work that somebody wants done, and the run in which it is.

The same wish leads to the same run, until that is closed: so what was interrupted goes on when it
is asked for once more, and two who ask at once share the work.
"""

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from inbox_orch.shared.digests import digest_of
from inbox_orch.shared.errors import not_found, usage
from inbox_orch.shared.ids import printable

from ..attempts import steer
from ..git.heads import branch_in
from ..git.repository import Repository
from ..integration.integrate import Integrated, integrate
from ..runs import limits, plan_import
from ..runs import run_rows as runs
from ..runs import task_rows as tasks
from ..runs.desk import Desk
from ..runs.model import Run
from ..runs.names import task_key
from ..runs.plan import Opening, Plan, TaskSpec

_MOST_MOVES = 20


class Wish(NamedTuple):
    """The tasks, and the run to open for them; `folder` lies in the repository; `onto` is the
    branch that the result is to come to."""

    plan: Plan
    opening: Opening
    folder: str
    onto: str


def plan_of(title: str, body: str, checks: Sequence[str]) -> Plan:
    """One task, as a plan. Without `checks`, those of the run's config hold."""
    limits.check_title(title)
    limits.check_task_body(body)
    limits.check_commands(checks)
    task = TaskSpec(task_key(title), title, body, checks=tuple(checks) or None)
    return Plan((task,), Opening(title))


def branch_here(folder: str) -> str:
    """The branch that is checked out in the working tree of a folder; error `usage` when there is
    none, and those of git."""
    Repository.at(folder)  # says what is wrong where there is none
    branch = branch_in(folder)
    if branch is None:
        raise usage(
            "no branch is checked out here, so it is not known where the result is to go",
            hint="give --onto BRANCH",
        )
    return branch


def check_branch(folder: str, name: str) -> None:
    """Error `not_found` unless the repository of a folder has a branch of this name."""
    if not Repository.at(folder).has_branch(name):
        raise not_found(
            "branch", printable(name), hint=f"`git branch {shlex.quote(name)}` makes it"
        )


def open_wish(desk: Desk, wish: Wish) -> tuple[Run, bool]:
    """The run of a wish, and whether it was there already. Raises `plan_import.Refused`; errors
    as of `run_init`."""
    asked = {
        "tasks": [_as_asked(task) for task in wish.plan.tasks],
        "title": wish.opening.title,
        "onto": wish.onto,
        "repository": Repository.at(wish.folder).path,
    }
    digest, number = digest_of(asked), 1
    # A mailbox of its own, so that its workers do nothing but what was wished for.
    own = f"do-{digest[:12]}"
    plan = wish.plan._replace(
        tasks=tuple(t if t.mailbox else t._replace(mailbox=own) for t in wish.plan.tasks)
    )
    while True:
        answer = plan_import.plan_open(
            desk, plan, wish.opening, repository=wish.folder, key=f"do-{digest}-{number}"
        )
        with desk.database.snapshot() as snapshot:
            run = runs.get(snapshot, answer.data["run"]["id"])
        if run is not None and run.state != "closed":
            return run, bool(answer.replayed)
        number += 1


def _as_asked(task: TaskSpec) -> Sequence[object]:
    """A task as it is recognised by: where it says nothing of a blueprint, as before there were
    any, and where nothing of a policy, as before there was that."""
    values = list(task)
    if task.policy is not None:
        return values
    return values[: TaskSpec._fields.index("blueprint" if task.blueprint is None else "policy")]


def try_again(desk: Desk, run: Run) -> tuple[str, ...]:
    """Let the failed tasks of a run be tried once more; their keys. Errors as of `retry`."""
    with desk.database.snapshot() as snapshot:
        present = tasks.of_run(snapshot, run.id, bodies=False)
    failed = [task.key for task in present if task.state == "failed"]
    if failed:
        steer.retry(desk, run, failed)
    return tuple(failed)


def bring_in(desk: Desk, run: Run, wish: Wish) -> Integrated:
    """Integrate the run onto its branch; anew when the branch has moved meanwhile, as it does when
    others bring in theirs. Errors as of `integrate`."""
    tries = 0
    while True:
        done = integrate(desk, run, onto=wish.onto, within=wish.folder)
        before = None if done.onto is None else done.onto["before"]
        now = desk.repository(run).ref_commit(f"refs/heads/{wish.onto}")
        if not done.not_forwarded or now == before or (tries := tries + 1) == _MOST_MOVES:
            return done
