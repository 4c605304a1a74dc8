"""What a blueprint costs: a task with one beside the same task with its gate as a check.

There is nothing to repair: a worker writes one file, the gate passes, the work is accepted. Both
kinds stand in one run and take turns. What is tried once for a base, in the first of them, is told
apart. Then many of each kind, with two leaders and some workers.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common import machine, parser, report, say, scratch, table
from worktrees import git_version, make_repository

ALLOWED_RATIO, ALLOWED_MS = 1.1, 150.0
ORCH = str(Path(sys.executable).parent / "orch")
LEADERS, WORKERS = 2, 3
LONGEST = "1200"
"""Seconds that a leader waits for the end."""
KINDS = ("plain", "staged")
STEPS = ("dispatch", "done")
COUNTED = ("ms", "processor_ms", "processes", "statements")
GATE = "true"


def main() -> None:
    """Measure, and report."""
    options_parser = parser((__doc__ or "").splitlines()[0])
    options_parser.add_argument("--files", type=int, default=100, help="in the repository")
    options_parser.add_argument("--pairs", type=int, default=25)
    options_parser.add_argument("--tasks", type=int, default=200, help="of each kind; 0: none")
    options = options_parser.parse_args()
    if options.quick:
        options.files, options.pairs, options.tasks = 20, 1, 2
    facts = machine() | {"git": git_version()}
    with scratch() as folder:
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        say(f"{options.pairs} pairs, in a repository of {options.files} files")
        pairs = measured(Ground(folder / "pairs", options.files), options.pairs)
        crowds = {}
        for kind in KINDS if options.tasks else ():
            say(f"{options.tasks} {kind} tasks, {LEADERS} leaders, {WORKERS} workers")
            crowds[kind] = crowd(Ground(folder / kind, options.files), kind, options.tasks)
    figures = {
        "benchmark": "stages",
        "machine": facts,
        "files": options.files,
        "pairs": pairs,
        "crowds": crowds,
    }
    report(options, figures, as_text(figures))
    sys.exit(0 if options.quick or pairs["kept"] else 1)


# -- one beside the other ------------------------------------------------------------------


class Counts:
    """How many processes are started and statements run; only from the block on."""

    def __init__(self) -> None:
        self.processes, self.statements = 0, 0
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        self.processes += event in ("subprocess.Popen", "os.posix_spawn")

    def run(self, statement: str) -> None:
        """For SQLite's trace, which gives what a trigger runs as a comment."""
        self.statements += not statement.startswith("--")


class Ground:
    """A repository with a run, a leader and a worker."""

    def __init__(self, folder: Path, files: int) -> None:
        from inbox_orch.inbox import Bus
        from inbox_orch.orch.leader.scheduler import Scheduler
        from inbox_orch.orch.runs.plan import Opening
        from inbox_orch.shared.store.sqlite import creating

        self.repository = make_repository(folder / "project", files)
        self.path = self.repository / ".inbox" / "bus.db"
        creating.create(str(self.path))
        self.bus, self.worker = Bus.open(self.path, agent="leader"), Bus.open(self.path, agent="w")
        self.leader = Scheduler(self.bus)
        opened = self.leader.run_init(
            Opening("Bench", config=gated()),
            repository=str(self.repository),
            worktree_root=str(folder / "worktrees"),
        )
        self.run = self.leader.run(opened.data["run"]["name"])

    def add(self, key: str, kind: str) -> None:
        """A task of a kind."""
        from inbox_orch.orch.runs.plan import TaskSpec

        if kind == "plain":
            self.leader.add_task(self.run, TaskSpec(key, "Write it", checks=(GATE,)))
            return
        drawn = blueprint()
        spec = TaskSpec(key, "Write it", blueprint=drawn.id, drawn=drawn.canonical())
        self.leader.add_task(self.run, spec)

    def attempt(self, key: str) -> Any:
        """The one attempt at a task."""
        from inbox_orch.orch.attempts import rows as attempts
        from inbox_orch.orch.runs import task_rows as tasks

        with self.leader.database.snapshot() as snapshot:
            task = tasks.get(snapshot, self.run.id, key)
            assert task is not None
            return attempts.of_task(snapshot, task.id)[-1]

    def states(self) -> dict[str, str]:
        """How every task stands, by its key."""
        rows = self.leader.status(self.run).rows
        return {row.standing.task.key: row.standing.state for row in rows}


def gated() -> Any:
    """A config with the gate, and nothing that is looked for."""
    from inbox_orch.orch.gates.definitions import Gate
    from inbox_orch.orch.runs.config import Config

    return Config(gates=(Gate("gate", GATE).as_json(),), finds=())


def blueprint() -> Any:
    """An agent, its gate, and an agent that would repair."""
    from inbox_orch.orch.stages.model import Blueprint, Stage

    return Blueprint(
        "bench",
        (
            Stage("write", "agent", goal="Write it.", on_success="look"),
            Stage("look", "deterministic", action="run_gates", on_failure="repair"),
            Stage("repair", "agent", goal="Repair it.", max_visits=2, on_success="look"),
        ),
    )


def measured(ground: Ground, pairs: int) -> dict[str, Any]:
    """The figures of each kind and step, and whether what is promised is kept."""
    counts = Counts()
    for kind in KINDS:
        went(ground, counts, f"first-{kind}", kind)  # neither pays for what only the first does
    turns: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for turn in range(pairs):
        for kind in KINDS if turn % 2 else reversed(KINDS):
            turns[kind].append(went(ground, counts, f"t{turn}-{kind}", kind))
    found: dict[str, Any] = {kind: medians(turns[kind]) for kind in KINDS}
    both = zip(*(turns[kind] for kind in KINDS), strict=True)
    plain, staged = (found[kind]["whole"]["ms"] for kind in KINDS)
    return found | {
        "turns": turns,
        "extra_ms": statistics.median(total(s, "ms") - total(p, "ms") for p, s in both),
        "allowed_ms": plain * ALLOWED_RATIO + ALLOWED_MS,
        "kept": staged <= plain * ALLOWED_RATIO + ALLOWED_MS,
    }


def went(ground: Ground, counts: Counts, key: str, kind: str) -> dict[str, Any]:
    """One task from its dispatch to its end: the figures of both steps."""
    ground.add(key, kind)
    steps = {}
    with counted(ground, counts) as steps["dispatch"]:
        ground.leader.dispatch(ground.run, task_names=[key])
    if ground.attempt(key).thread_id is None:
        ground.leader.reconcile(ground.run)  # gates are tried on the base
    attempt = ground.attempt(key)
    work(attempt.worktree_path, key)
    claimed = ground.worker.claim(attempt.thread_id, mailboxes=[attempt.mailbox])
    ground.worker.done(attempt.thread_id, str(claimed.lease.token), body="done")
    with counted(ground, counts) as steps["done"]:
        ground.leader.reconcile(ground.run)
    assert ground.states()[key] == "succeeded", (key, ground.states())
    return steps


def work(worktree: str, key: str) -> None:
    """One commit with a file of its own."""
    Path(worktree, f"{key}.txt").write_text(f"{key}\n")
    named = ("-c", "user.name=W", "-c", "user.email=w@x", "-c", "gc.auto=0")
    for words in (("add", "--all"), (*named, "commit", "--quiet", "--message", key)):
        subprocess.run(["git", *words], cwd=worktree, check=True)


@contextmanager
def counted(ground: Ground, counts: Counts) -> Iterator[dict[str, Any]]:
    """What happens in the block, once that is over."""
    figures: dict[str, Any] = {}
    connection = ground.bus.database.connection
    before, began = (counts.processes, counts.statements), time.perf_counter()
    used = processor_seconds()
    connection.set_trace_callback(counts.run)
    try:
        yield figures
    finally:
        connection.set_trace_callback(None)
    figures["ms"] = (time.perf_counter() - began) * 1000
    figures["processor_ms"] = (processor_seconds() - used) * 1000
    figures["processes"] = counts.processes - before[0]
    figures["statements"] = counts.statements - before[1]


def processor_seconds() -> float:
    """Of this process and of all that it has waited for."""
    found = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in found)


def total(turn: dict[str, Any], what: str) -> Any:
    """Of both steps."""
    return sum(turn[step][what] for step in STEPS)


def medians(turns: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Of each step, and of the whole."""
    found = {
        step: {what: statistics.median(turn[step][what] for turn in turns) for what in COUNTED}
        for step in STEPS
    }
    whole = {what: statistics.median(total(turn, what) for turn in turns) for what in COUNTED}
    return {**found, "whole": whole}


# -- many of them --------------------------------------------------------------------------


def crowd(ground: Ground, kind: str, tasks: int) -> dict[str, Any]:
    """Many tasks of a kind in one run, until all have succeeded."""
    for number in range(tasks):
        ground.add(f"t{number}", kind)
    over = threading.Event()
    threads = [threading.Thread(target=serve, args=(ground.path, n, over)) for n in range(WORKERS)]
    command = [ORCH, "drive", ground.run.name, "--gate-slots", "2", "--wait", LONGEST, "--json"]
    began, used = time.perf_counter(), os.times()
    for thread in threads:
        thread.start()
    leaders = [
        subprocess.Popen(command, cwd=ground.repository, stdout=subprocess.PIPE)
        for _ in range(LEADERS)
    ]
    ends = [leader.communicate()[0] for leader in leaders]
    seconds, after = time.perf_counter() - began, os.times()
    over.set()
    for thread in threads:
        thread.join()
    assert set(ground.states().values()) == {"succeeded"}, ends
    lines = [json.loads(end.splitlines()[-1]) for end in ends]
    assert all(line["type"] == "outcome" for line in lines), lines
    processor = sum(after[2:4]) - sum(used[2:4])
    return {
        "tasks": tasks,
        "seconds": seconds,
        "leaders_processor_seconds": processor,
        "ms_each": seconds / tasks * 1000,
    }


def serve(path: Path, number: int, over: threading.Event) -> None:
    """A worker: claims whatever there is, and does it."""
    from inbox_orch.inbox import Bus
    from inbox_orch.shared.errors import InboxOrchError

    bus = Bus.open(path, agent=f"w{number}")
    while not over.is_set():
        try:
            claimed = bus.claim(mailboxes=["workers"], wait_seconds=1)
        except InboxOrchError as error:
            if error.code != "timeout":
                raise
            continue
        told = json.loads(claimed.messages[0].payload or "{}")
        work(told["worktree"], str(told["task"]))
        bus.done(claimed.thread.id, str(claimed.lease.token), body="done")
    bus.close()


# -- what is told --------------------------------------------------------------------------


def as_text(figures: dict[str, Any]) -> str:
    """A table of the pairs, and one of the crowds."""
    pairs, crowds = figures["pairs"], figures["crowds"]
    rows = [
        (step, *(pairs[kind][step][what] for what in COUNTED for kind in KINDS))
        for step in (*STEPS, "whole")
    ]
    headings = ("step", *(f"{kind}, {what}" for what in COUNTED for kind in KINDS))
    promise = (
        f"a pair's difference: {pairs['extra_ms']:.0f} ms (median);"
        f" staged at most {pairs['allowed_ms']:.0f} ms: {'kept' if pairs['kept'] else 'NOT KEPT'}"
    )
    told = [table(headings, rows), promise]
    if crowds:
        of_crowds = [(kind, *crowds[kind].values()) for kind in KINDS]
        heads = ("kind", "tasks", "seconds", "leaders' processor seconds", "ms each")
        told.append(table(heads, of_crowds))
    return "\n\n".join(told)


if __name__ == "__main__":
    main()
