"""Every command by every outcome: how it is brought about, or why it cannot be.

`CELLS` is complete by a test: a new command without its eight cells fails the suite.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from support.commands import ULID, Project
from support.lengths import LONG

OUTCOMES = {
    "ok": 0,
    "usage": 2,
    "not_found": 3,
    "conflict": 4,
    "busy": 5,
    "no_database": 6,
    "stale": 7,
    "timeout": 8,
}

# With standard error closed, too: a success. What is told before anything was opened, and what is
# told with the database open, every second command does in the short form with standard error
# closed, the others with it open.
WITHOUT_STDERR = tuple(OUTCOMES) if LONG else ("ok",)
IN_TURNS = () if LONG else ("usage", "busy")

Arguments = Callable[[Project], tuple[str, ...]]


class Cell(NamedTuple):
    """A call that gives this outcome; `code` where it is another than the outcome's own."""

    arguments: Arguments
    code: int | None = None
    because: str = ""


class Never(NamedTuple):
    """The command cannot have this outcome."""

    because: str


def plain(*arguments: str) -> Cell:
    """The same arguments whatever there is."""
    return Cell(lambda project: arguments)


def unsealed_by_its_holder(project: Project) -> tuple[str, ...]:
    """The one who may see it, but not open it to others."""
    return ("unseal", project.claim(project.send(sealed=True)).thread, "--agent", "w1")


def given(arguments: Arguments) -> Cell:
    """Arguments for what the project has been given first."""
    return Cell(arguments)


def read_while_busy(cell: Cell) -> Cell:
    """Readers are not held up by a writer."""
    return cell._replace(code=0, because="it only reads, and SQLite's readers do not wait")


NO_THREAD = Never("it names no thread, nor anything else that could be missing")
NO_LEASE = Never("it presents no token")
NO_WAIT = Never("it waits for nothing")
NO_STATE = Never("no state that it finds is in its way")
NO_BASE = Never("it uses no database")

AS_LEADER = ("--agent", "leader")
AS_WORKER = ("--agent", "w1", "--mailbox", "workers")


def holder(verb: str, *rest: str) -> dict[str, Cell | Never]:
    """The cells of a command that presents a token."""

    def held(project: Project) -> tuple[str, ...]:
        return (verb, *project.claim().arguments, *rest)

    def ended(project: Project) -> tuple[str, ...]:
        claim = project.claim()
        with project.bus("w1") as bus:
            bus.done(claim.thread, claim.token, body="another result")
        return (verb, *claim.arguments, *rest)

    return {
        "ok": given(held),
        "usage": plain(verb, ULID, *rest),
        "not_found": plain(verb, ULID, "--token", "0" * 32, *rest),
        "conflict": given(ended),
        "busy": given(held),
        "no_database": plain(verb, ULID, "--token", "0" * 32, *rest),
        "stale": given(lambda project: (verb, *project.taken_over().arguments, *rest)),
        "timeout": NO_WAIT,
    }


def answered(project: Project) -> tuple[str, ...]:
    """A question that has its answer."""
    claim = project.claim()
    with project.bus("w1") as bus:
        bus.ask(claim.thread, claim.token, body="which?")
    with project.bus("leader") as bus:
        bus.reply(claim.thread, body="this")
    return ("wait-reply", *claim.arguments, "--wait", "20")


def other_content(project: Project, verb: str, *arguments: str) -> tuple[str, ...]:
    """A key that was used for another request."""
    project.run(verb, *arguments, "--body", "first", "--key", "k", *AS_LEADER)
    return (verb, *arguments, "--body", "second", "--key", "k", *AS_LEADER)


def _existing_file(project: Project) -> Path:
    path = project.folder / "copy.db"
    path.write_text("precious")
    return path


def finished(project: Project) -> str:
    """A thread that is done."""
    claim = project.claim()
    with project.bus("w1") as bus:
        bus.done(claim.thread, claim.token)
    return claim.thread


SEND = ("send", "--to", "workers", "--subject", "s")

CELLS: dict[str, dict[str, Cell | Never]] = {
    "inbox": {
        "ok": plain(*AS_LEADER),
        "usage": plain("--no-such-option"),
        "not_found": NO_THREAD,
        "conflict": NO_STATE,
        "busy": read_while_busy(plain(*AS_LEADER)),
        "no_database": plain(*AS_LEADER),
        "stale": NO_LEASE,
        "timeout": NO_WAIT,
    },
    "init": {
        "ok": plain("init"),
        "usage": plain("init", "--no-such-option"),
        "not_found": NO_THREAD,
        "conflict": NO_STATE,
        "busy": Cell(
            lambda project: ("init",), 0, "a database that is there already is only looked at"
        ),
        "no_database": Never("it makes one"),
        "stale": NO_LEASE,
        "timeout": NO_WAIT,
    },
    "where": {
        "ok": plain("where"),
        "usage": plain("where", "surplus"),
        "not_found": NO_THREAD,
        "conflict": NO_STATE,
        "busy": read_while_busy(plain("where")),
        "no_database": plain("where"),
        "stale": NO_LEASE,
        "timeout": NO_WAIT,
    },
    "send": {
        "ok": plain(*SEND, *AS_LEADER, "--key", "k"),
        "usage": plain(*SEND),
        "not_found": Never("a mailbox needs no making: it is there as soon as it is named"),
        "conflict": given(lambda project: other_content(project, *SEND)),
        "busy": plain(*SEND, *AS_LEADER),
        "no_database": plain(*SEND, *AS_LEADER),
        "stale": NO_LEASE,
        "timeout": NO_WAIT,
    },
    "fetch": {
        "ok": given(lambda project: (project.send(), "fetch", *AS_WORKER)[1:]),
        "usage": plain("fetch"),
        "not_found": NO_THREAD,
        "conflict": NO_STATE,
        "busy": plain("fetch", *AS_WORKER),
        "no_database": plain("fetch", *AS_WORKER),
        "stale": NO_LEASE,
        "timeout": plain("fetch", *AS_WORKER, "--wait", "0.05"),
    },
    "claim": {
        "ok": given(lambda project: (project.send(), "claim", *AS_WORKER)[1:]),
        "usage": plain("claim", *AS_WORKER, "--lease", "0"),
        "not_found": plain("claim", ULID, *AS_WORKER),
        "conflict": given(lambda project: ("claim", project.claim().thread, *AS_WORKER)),
        "busy": given(lambda project: ("claim", project.send(), *AS_WORKER)),
        "no_database": plain("claim", *AS_WORKER),
        "stale": NO_LEASE,
        "timeout": plain("claim", *AS_WORKER, "--wait", "0.05"),
    },
    "renew": holder("renew"),
    "update": holder("update", "--body", "half", "--progress", "50"),
    "ask": holder("ask", "--body", "which?", "--option", "a", "--option", "b"),
    "wait-reply": {
        **holder("wait-reply", "--wait", "0"),
        "ok": given(answered),
        "busy": Cell(answered, 0, "the reply is shown; that it was read is recorded next time"),
        "timeout": given(lambda project: ("wait-reply", *project.claim().arguments, "--wait", "0")),
    },
    "reply": {
        "ok": given(lambda project: ("reply", project.send(), "--body", "b", *AS_LEADER)),
        "usage": given(lambda project: ("reply", project.send(), *AS_LEADER)),
        "not_found": plain("reply", ULID, "--body", "b", *AS_LEADER),
        "conflict": given(lambda project: other_content(project, "reply", project.send())),
        "busy": given(lambda project: ("reply", project.send(), "--body", "b", *AS_LEADER)),
        "no_database": plain("reply", ULID, "--body", "b", *AS_LEADER),
        "stale": NO_LEASE,
        "timeout": NO_WAIT,
    },
    "done": holder("done", "--body", "result"),
    "fail": holder("fail", "--body", "no"),
    "release": holder("release"),
    "cancel": {
        "ok": given(lambda project: ("cancel", project.send(), *AS_LEADER)),
        "usage": given(lambda project: ("cancel", project.send())),
        "not_found": plain("cancel", ULID, *AS_LEADER),
        "conflict": given(lambda project: ("cancel", finished(project), *AS_LEADER)),
        "busy": given(lambda project: ("cancel", project.send(), *AS_LEADER)),
        "no_database": plain("cancel", ULID, *AS_LEADER),
        "stale": NO_LEASE,
        "timeout": NO_WAIT,
    },
    "unseal": {
        "ok": given(lambda project: ("unseal", project.send(sealed=True), *AS_LEADER)),
        "usage": given(lambda project: ("unseal", project.send(sealed=True))),
        "not_found": plain("unseal", ULID, *AS_LEADER),
        "conflict": given(unsealed_by_its_holder),
        "busy": given(lambda project: ("unseal", project.send(sealed=True), *AS_LEADER)),
        "no_database": plain("unseal", ULID, *AS_LEADER),
        "stale": NO_LEASE,
        "timeout": NO_WAIT,
    },
    "list": {
        "ok": given(lambda project: (project.claim().thread, "list", "--count")[1:]),
        "usage": plain("list", "--state", "lost"),
        "not_found": NO_THREAD,
        "conflict": NO_STATE,
        "busy": read_while_busy(plain("list")),
        "no_database": plain("list"),
        "stale": NO_LEASE,
        "timeout": NO_WAIT,
    },
    "show": {
        "ok": given(lambda project: ("show", project.claim().thread)),
        "usage": plain("show"),
        "not_found": plain("show", ULID),
        "conflict": NO_STATE,
        "busy": read_while_busy(given(lambda project: ("show", project.claim().thread))),
        "no_database": plain("show", ULID),
        "stale": NO_LEASE,
        "timeout": NO_WAIT,
    },
    "watch": {
        "ok": given(lambda p: (p.claim().thread, "watch", "--after", "0", "--wait", "0")[1:]),
        "usage": plain("watch", "--after", "x"),
        "not_found": plain("watch", "--thread", ULID),
        "conflict": NO_STATE,
        "busy": read_while_busy(plain("watch", "--after", "0", "--wait", "0.05")),
        "no_database": plain("watch"),
        "stale": NO_LEASE,
        "timeout": Never("it ends with 0 when its time is over"),
    },
    "stats": {
        "ok": given(lambda project: (project.send(), "stats")[1:]),
        "usage": plain("stats", "--mailbox", "not a name"),
        "not_found": NO_THREAD,
        "conflict": NO_STATE,
        "busy": read_while_busy(plain("stats")),
        "no_database": plain("stats"),
        "stale": NO_LEASE,
        "timeout": NO_WAIT,
    },
    "work": {
        "ok": given(lambda p: (p.send(), "work", *AS_WORKER, "--once", "--", "true")[1:]),
        "usage": plain("work", *AS_WORKER, "--once"),
        "not_found": Never("it takes whatever thread is next"),
        "conflict": NO_STATE,
        "busy": given(
            lambda p: (p.send(), "work", *AS_WORKER, "--idle-exit", "0", "--", "true")[1:]
        ),
        "no_database": plain("work", *AS_WORKER, "--once", "--", "true"),
        "stale": Never("a lease that is lost is an outcome in the stream, and the worker goes on"),
        "timeout": plain("work", *AS_WORKER, "--once", "--idle-exit", "0", "--", "true"),
    },
    "doctor": {
        "ok": given(lambda project: (project.send(), "doctor", "--verify")[1:]),
        "usage": plain("doctor", "surplus"),
        "not_found": NO_THREAD,
        "conflict": Never("what it finds is exit 11, see test_faults"),
        "busy": read_while_busy(plain("doctor")),
        "no_database": plain("doctor"),
        "stale": NO_LEASE,
        "timeout": NO_WAIT,
    },
    "backup": {
        "ok": given(lambda p: (p.send(), "backup", str(p.folder / "copy.db"))[1:]),
        "usage": plain("backup"),
        "not_found": NO_THREAD,
        "conflict": Cell(
            lambda project: ("backup", str(_existing_file(project))),
            9,
            "a file that is there is kept for safety; --force replaces it",
        ),
        "busy": read_while_busy(given(lambda p: ("backup", str(p.folder / "copy.db")))),
        "no_database": plain("backup", "copy.db"),
        "stale": NO_LEASE,
        "timeout": NO_WAIT,
    },
    "export": {
        "ok": given(lambda project: (project.claim().thread, "export")[1:]),
        "usage": plain("export", "surplus"),
        "not_found": NO_THREAD,
        "conflict": NO_STATE,
        "busy": read_while_busy(plain("export")),
        "no_database": plain("export"),
        "stale": NO_LEASE,
        "timeout": NO_WAIT,
    },
    "prune": {
        "ok": given(lambda project: (finished(project), "prune", "--older-than", "0")[1:]),
        "usage": plain("prune"),
        "not_found": NO_THREAD,
        "conflict": NO_STATE,
        "busy": given(lambda project: (finished(project), "prune", "--older-than", "0")[1:]),
        "no_database": plain("prune", "--older-than", "0"),
        "stale": NO_LEASE,
        "timeout": NO_WAIT,
    },
    "schema": {
        "ok": plain("schema", "claim"),
        "usage": plain("schema", "--no-such-option"),
        "not_found": plain("schema", "no-such-command"),
        "conflict": NO_STATE,
        "busy": Cell(lambda project: ("schema",), 0, NO_BASE.because),
        "no_database": Cell(lambda project: ("schema",), 0, NO_BASE.because),
        "stale": NO_LEASE,
        "timeout": NO_WAIT,
    },
}


def missing_database(folder: Path) -> tuple[str, ...]:
    """What names a database that is not there."""
    return ("--db", str(folder / "nowhere" / "bus.db"))


# They stand on what is above.
from support import cells_agents  # noqa: E402

CELLS |= cells_agents.CELLS


def calls(cells: dict[str, dict[str, Cell | Never]]) -> list[tuple[str, str, tuple[int, ...]]]:
    """(command, outcome, closed descriptors) of every call that can be made."""
    possible = [
        (command, outcome)
        for command, row in cells.items()
        for outcome, cell in row.items()
        if isinstance(cell, Cell)
    ]
    without = {(command, outcome) for command in [*cells][::2] for outcome in IN_TURNS}
    closed = [call for call in possible if call[1] in WITHOUT_STDERR or call in without]
    opened = [call for call in possible if call not in without]
    return [(*call, ()) for call in opened] + [(*call, (2,)) for call in closed]


def name_of(value: object) -> str:
    """A part of the name of such a call's test."""
    return {(): "stderr_open", (2,): "stderr_closed"}.get(value, str(value))  # type: ignore[call-overload,no-any-return]
