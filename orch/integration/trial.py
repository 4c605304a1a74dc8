"""Running checks on what an integration would come to, before anything is moved.

They run in a worktree of their own, made for it and taken away again; an intent says so, so that
a later process can clear it away after a crash.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import new_id
from inbox_orch.shared.processes import processes
from inbox_orch.shared.processes.signals import Signalled

from ..attempts.equip import Equipment, SetupFailed, equip
from ..attempts.judge import end_orphan
from ..gates.checks import brief_command
from ..gates.surroundings import environment_for
from ..git import worktrees
from ..git.masking import masked
from ..git.repository import Repository
from ..git.standing import require_here
from ..git.worktrees import Place
from ..journal import owners
from ..journal import rows as journal_rows
from ..journal.rows import Intent
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.limits import DEFAULT_CHECK_SECONDS, FOREIGN_SECONDS
from ..runs.model import Run
from ..runs.secrets import secrets_of
from .merge import Plan
from .rules import Tried

if TYPE_CHECKING:
    from ..gates.running import Check, Runner

_SLACK_SECONDS = 60.0


def try_out(
    desk: Desk, run: Run, repository: Repository, plan: Plan, commands: Sequence[str]
) -> tuple[Tried, ...]:
    """Run the commands, one after the other up to the first that fails, in the files of the
    plan's tip.

    SIGINT and SIGTERM end what runs and raise `Signalled`; nothing was changed then.
    Errors: `io_error` when a command cannot be started; those of making a worktree.
    """
    if not commands:
        return ()
    try:
        with _tree_for(desk, run, repository, plan, len(commands)) as (number, folder):
            return _run_all(desk, run, plan, number, folder, commands)
    except SetupFailed as failure:
        # Where nothing can be tried, nothing has passed.
        return (_failed_setup(run, failure),)


def _run_all(
    desk: Desk, run: Run, plan: Plan, number: int, folder: str, commands: Sequence[str]
) -> tuple[Tried, ...]:
    from ..gates.running import Interrupted, Runner, Withdrawn

    results: list[Tried] = []
    try:
        with Runner(desk.database.notice) as runner:
            for command in commands:
                results.append(_run_one(desk, runner, run, plan, number, folder, command))
                if runner.told_to_end is not None:
                    raise Interrupted(runner.told_to_end)
                if not results[-1].passed:
                    break
    except Interrupted as interrupted:
        raise Signalled(interrupted.number) from None
    except Withdrawn as withdrawn:
        # It was taken for dead, from another container, say.
        raise InboxOrchError(
            "busy",
            f"nothing was moved: {withdrawn}",
            hint="try again",
            details={"run": run.name},
        ) from withdrawn
    return tuple(results)


def _run_one(
    desk: Desk, runner: "Runner", run: Run, plan: Plan, number: int, folder: str, command: str
) -> Tried:
    check = _what_to_run(desk, run, plan, folder, command)
    require_here(folder, desk.repository(run).common_directory)
    try:
        outcome = runner.run(
            check, begins=lambda group: _note_check(desk, number, group), wanted=lambda: True
        )
    except OSError as error:
        shown = brief_command(masked(command, check.secrets))
        raise InboxOrchError(
            "io_error",
            f"the check `{shown}` could not be started: {error.strerror}",
            hint="nothing was moved; try again once that is put right",
            details={"folder": folder},
        ) from error
    return Tried(
        masked(command, check.secrets),
        outcome.ending,
        outcome.seconds,
        outcome.tail,
        outcome.output_bytes,
    )


def _what_to_run(desk: Desk, run: Run, plan: Plan, folder: str, command: str) -> "Check":
    from ..gates.running import Check

    secrets = secrets_of(config_of(run))
    environment = _environment(desk, run, plan, folder)
    return Check(command, folder, environment, _limit(run), secrets)


def _environment(desk: Desk, run: Run, plan: Plan, folder: str) -> dict[str, str]:
    about = {
        "INBOX_DB": desk.database.address,
        "INBOX_DB_ID": desk.database.id,
        "ORCH_RUN": run.name,
        "ORCH_WORKTREE": folder,
        "ORCH_BRANCH": plan.branch,
        "ORCH_BASE_COMMIT": plan.start,
        "ORCH_HEAD_COMMIT": plan.tip,
        "PWD": folder,
    }
    return environment_for(config_of(run), about)


def _note_check(desk: Desk, number: int, group: int) -> bool:
    """So that a process that clears up after this one can end the check that still runs."""
    data = {"group": group, "group_started": processes.start_time(group)}
    with desk.database.transaction(durable=False) as tx:
        return journal_rows.note_by_number(tx, number, data, owners.this_process(desk))


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
        "patience_seconds": FOREIGN_SECONDS + checks * (_limit(run) + _SLACK_SECONDS),
    }
    with desk.database.transaction() as tx:
        number = journal_rows.open_integration(
            tx,
            run_id=run.id,
            data=facts,
            owner=owners.this_process(desk),
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
    end_orphan(intent, desk.database.clock.now().boot_id)
    return _clear_tree(desk, run, intent.number, intent.data)


def forget_integration(desk: Desk, number: int) -> None:
    """What was begun has changed nothing that stays."""
    with desk.database.transaction() as tx:
        me = owners.this_process(desk)
        journal_rows.close_by_number(tx, number, "undone", me, tx.now.wall_ms)


def _failed_setup(run: Run, failure: SetupFailed) -> Tried:
    config, ended = config_of(run), failure.ended
    # Nobody takes the wish for an integration back while its set-up runs.
    assert config.setup is not None and ended is not None
    return Tried(masked(config.setup.command, secrets_of(config)), *ended)


def _limit(run: Run) -> float:
    return config_of(run).limits.check_seconds or DEFAULT_CHECK_SECONDS


def _place(facts: dict[str, Any]) -> Place:
    """No branch: whatever is done there, none of the run's can be moved by it."""
    return Place("", facts["path"], facts["commit"], facts["reason"])
