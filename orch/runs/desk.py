"""`Desk`: what every function of the scheduler is given: the bus, the caller, runs by their
names, keys of calls."""

import contextlib
import json
import os
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from inbox_orch.inbox import Bus
from inbox_orch.shared.errors import InboxOrchError, not_found, usage
from inbox_orch.shared.ids import check_name, printable
from inbox_orch.shared.shell.nearest import did_you_mean
from inbox_orch.shared.store import events, kept_files, requests
from inbox_orch.shared.store.engine import Engine, Session, Transaction

from ..git.commands import keep_secret
from ..git.recognising import copy_around, has_refs
from ..git.repository import Repository
from . import finding, states
from . import run_rows as runs
from . import task_rows as tasks
from .config import config_of
from .model import Attempt, Run, Task
from .secrets import secrets_of

if TYPE_CHECKING:
    from ..git.worktrees import Place


class Answer(NamedTuple):
    """What a command with a key did, as JSON; `replayed` is None when there was no key."""

    data: dict[str, Any]
    replayed: bool | None = None

    def as_json(self) -> dict[str, Any]:
        shown = {} if self.replayed is None else {"replayed": self.replayed}
        return {**self.data, **shown}


class Desk:
    """The bus and the caller: what every function of the scheduler is given first.

    `caller` is the agent named by the call; without one a call acts as the run's leader.
    """

    def __init__(self, bus: Bus, caller: str | None = None) -> None:
        self.bus = bus
        # The one that the bus and the scheduler share.
        self.database: Engine = bus.database
        self.caller = None if caller is None else check_name(caller, "agent")
        # HEADs that were found to have nothing new, by attempt, so that git is not asked again.
        self.nothing_new: dict[str, str] = {}

    def actor(self, run: Run) -> str:
        """Who is named in the events of this call."""
        return self.caller or run.leader

    # -- finding -----------------------------------------------------------------------------

    def run(self, name: str | None, *, shows: bool = False) -> Run:
        """The run of this name or id, or whose name or id begins so, else the only one that is not
        closed. For who only looks (`shows`), where none is open, the one that was closed last.

        Errors: `not_found`; `usage`, which lists them, when there are several.
        """
        with self.database.snapshot() as snapshot:
            if name is not None:
                return finding.named(snapshot, name)
            return finding.last_or_open(snapshot) if shows else finding.only_open(snapshot)

    def task(self, tx: Session, run: Run, name: str) -> Task:
        """The task with this key or id; error `not_found` with the nearest key."""
        task = tasks.get(tx, run.id, name)
        if task is None:
            keys = tasks.ids_by_key(tx, run.id)
            hint = did_you_mean(name[:200], keys, f"`orch status --run {run.name}` lists them")
            raise not_found("task", printable(name), hint=hint)
        return task

    def require_open(self, tx: Session, run: Run) -> Run:
        """The run as it is now; error `invalid_state` when its tasks can be changed no more."""
        present = runs.get(tx, run.id)
        assert present is not None, "runs are never removed"
        if present.state not in ("open", "paused"):
            closed = present.state == "closed"
            raise InboxOrchError(
                "invalid_state",
                f"run {run.name} is {present.state}: nothing of it can be changed",
                hint="`orch run reopen` opens it again"
                if closed
                else "`orch run show` tells how it ended",
                details={"run": run.name, "state": present.state},
            )
        return present

    def repository(self, run: Run) -> Repository:
        """The run's repository; error `usage` when it has none, `git_failed` when it is gone or
        is not the one any more."""
        if run.repository is None:
            raise usage(
                f"run {run.name} has no repository",
                hint="its tasks can only be added with --no-worktree",
            )
        config = config_of(run)
        if config.secrets:
            keep_secret(secrets_of(config))
        repository = Repository(run.repository)
        require_own_place(self.database.layout.database, run, repository)
        return repository

    def move_run(
        self,
        tx: Transaction,
        run: Run,
        target: str,
        *,
        cause: str,
        changes: Mapping[str, Any] | None = None,
    ) -> Run:
        """One transition of a run, guarded, with its event; returns it as it is then."""
        states.require("run", run.state, target)
        columns = {**(changes or {}), "state": target}
        changed = runs.update(tx, run.id, columns, expected_state=run.state)
        assert changed, "the run changed under the write lock"
        if "closed" in (run.state, target):
            kept_files.set_over(tx, run.id, tx.now.wall_ms if target == "closed" else None)
        facts = {"from": run.state, "to": target, "cause": cause}
        events.append(tx, f"run_{target}", self.actor(run), facts, events.About(run_id=run.id))
        after = runs.get(tx, run.id)
        assert after is not None
        return after

    # -- keys --------------------------------------------------------------------------------

    def replay(
        self, tx: Transaction, command: str, agent: str, key: str | None, digest: str
    ) -> Answer | None:
        """The first result of an earlier call with this key; error `key_conflict`."""
        return self.find_replay(tx, command, agent, key, digest)

    def find_replay(
        self,
        tx: Session,
        command: str,
        agent: str,
        key: str | None,
        digest: str,
    ) -> Answer | None:
        """The first result of an earlier call with this key, in a snapshot. A caller that
        goes on to write has to look again in its transaction. Error `key_conflict`."""
        if key is None:
            return None
        found = requests.first_result(tx, requests.Request(command, agent, key, digest))
        return None if found is None else Answer(json.loads(found), True)

    def remember(
        self,
        tx: Transaction,
        command: str,
        agent: str,
        key: str | None,
        digest: str,
        data: dict[str, Any],
    ) -> Answer:
        """Store the first result under its key, if there is one."""
        if key is None:
            return Answer(data)
        request = requests.Request(command, agent, key, digest)
        response = json.dumps(data, ensure_ascii=False)
        requests.store(tx, request, response, tx.now.wall_ms)
        return Answer(data, False)


def require_own_place(database: str, run: Run, repository: Repository) -> None:
    """Error `git_failed` when a run's repository is gone or another one, and when the database is
    a copy that would act on the repository of the original."""
    assert run.repository is not None
    if not _is_of_run(repository, run):
        place = shlex.quote(run.repository)
        raise InboxOrchError(
            "git_failed",
            f"{run.repository} is not the repository of run {run.name} any more",
            hint=f"put it back where it was; if it was moved, `ln -s NEW {place}` leads there",
            details={"repository": run.repository},
        )
    copy = copy_around(database, run.repository, run.refs)
    if copy is not None:
        raise InboxOrchError(
            "git_failed",
            f"this database lies in {copy}, a copy: run {run.name} is of {run.repository}",
            hint=f"go on with the run in {run.repository}; `orch run init` opens one for the copy",
            details={"repository": run.repository, "copy": copy},
        )


def _is_of_run(repository: Repository, run: Run) -> bool:
    """Whether the repository is the one that a run was opened for: the same git directory, or one
    that was put back from a backup, with the refs of the run in it."""
    if not os.path.isdir(repository.path):
        return False
    try:
        same = repository.identity() == run.repository_identity
    except (OSError, InboxOrchError):
        return False
    return same or has_refs(repository.path, run.refs)


def place_of(desk: Desk, attempt: Attempt) -> "Place":
    """The worktree of an attempt that has one, as git has to know it."""
    from ..git.worktrees import Place  # those who only look have no use for it

    assert attempt.branch and attempt.worktree_path and attempt.base_commit
    reason = f"orch {desk.database.id} {attempt.id}"
    return Place(attempt.branch, attempt.worktree_path, attempt.base_commit, reason)


def no_worktree_of(run: Run, folder: str | None) -> str | None:
    """The folder in which HEAD is to be read; None, which is the main working tree, where it lies
    in a worktree of the run: what its worker has there is judged by nobody yet, and no base that is
    meant."""
    if folder is None or run.worktree_root is None:
        return folder
    place = os.path.realpath(os.path.join(run.worktree_root, run.name))
    return None if os.path.realpath(folder).startswith(place + os.sep) else folder


# -- the commit that a run begins at ----------------------------------------------------------


def keep_base(desk: Desk, run: Run) -> None:
    """Keep the base of a run reachable, or what HEAD is where it has none; by the same ref its
    repository is known again. What cannot be kept now is kept by the next dispatch; a clean-up
    of the closed run lets it go. Setting the ref again does no harm."""
    if run.repository is None:
        return
    with contextlib.suppress(InboxOrchError):  # what comes next says so
        repository = desk.repository(run)
        if repository.ref_commit(run.mark) is None:
            repository.keep(run.mark, run.base_commit or repository.commit_of("HEAD"))
