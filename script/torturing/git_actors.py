"""The processes around the git repository: leaders that schedule, coders that commit.

A coder writes down every content that it has put into its worktree, committed or not: none of it
may ever be gone.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

from actors import Actor

from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.runs.plan import Link, Opening, TaskSpec

MAILBOX = "coders"
MOST_LIVE = 12


class Leader(Actor):
    """Adds tasks, dispatches, reconciles, integrates and cleans up, in no particular order."""

    def __init__(self, *arguments: Any) -> None:
        self._told: set[str] = set()
        super().__init__(*arguments)

    def open(self) -> None:
        super().open()
        self.scheduler = Scheduler(self.bus)

    def step(self) -> None:
        self.pause(2.0)  # git takes processor time out of proportion
        acts = (self.add, self.dispatch, self.reconcile, self.clean_up, self.integrate, self.retry)
        self.chance.choices(acts, (4, 6, 10, 2, 1, 1))[0]()

    def add(self) -> None:
        key = self.body().replace("/", "-")
        status = self.status()
        if status is None or status["unfinished"] > MOST_LIVE:
            return
        after = tuple(Link(key) for key in status["keys"][-2:] if self.maybe(0.5))
        spec = TaskSpec(key, key, mailbox=MAILBOX, depends_on=after, max_attempts=5)
        self.orch(
            "task add",
            lambda run: self.scheduler.add_task(run, spec),
            lambda added: {"task": added.data["task"]["id"]},
            key=key,
        )

    def dispatch(self) -> None:
        self.orch(
            "dispatch",
            lambda run: self.scheduler.dispatch(run),
            lambda done: {"attempts": [item["id"] for item in done.items]},
        )

    def reconcile(self) -> None:
        self.orch("reconcile", lambda run: self.scheduler.reconcile(run), lambda _: {})
        self.status()

    def clean_up(self) -> None:
        force = self.maybe(0.5)
        self.orch(
            "cleanup",
            lambda run: self.scheduler.cleanup(run, force=force),
            lambda done: {"removed": sum(i.action == "removed" for i in done.items)},
            force=force,
        )

    def integrate(self) -> None:
        self.orch("integrate", lambda run: self.scheduler.integrate(run), lambda _: {})

    def retry(self) -> None:
        status = self.status()
        for key in (status or {"failed": []})["failed"][:1]:
            self.orch("retry", lambda run, k=key: self.scheduler.retry(run, [k]), lambda _: {})

    def status(self) -> dict[str, Any] | None:
        """How the tasks stand, with every head that was accepted."""
        found: dict[str, Any] | None = self.orch(
            "status", lambda run: _status(self.scheduler.status(run)), self._news
        )
        return found

    def _news(self, status: dict[str, Any]) -> dict[str, Any]:
        """The heads that this process has not written down yet."""
        heads = status["heads"] - self._told
        self._told |= heads
        return {"heads": sorted(heads)}

    def orch(self, name: str, call: Any, told: Any, **facts: Any) -> Any:
        return self.do(name, lambda: call(self.scheduler.run(None)), told, **facts)


def _status(status: Any) -> dict[str, Any]:
    tasks = [row.standing.task for row in status.rows]
    return {
        "unfinished": sum(not row.standing.settled for row in status.rows),
        "keys": [task.key for task in tasks],
        "failed": [task.key for task in tasks if task.state == "failed"],
        "heads": {task.accepted_head for task in tasks if task.accepted_head is not None},
    }


class Coder(Actor):
    """Claims an attempt, edits, commits or not, and says that it is done, or lets it be."""

    def step(self) -> None:
        self.pause(0.5)
        claimed = self.do(
            "claim",
            lambda: self.bus.claim(mailboxes=[MAILBOX], lease_seconds=3.0, wait_seconds=1.0),
            lambda c: {"thread": c.thread.id, "epoch": c.lease.epoch},
            lease_seconds=3.0,
        )
        if claimed is None:
            return
        facts = {"thread": claimed.thread.id, "epoch": claimed.lease.epoch}
        worktree = Path(json.loads(claimed.messages[0].payload)["worktree"])
        while self.maybe(0.7):
            self.edit(worktree)
        if self.maybe(0.8):
            self.commit(worktree)
        if self.maybe(0.95):  # else it lets the lease run out
            end, body = "done" if self.maybe(0.9) else "fail", self.body()
            finish = getattr(self.bus, end)
            thread, token = claimed.thread.id, claimed.lease.token
            self.do(end, lambda: finish(thread, token, body=body), lambda _: {}, **facts, body=body)

    def edit(self, worktree: Path) -> None:
        """A file that nobody else writes, with a content that is nowhere else."""
        content = self.body()
        path = worktree / f"{content.replace('/', '-')}.txt"
        number = self.journal.called("edit", {"content": content, "path": str(path)})
        try:
            path.write_text(content + "\n")
        except OSError as error:
            self.journal.refused(number, _name_of(error))
        else:
            self.journal.returned(number, {})

    def commit(self, worktree: Path) -> None:
        number = self.journal.called("commit", {"worktree": str(worktree)})
        for command in (["add", "--all"], ["commit", "--quiet", "--message", "work"]):
            done = subprocess.run(["git", *command], cwd=worktree, capture_output=True, text=True)
            if done.returncode != 0:
                self.journal.refused(number, "git")
                return
        self.journal.returned(number, {})


def _name_of(error: OSError) -> str:
    return "disk_full" if error.errno == 28 else "gone"


def open_run(scheduler: Scheduler, repository: Path, worktrees: Path) -> None:
    """A repository with one commit, and the one run that everybody works on."""
    for command in (
        ["init", "--quiet", "--initial-branch", "main"],
        ["config", "user.name", "torture"],
        ["config", "user.email", "torture@localhost"],
        ["commit", "--quiet", "--allow-empty", "--message", "Begin"],
    ):
        subprocess.run(["git", *command], cwd=repository, check=True)
    scheduler.run_init(Opening("torture"), repository=str(repository), worktree_root=str(worktrees))
