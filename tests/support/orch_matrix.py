"""Every command of `orch` by every outcome: how it is brought about, or why it cannot be.

`CELLS` is complete by a test: a new command without its eight cells fails the suite.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from inbox_orch.inbox import Bus
from inbox_orch.orch.cli import program
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.runs.model import Run
from inbox_orch.shared.shell.commandline import Program
from support.commands import Outcome, Project, run
from support.matrix import NO_BASE, NO_STATE, NO_WAIT, Cell, Never, given, plain, read_while_busy
from support.runs import add_task, git, make_repository, run_init


class Enterprise(Project):
    """A repository with a database, and what the tests put into it."""

    def __init__(self, folder: Path) -> None:
        make_repository(folder)
        super().__init__(folder)
        self.state = folder.parent / "state"

    def orch(self, *arguments: str, **options: Any) -> Outcome:
        """Run `orch` in the folder."""
        line = {"folder": self.folder, "program": "orch", "XDG_STATE_HOME": str(self.state)}
        return run(*arguments, **{**line, **options})

    @contextmanager
    def scheduler(self) -> Iterator[Scheduler]:
        """The scheduler in this process, closed before any command runs."""
        with Bus.open(self.path) as bus:
            yield Scheduler(bus)

    def open_run(self, **options: Any) -> str:
        """A run; its name."""
        with self.scheduler() as scheduler:
            answer = run_init(
                scheduler,
                title="A run",
                repository=str(self.folder),
                worktree_root=str(self.state),
                **options,
            )
            return str(answer.data["run"]["name"])

    def tasks(self, *keys: str) -> "Enterprise":
        """A run with these tasks, each after the one before."""
        name = self.open_run()
        with self.scheduler() as scheduler:
            for number, key in enumerate(keys):
                add_task(
                    scheduler,
                    scheduler.run(name),
                    key_name=key,
                    title=f"Do {key}",
                    depends_on=keys[number - 1 : number] if number else (),
                )
        return self

    def dispatched(self) -> dict[str, Any]:
        """A run with task `a`, which has been dispatched; its attempt."""
        self.tasks("a")
        with self.scheduler() as scheduler:
            return scheduler.dispatch(the_run(scheduler)).items[0]

    def running(self) -> str:
        """Task `a` with a worker, which nobody has noticed yet; its token."""
        item = self.dispatched()
        with self.bus("w1") as bus:
            token = bus.claim(item["thread"], mailboxes=["workers"]).lease.token
        assert token is not None
        return token

    def asked(self) -> "Enterprise":
        """Task `a` with an open question, folded in."""
        item = self.dispatched()
        with self.bus("w1") as bus:
            token = bus.claim(item["thread"], mailboxes=["workers"]).lease.token
            bus.ask(item["thread"], str(token), body="which?", options=["this", "that"])
        with self.scheduler() as scheduler:
            scheduler.reconcile(the_run(scheduler))
        return self


def the_run(scheduler: Scheduler) -> Run:
    """The only one."""
    return scheduler.run(None)


NO_TOKEN = Never("orch presents no token of a lease")
NO_SUCH = ("--run", "no-such-run")


def after(setup: Any, *arguments: str) -> Cell:
    """These arguments once the project has been set up."""

    def arranged(project: Any) -> tuple[str, ...]:
        setup(project)
        return arguments

    return given(arranged)


def reader(*verb: str) -> dict[str, Cell | Never]:
    """The cells of a command that only looks at a run."""
    return {
        "ok": after(Enterprise.asked, *verb),
        "usage": plain(*verb, "surplus", "surplus"),
        "not_found": plain(*verb, *NO_SUCH),
        "conflict": NO_STATE,
        "busy": read_while_busy(after(Enterprise.asked, *verb)),
        "no_database": plain(*verb),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    }


def in_worktree(project: Enterprise) -> None:
    """The worktree of an attempt, whose run has a gate that passes and one that fails."""
    gates = ({"name": "fine", "run": "true"}, {"name": "bad", "run": "exit 1"})
    project.open_run(config=Config(gates=gates))
    with project.scheduler() as scheduler:
        add_task(scheduler, the_run(scheduler), key_name="a", title="Do a")
        item = scheduler.dispatch(the_run(scheduler)).items[0]
    project.folder = Path(item["worktree"])


def with_tasks(*keys: str) -> Any:
    """A run with these tasks."""
    return lambda project: project.tasks(*keys)


def branch_in_the_way(project: Enterprise) -> None:
    """A branch called `orch`."""
    git(project.folder, "branch", "orch")


ADD = ("task", "add", "--task", "a", "--title", "A")

CELLS: dict[str, dict[str, Cell | Never]] = {
    "orch": {
        "ok": plain("--version"),
        "usage": plain("--no-such-option"),
        "not_found": Never("an unknown command is a wrong call"),
        "conflict": NO_STATE,
        "busy": NO_BASE,
        "no_database": NO_BASE,
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "run init": {
        "ok": plain("run", "init", "--title", "T", "--base", "main", "--key", "k"),
        "usage": plain("run", "init"),
        "not_found": Never("a repository or a commit that is not there is a wrong call"),
        "conflict": after(branch_in_the_way, "run", "init", "--title", "T"),
        "busy": plain("run", "init", "--title", "T"),
        "no_database": Never("it makes one"),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "run list": {
        **reader("run", "list"),
        "not_found": Never("it names no run"),
    },
    "run show": reader("run", "show"),
    "task add": {
        "ok": after(Enterprise.open_run, *ADD, "--key", "k", "--body", "text"),
        "usage": after(Enterprise.open_run, *ADD, "--priority", "0x1"),
        "not_found": after(Enterprise.open_run, *ADD, "--depends-on", "b"),
        "conflict": after(with_tasks("a"), *ADD),
        "busy": after(Enterprise.open_run, *ADD),
        "no_database": plain(*ADD),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "dep add": {
        "ok": after(with_tasks("a", "b"), "dep", "add", "b", "--on", "a"),
        "usage": plain("dep", "add", "b"),
        "not_found": after(with_tasks("a"), "dep", "add", "a", "--on", "b"),
        "conflict": after(with_tasks("a", "b"), "dep", "add", "a", "--on", "b"),
        "busy": after(with_tasks("a", "b"), "dep", "add", "b", "--on", "a"),
        "no_database": plain("dep", "add", "b", "--on", "a"),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "ready": {**reader("ready"), "ok": after(with_tasks("a", "b"), "ready")},
    "dispatch": {
        "ok": after(with_tasks("a", "b"), "dispatch", "--key", "k"),
        "usage": after(with_tasks("a"), "dispatch", "--base", "no-such-commit"),
        "not_found": after(with_tasks("a"), "dispatch", "b"),
        "conflict": after(with_tasks("a", "b"), "dispatch", "b"),
        "busy": after(with_tasks("a"), "dispatch"),
        "no_database": plain("dispatch"),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "status": reader("status"),
    "wait": {
        "ok": after(Enterprise.asked, "wait", "--wait", "20"),
        "usage": after(with_tasks("a"), "wait", "--until", "doomsday"),
        "not_found": after(with_tasks("a"), "wait", "--until", "task:b"),
        "conflict": Never("what it finds is exit 11"),
        "busy": after(Enterprise.running, "wait", "--wait", "0.05"),
        "no_database": plain("wait"),
        "stale": NO_TOKEN,
        "timeout": after(with_tasks("a"), "wait", "--wait", "0.05"),
    },
    "blocked": reader("blocked"),
    "answer": {
        "ok": after(Enterprise.asked, "answer", "a", "--body", "this", "--key", "k"),
        "usage": after(Enterprise.asked, "answer", "a"),
        "not_found": after(Enterprise.asked, "answer", "b", "--body", "this"),
        "conflict": after(Enterprise.running, "answer", "a", "--body", "this"),
        "busy": after(Enterprise.asked, "answer", "a", "--body", "this"),
        "no_database": plain("answer", "a", "--body", "this"),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "gate list": reader("gate", "list"),
    "gate run": {
        "ok": after(in_worktree, "gate", "run", "fine"),
        "usage": after(in_worktree, "gate", "run", "no-such-gate"),
        "not_found": after(with_tasks("a"), "gate", "run"),
        "conflict": after(in_worktree, "gate", "run")._replace(
            code=11, because="what fails is a result"
        ),
        "busy": read_while_busy(after(in_worktree, "gate", "run", "fine")),
        "no_database": plain("gate", "run"),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "doctor": {
        **reader("doctor"),
        "ok": after(Enterprise.asked, "doctor", "--verify"),
        "not_found": Never("it looks at every run"),
    },
    "reconcile": {
        **reader("reconcile"),
        "ok": after(Enterprise.running, "reconcile"),
        "busy": after(Enterprise.running, "reconcile"),
    },
    "schema": {
        "ok": plain("schema", "run", "init"),
        "usage": plain("schema", "--no-such-option"),
        "not_found": plain("schema", "run"),
        "conflict": NO_STATE,
        "busy": Cell(lambda project: ("schema",), 0, NO_BASE.because),
        "no_database": Cell(lambda project: ("schema",), 0, NO_BASE.because),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "demo": {
        "ok": plain("demo"),
        "usage": plain("demo", "surplus"),
        "not_found": Never("it makes all that it needs"),
        "conflict": NO_STATE,
        "busy": NO_BASE,
        "no_database": NO_BASE,
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
}


def command_names() -> list[str]:
    """Every command of the click tree that does something, by its words."""
    return ["orch", *_below(program, ())]


def _below(group: click.Group, words: tuple[str, ...]) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, Program):
            yield from _below(command, (*words, name))
        else:
            yield " ".join((*words, name))


# They stand on what is above.
from support import (  # noqa: E402
    cells_agents,
    orch_cells_cleanup,
    orch_cells_council,
    orch_cells_drive,
    orch_cells_hand_in,
    orch_cells_integrate,
    orch_cells_patches,
    orch_cells_plans,
    orch_cells_reading,
    orch_cells_steer,
    orch_cells_verify,
)

CELLS |= orch_cells_cleanup.CELLS
CELLS |= orch_cells_council.CELLS
CELLS |= orch_cells_drive.CELLS
CELLS |= orch_cells_hand_in.CELLS
CELLS |= orch_cells_integrate.CELLS
CELLS |= orch_cells_patches.CELLS
CELLS |= orch_cells_plans.CELLS
CELLS |= orch_cells_reading.CELLS
CELLS |= orch_cells_steer.CELLS
CELLS |= orch_cells_verify.CELLS
CELLS |= {
    "prime": cells_agents.CELLS["prime"],
    "skill print": cells_agents.printed("skill", "print"),
    "skill install": cells_agents.installed("orch"),
    "mcp": cells_agents.MCP,
    "completion": cells_agents.COMPLETION,
    "help": cells_agents.HELP,
}
