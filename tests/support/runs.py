"""Runs on real git repositories: a scheduler, and workers that claim, commit and report."""

import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from inbox_orch.orch.attempts import rows as attempts
from inbox_orch.orch.journal import rows as journal_rows
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.runs import task_rows as tasks
from inbox_orch.orch.runs.desk import Answer, Desk
from inbox_orch.orch.runs.model import Attempt, Run, Task
from inbox_orch.orch.runs.plan import Link, Opening, TaskSpec
from support.buses import Office
from support.templates import make_repository


def git(folder: Path | str, *arguments: str, status: int = 0) -> str:
    """The output of git in a folder, without its last line end. Newer gits look after a repository
    in the background when they have written to it: not these."""
    done = subprocess.run(
        ["git", "-c", "maintenance.auto=false", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="surrogateescape",
    )
    assert done.returncode == status, f"git {arguments}: {done.returncode} {done.stderr}"
    return done.stdout.rstrip("\n")


def commit(folder: Path | str, name: str, content: str) -> str:
    """Write a file and commit it; the id of the commit."""
    path = Path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", f"Write {name}")
    return _committed(folder)


def _committed(folder: Path | str) -> str:
    """The commit that was just made: what it moved is a file, and to read that takes no git."""
    place = Path(folder, ".git")
    try:
        if place.is_file():
            place = Path(folder, place.read_text().removeprefix("gitdir: ").rstrip("\n"))
        head = (place / "HEAD").read_text().rstrip("\n")
        if not head.startswith("ref: "):
            return head
        common = place / "commondir"
        top = place / common.read_text().rstrip("\n") if common.exists() else place
        return (top / head.removeprefix("ref: ")).read_text().rstrip("\n")
    except OSError:
        return git(folder, "rev-parse", "HEAD")


def only_for(
    monkeypatch: pytest.MonkeyPatch,
    scheduler: Scheduler,
    module: ModuleType,
    name: str,
    replacement: Callable[..., Any],
) -> None:
    """Replace a function of the services for the calls of one scheduler alone. The replacement is
    called without the desk."""
    genuine = getattr(module, name)

    def chosen(desk: Desk, *arguments: Any, **named: Any) -> Any:
        if desk is scheduler.desk:
            return replacement(*arguments, **named)
        return genuine(desk, *arguments, **named)

    monkeypatch.setattr(module, name, chosen)


def run_init(
    scheduler: Scheduler,
    *,
    title: str = "A run",
    repository: Path | str | None,
    worktree_root: Path | str | None = None,
    key: str | None = None,
    **options: Any,
) -> Answer:
    """Open a run. `options` are those of `Opening`."""
    return scheduler.run_init(
        Opening(title, no_repo=repository is None, **options),
        repository=None if repository is None else str(repository),
        worktree_root=None if worktree_root is None else str(worktree_root),
        key=key,
    )


def task_spec(
    key: str,
    title: str,
    *,
    depends_on: Iterable[str] = (),
    checks: Iterable[str] | None = None,
    **options: Any,
) -> TaskSpec:
    """A task that waits for the success of others. `options` are those of `TaskSpec`."""
    links = tuple(Link(name) for name in depends_on)
    commands = None if checks is None else tuple(checks)
    return TaskSpec(key, title, depends_on=links, checks=commands, **options)


def add_task(
    scheduler: Scheduler,
    run: Run,
    *,
    key_name: str,
    title: str,
    key: str | None = None,
    **options: Any,
) -> Answer:
    """Add a task. `options` are those of `task_spec`."""
    return scheduler.add_task(run, task_spec(key_name, title, **options), key=key)


class Site:
    """A repository with a database and a scheduler, on a clock that the test turns."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.repository = make_repository(folder / "project")
        self.worktrees = folder / "worktrees"
        self.office = Office(self.repository)
        self.clock = self.office.clock
        self.scheduler = self.leader()
        self.worker = self.office.bus("w1")

    def close(self) -> None:
        """Close every connection."""
        self.office.close()

    def leader(self, caller: str | None = None) -> Scheduler:
        """A scheduler on a connection of its own."""
        return Scheduler(self.office.bus(), caller)

    # -- what a leader does ------------------------------------------------------------------

    def open_run(self, repository: Path | None = None, **options: Any) -> Run:
        """A run for the repository."""
        answer = run_init(
            self.scheduler,
            repository=str(repository or self.repository),
            **{"worktree_root": str(self.worktrees), **options},
        )
        return self.scheduler.run(answer.data["run"]["name"])

    def add(self, run: Run, *keys: str, **options: Any) -> None:
        """Tasks with these keys."""
        for key in keys:
            add_task(self.scheduler, run, key_name=key, title=f"Do {key}", **options)

    def dispatch(self, run: Run, *keys: str, **options: Any) -> dict[str, dict[str, Any]]:
        """The dispatched attempts by their tasks' keys."""
        done = self.scheduler.dispatch(run, task_names=keys, **options)
        return {item["key"]: item for item in done.as_json()["items"]}

    def standing(self, run: Run, key: str) -> Any:
        """How a task stands."""
        rows = self.scheduler.status(run).rows
        return next(row.standing for row in rows if row.standing.task.key == key)

    def states(self, run: Run) -> dict[str, str]:
        """How every task stands, by its key."""
        rows = self.scheduler.status(run).rows
        return {row.standing.task.key: row.standing.state for row in rows}

    def task(self, run: Run, key: str) -> Task:
        """A task as it is stored."""
        with self.scheduler.database.snapshot() as snapshot:
            return self.scheduler.desk.task(snapshot, run, key)

    def attempts(self, run: Run, key: str) -> list[Attempt]:
        """Every attempt at a task, in order."""
        with self.scheduler.database.snapshot() as snapshot:
            task = tasks.get(snapshot, run.id, key)
            assert task is not None
            return attempts.of_task(snapshot, task.id)

    def open_intents(self, run: Run) -> list[Any]:
        """What was begun and not confirmed."""
        with self.scheduler.database.snapshot() as snapshot:
            return journal_rows.open_intents(snapshot, run.id)

    # -- what a worker does ------------------------------------------------------------------

    def claim(self, item: dict[str, Any], **options: Any) -> str:
        """Take an attempt's thread; the token."""
        claimed = self.worker.claim(item["thread"], mailboxes=[item["mailbox"]], **options)
        assert claimed.lease.token is not None
        return claimed.lease.token

    def done(self, item: dict[str, Any]) -> None:
        """Claim, and say that it is done."""
        self.worker.done(item["thread"], self.claim(item), body="done")

    def deliver(self, item: dict[str, Any], name: str, content: str = "text\n") -> str:
        """Claim, commit one file, say that it is done; the commit."""
        head = commit(item["worktree"], name, content)
        self.done(item)
        return head

    def fail(self, item: dict[str, Any], body: str = "it does not work", **options: Any) -> None:
        """Claim and fail."""
        self.worker.fail(item["thread"], self.claim(item), body=body, **options)


# -- what git has ----------------------------------------------------------------------------


def worktree_paths(repository: Path) -> set[str]:
    """The worktrees that git knows, besides the main one."""
    lines = git(repository, "worktree", "list", "--porcelain").splitlines()
    paths = [line.removeprefix("worktree ") for line in lines if line.startswith("worktree ")]
    return {os.path.realpath(path) for path in paths[1:]}


def branches(repository: Path, under: str = "orch/") -> set[str]:
    """The branches of attempts."""
    listed = git(repository, "for-each-ref", "--format=%(refname:short)", f"refs/heads/{under}")
    return set(listed.split())


def refs_beside_base(site: Site, run: Run) -> set[str]:
    """Refs of ours, without the one that keeps what a run begins at for as long as it is open."""
    listed = git(site.repository, "for-each-ref", "--format=%(refname)", "refs/orch")
    return set(listed.split()) - {f"refs/orch/run/{run.id}"}


def lock_files(*folders: Path) -> list[str]:
    """Lock files that somebody has left."""
    return [str(path) for folder in folders for path in folder.rglob("*.lock") if _is_left(path)]


def _is_left(path: Path) -> bool:
    # The lock of the repository is a file that stays; who holds it is the kernel's affair.
    return path.name != "inbox-orch.lock"
