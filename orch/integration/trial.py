"""Running checks on what an integration would come to, before anything is moved.

They run in a worktree of their own, made for it and taken away again; an intent says so, so that
a later process can clear it away after a crash.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import new_id
from inbox_orch.shared.processes.signals import Signalled

from ..attempts.equip import Equipment, SetupFailed, equip
from ..gates.checks import Checked
from ..gates.orphans import end_orphan, facts_of
from ..gates.spec import GateSpec, NotStarted, limit_seconds, patience_seconds
from ..gates.surroundings import Subject, environment_for
from ..gates.turns import finished
from ..git import worktrees
from ..git.masking import masked
from ..git.repository import Repository
from ..git.worktrees import Place
from ..journal import rows as journal_rows
from ..journal.rows import Intent
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.model import Run
from ..runs.secrets import secrets_of
from .merge import Plan


def try_out(
    desk: Desk, run: Run, repository: Repository, plan: Plan, commands: Sequence[str]
) -> tuple[Checked, ...]:
    """Run the commands, one after the other up to the first that fails, in the files of the
    plan's tip.

    SIGINT and SIGTERM end what runs and raise `Signalled`; nothing was changed then.
    Errors: `io_error` when a command cannot be started; those of making a worktree.
    """
    if not commands:
        return ()
    try:
        with _tree_for(desk, run, repository, plan, len(commands)) as (number, folder):
            gates = [partial(_gate, desk, run, plan, folder, command) for command in commands]
            return _run_all(desk, run, number, gates)
    except SetupFailed as failure:
        # Where nothing can be tried, nothing has passed.
        return (_failed_setup(run, failure),)


def _run_all(
    desk: Desk, run: Run, number: int, gates: Sequence[Callable[[], GateSpec]]
) -> tuple[Checked, ...]:
    from ..gates.running import Interrupted, Mandate, Runner, Withdrawn

    mandate = Mandate(begins=lambda group: _note_check(desk, number, group))
    try:
        with Runner(desk.database.notice, mandate) as runner:
            results = finished(runner.series(gates))
    except Interrupted as interrupted:
        raise Signalled(interrupted.number) from None
    except NotStarted as failed:
        hint = "nothing was moved; try again once that is put right"
        raise failed.of_git or failed.as_error(hint) from failed.__cause__
    except Withdrawn as withdrawn:
        # It was taken for dead, from another container, say.
        raise InboxOrchError(
            "busy",
            f"nothing was moved: {withdrawn}",
            hint="try again",
            details={"run": run.name},
        ) from withdrawn
    assert results is not None  # nothing limits when a check may start
    return tuple(results)


def _gate(desk: Desk, run: Run, plan: Plan, folder: str, command: str) -> GateSpec:
    config = config_of(run)
    return GateSpec(
        command,
        folder,
        desk.repository(run).common_directory,
        _environment(desk, run, plan, folder),
        limit_seconds(config.limits),
        secrets_of(config),
    )


def _environment(desk: Desk, run: Run, plan: Plan, folder: str) -> dict[str, str]:
    subject = Subject(run, folder, plan.branch, plan.start, plan.tip)
    return environment_for(desk.database, config_of(run), subject)


def _note_check(desk: Desk, number: int, group: int) -> bool:
    """So that a process that clears up after this one can end the check that still runs."""
    with desk.database.transaction(durable=False) as tx:
        me = desk.database.owner()
        return journal_rows.note_by_number(tx, number, facts_of(group), me)


# -- the worktree ------------------------------------------------------------------------


@contextlib.contextmanager
def _tree_for(
    desk: Desk, run: Run, repository: Repository, plan: Plan, checks: int
) -> Iterator[tuple[int, str]]:
    """A worktree of the plan's tip, and the number of the intent that it stands for."""
    assert run.worktree_root is not None
    name = new_id()
    facts = {
        "step": "check",
        # No key of a task begins with a dot.
        "path": os.path.join(run.worktree_root, run.name, f".integration-{name.lower()}"),
        "commit": plan.tip,
        "reason": f"orch {desk.database.id} integration {name}",
        "patience_seconds": patience_seconds(checks, config_of(run).limits),
    }
    with desk.database.transaction() as tx:
        number = journal_rows.open_integration(
            tx,
            run_id=run.id,
            data=facts,
            owner=desk.database.owner(),
            now_ms=tx.now.wall_ms,
        )
    try:
        place = _place(facts)
        with worktrees.alone(repository, place) as hold:
            equip(
                desk.database,
                repository,
                place,
                hold,
                Equipment(config_of(run), _environment(desk, run, plan, place.path)),
                is_wanted=lambda: True,
            )
        yield number, place.path
    finally:
        _clear_tree(desk, run, number, facts)


def _clear_tree(desk: Desk, run: Run, number: int, facts: dict[str, Any]) -> bool:
    """Take the worktree away; what cannot be taken away now stays written down."""
    try:
        repository, place = desk.repository(run), _place(facts)
        with worktrees.alone(repository, place):
            worktrees.unmake(repository, place)
    except InboxOrchError as error:
        desk.database.notice(f"{facts['path']} could not be removed: {error.message}")
        return False
    forget_integration(desk, number)
    return True


def clear_after_check(desk: Desk, run: Run, intent: Intent) -> bool:
    """End the check that a process which is gone has left behind, and take its worktree away;
    False when that cannot be done now."""
    end_orphan(intent, desk.database.now().boot_id)
    return _clear_tree(desk, run, intent.number, intent.data)


def forget_integration(desk: Desk, number: int) -> None:
    """What was begun has changed nothing that stays."""
    with desk.database.transaction() as tx:
        me = desk.database.owner()
        journal_rows.close_by_number(tx, number, "undone", me, tx.now.wall_ms)


def _failed_setup(run: Run, failure: SetupFailed) -> Checked:
    config, ended = config_of(run), failure.ended
    # Nobody takes the wish for an integration back while its set-up runs.
    assert config.setup is not None and ended is not None
    return Checked(masked(config.setup.command, secrets_of(config)), *ended)


def _place(facts: dict[str, Any]) -> Place:
    """No branch: whatever is done there, none of the run's can be moved by it."""
    return Place("", facts["path"], facts["commit"], facts["reason"])
