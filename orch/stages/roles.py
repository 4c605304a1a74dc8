"""Which mailbox a stage goes to, and whether there is one for it at all; and giving roles one."""

from collections.abc import Collection, Mapping, Sequence

from inbox_orch.shared.store import events
from inbox_orch.shared.store.engine import Session

from ..attempts.visits import Visit
from ..runs import blueprint_rows
from ..runs import run_rows as runs
from ..runs import task_rows as tasks
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.model import Run, Task
from ..runs.role import Role, own_mailbox
from .model import Stage, from_canonical

KNOWN = (
    "mechanical_worker",
    "classification_worker",
    "simple_builder",
    "general_builder",
    "coding_optimized_builder",
    "frontier_reviewer",
    "emergency_pro_reviewer",
)
"""Roles whose names mean the same everywhere; a blueprint may have others."""
COUNCIL = "frontier_reviewer"
"""The role of a council that names none."""


def mailbox_of(run: Run, task: Task, stage: Stage, visits: Sequence[Visit]) -> str:
    """The mailbox of a stage: the one that a decision has named for it, that of its role in the
    run's config, or that of the task."""
    for visit in reversed(visits):
        if visit.kind != "decision" or visit.verdict != "change_role":
            continue
        if visit.found.get("resume") == stage.id and visit.found.get("mailbox"):
            return str(visit.found["mailbox"])
    return mailboxes_by_role(run).get(role_of(stage) or "", task.mailbox)


def mailboxes_by_role(run: Run) -> dict[str, str]:
    """The mailbox of each role that the run's config knows."""
    return {
        name: role.mailbox or own_mailbox(run.name, name)
        for name, role in config_of(run).roles.items()
    }


def role_of(stage: Stage) -> str | None:
    """The role of a stage."""
    return stage.role or (COUNCIL if stage.type == "council" else None)


def has_reviewer(run: Run, task: Task, stage: Stage, visits: Sequence[Visit]) -> bool:
    """Whether somebody else than the task's workers can do a stage that reviews."""
    return mailbox_of(run, task, stage, visits) != task.mailbox


def used_in(tx: Session, run: Run, also: str | None = None) -> list[str]:
    """The roles that the stages of a run's blueprints name, each once; `also` is the text of one
    that its tasks may still be given."""
    texts = [*blueprint_rows.of_run(tx, run.id).values(), *([] if also is None else [also])]
    stages = [stage for text in texts for stage in from_canonical(text).stages]
    return list(dict.fromkeys(role for stage in stages if (role := role_of(stage)) is not None))


def mailboxes_of(tx: Session, run: Run) -> list[str]:
    """The mailboxes of the roles that the stages of unfinished tasks name."""
    given = mailboxes_by_role(run)
    ids = tasks.blueprints_to_serve(tx, run.id) if given else []
    texts = blueprint_rows.of_run(tx, run.id) if ids else {}
    roles = {role_of(stage) for each in ids for stage in from_canonical(texts[each]).stages}
    return sorted({mailbox for role, mailbox in given.items() if role in roles})


def give(desk: Desk, run: Run, names: Collection[str], also: str | None = None) -> Run:
    """Let each of these names that is a role in a run, and has no mailbox by its config, have one
    of its own; the run as it is then. A name that is none, or that is the mailbox of a task, stays
    what it is. `also` as for `used_in`. Errors: those of every write."""
    with desk.database.snapshot() as snapshot:
        present = runs.get(snapshot, run.id) or run
        if not _new_ones(snapshot, present, names, also):
            return present
    with desk.database.transaction() as tx:
        present = runs.get(tx, run.id) or run
        new = _new_ones(tx, present, names, also)
        if not new:
            return present
        config = config_of(present)
        new_roles = {name: Role(mailbox) for name, mailbox in new.items()}
        changed = config._replace(roles={**config.roles, **new_roles})
        text = changed.canonical()
        runs.update(tx, run.id, {"config": text}, expected_state=present.state)
        facts = {"roles": dict(new)}
        events.append(tx, "roles_given", desk.actor(run), facts, events.About(run_id=run.id))
        return present._replace(config=text)


def _new_ones(tx: Session, run: Run, names: Collection[str], also: str | None) -> Mapping[str, str]:
    if not names:
        return {}
    given, taken = config_of(run).roles, tasks.mailboxes_to_serve(tx, run.id)
    used = used_in(tx, run, also)
    return {
        role: own_mailbox(run.name, role)
        for role in used
        if role in names and role not in given and role not in taken
    }
