"""Running checks on what an integration would come to, before anything is moved.

They run in a worktree of their own, made for it and taken away again; an intent says so, so that
whoever comes after a crash can clear it away.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from inbox_orch.shared import processes
from inbox_orch.shared.endings import Ending
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import new_id
from inbox_orch.shared.signals import Signalled

from ..domain.checks import brief_command
from ..domain.config import config_of
from ..domain.integration import Tried
from ..domain.limits import DEFAULT_CHECK_SECONDS, FOREIGN_SECONDS
from ..domain.masking import masked
from ..domain.model import Run
from ..git import worktrees
from ..git.repository import Repository
from ..git.worktrees import Place
from ..store import integrations
from ..store.attempts import Intent
from .checking import end_orphan
from .dispatching import Dispatching
from .equipping import Equipment, SetupFailed, equip
from .merging import Plan
from .surroundings import environment_for, secrets_of

if TYPE_CHECKING:
    from .running import Check, Runner

_SLACK_SECONDS = 60.0


class Trying(Dispatching):
    """The part of `integrate` that runs checks."""

    def try_out(
        self, run: Run, repository: Repository, plan: Plan, commands: Sequence[str]
    ) -> tuple[Tried, ...]:
        """Run the commands, one after the other up to the first that fails, in the files of the
        plan's tip.

        SIGINT and SIGTERM end what runs and raise `Signalled`; nothing was changed then.
        Errors: `io_error` when a command cannot be started; those of making a worktree.
        """
        if not commands:
            return ()
        try:
            with self._tree_for(run, repository, plan, len(commands)) as (number, folder):
                return self._run_all(run, plan, number, folder, commands)
        except SetupFailed as failure:
            # Where nothing can be tried, nothing has passed.
            return (_failed_setup(run, failure),)

    def _run_all(
        self, run: Run, plan: Plan, number: int, folder: str, commands: Sequence[str]
    ) -> tuple[Tried, ...]:
        from .running import Interrupted, Runner, Withdrawn

        results: list[Tried] = []
        try:
            with Runner(self.database.notice) as runner:
                for command in commands:
                    results.append(self._run_one(runner, run, plan, number, folder, command))
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
        self, runner: "Runner", run: Run, plan: Plan, number: int, folder: str, command: str
    ) -> Tried:
        check = self._what_to_run(run, plan, folder, command)
        try:
            outcome = runner.run(
                check, begins=lambda group: self._note_check(number, group), wanted=lambda: True
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

    def _what_to_run(self, run: Run, plan: Plan, folder: str, command: str) -> "Check":
        from .running import Check

        secrets = secrets_of(config_of(run))
        environment = self._environment(run, plan, folder)
        return Check(command, folder, environment, _limit(run), secrets)

    def _environment(self, run: Run, plan: Plan, folder: str) -> dict[str, str]:
        about = {
            "INBOX_DB": self.database.layout.database,
            "INBOX_DB_ID": self.database.id,
            "ORCH_RUN": run.name,
            "ORCH_WORKTREE": folder,
            "ORCH_BRANCH": plan.branch,
            "ORCH_BASE_COMMIT": plan.start,
            "ORCH_HEAD_COMMIT": plan.tip,
            "PWD": folder,
        }
        return environment_for(config_of(run), about)

    def _note_check(self, number: int, group: int) -> bool:
        """So that whoever clears up after this process can see to the check that still runs."""
        data = {"group": group, "group_started": processes.start_time(group)}
        with self.database.transaction(durable=False) as tx:
            return integrations.note(tx, number, data, self.this_process())

    # -- the worktree ------------------------------------------------------------------------

    @contextlib.contextmanager
    def _tree_for(
        self, run: Run, repository: Repository, plan: Plan, checks: int
    ) -> Iterator[tuple[int, str]]:
        """A worktree of the plan's tip, and the number of the intent that it stands for."""
        assert run.worktree_root is not None
        name = new_id()
        facts = {
            "step": "check",
            # No key of a task begins with a dot.
            "path": os.path.join(run.worktree_root, run.name, f".integration-{name.lower()}"),
            "commit": plan.tip,
            "reason": f"orch {self.database.id} integration {name}",
            "patience_seconds": FOREIGN_SECONDS + checks * (_limit(run) + _SLACK_SECONDS),
        }
        with self.database.transaction() as tx:
            number = integrations.open_intent(
                tx,
                run_id=run.id,
                data=facts,
                owner=self.this_process(),
                now_ms=tx.now.wall_ms,
            )
        try:
            place = _place(facts)
            with worktrees.alone(repository, place) as hold:
                equip(
                    self.database,
                    repository,
                    place,
                    hold,
                    Equipment(config_of(run), self._environment(run, plan, place.path)),
                    is_wanted=lambda: True,
                )
            yield number, place.path
        finally:
            self._clear_tree(run, number, facts)

    def _clear_tree(self, run: Run, number: int, facts: dict[str, Any]) -> bool:
        """Take the worktree away; what cannot be taken away now stays written down."""
        try:
            repository, place = self.repository(run), _place(facts)
            with worktrees.alone(repository, place):
                worktrees.unmake(repository, place)
        except InboxOrchError as error:
            self.database.notice(f"{facts['path']} could not be removed: {error.message}")
            return False
        self.forget_integration(number)
        return True

    def clear_after_check(self, run: Run, intent: Intent) -> bool:
        """The same for one that a process which is gone has left behind, and for its check."""
        end_orphan(intent, self.database.clock.now().boot_id)
        return self._clear_tree(run, intent.number, intent.data)

    def forget_integration(self, number: int) -> None:
        """What was begun has changed nothing that stays."""
        with self.database.transaction() as tx:
            me = self.this_process()
            integrations.close_intent(tx, number, "undone", me, tx.now.wall_ms)


def _failed_setup(run: Run, failure: SetupFailed) -> Tried:
    config, details = config_of(run), failure.details
    assert config.setup is not None
    return Tried(
        masked(config.setup.command, secrets_of(config)),
        Ending(details["exit_status"], details["signal"], details["timed_out_seconds"]),
        details["seconds"],
        details["output_tail"],
        details["output_bytes"],
    )


def _limit(run: Run) -> float:
    return config_of(run).limits.check_seconds or DEFAULT_CHECK_SECONDS


def _place(facts: dict[str, Any]) -> Place:
    """No branch: whatever is done there, none of the run's can be moved by it."""
    return Place("", facts["path"], facts["commit"], facts["reason"])
