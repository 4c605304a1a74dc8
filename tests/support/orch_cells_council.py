"""The cells of the commands about councils."""

import json
from typing import Any

from inbox_orch.orch.council import take_in, views
from inbox_orch.orch.council.ask import CouncilSpec, check_asked
from support.chambers import BACKUP, BRIEF, QUEUE, REVIEWERS, WAL, recommendation
from support.matrix import NO_STATE, NO_WAIT, Cell, Never, given, plain, read_while_busy
from support.orch_matrix import NO_BASE, NO_TOKEN, Enterprise, after
from support.runs import git

NO_SUCH = ("--council", "no-such-council")
NEAR = recommendation("journal", "Write ahead in a log", "wal", "recovery", "crash safety", "fsync")
KEEP = recommendation("keep", "Keep the JSON file", "wal", "sqlite", "journal mode", stance="keep")


def opened(project: Enterprise) -> str:
    """A council with three reviewers who have not answered; its id."""
    with project.scheduler() as scheduler:
        asked = check_asked(
            CouncilSpec(brief=BRIEF, reviewers=REVIEWERS, decisions=["D1=Store?:a|b"])
        )
        return str(scheduler.start_council(asked).data["council"]["id"])


def answered(project: Enterprise) -> str:
    """A council that has three replies, which nobody has looked at."""
    council = opened(project)
    replies = {"ada": [WAL, BACKUP], "bob": [WAL, QUEUE], "eve": [NEAR, KEEP]}
    with project.scheduler() as scheduler:
        sha256 = views.view(scheduler.desk, scheduler.council(None)).council.brief_sha256
    for reviewer, recommendations in replies.items():
        value = {
            "schema": "orch.council.reply/1",
            "council_id": council,
            "round": 1,
            "brief_sha256": sha256,
            "checked": ["S1"],
            "decisions": [{"decision": "D1", "choice": "a"}],
            "recommendations": recommendations,
            "verdict": "approve",
        }
        with project.bus(reviewer) as bus:
            claimed = bus.claim()
            bus.done(claimed.thread.id, str(claimed.lease.token), payload=json.dumps(value))
    return council


def counted(project: Enterprise) -> str:
    """The same, taken in."""
    council = answered(project)
    with project.scheduler() as scheduler:
        take_in.take_in_replies(scheduler.desk, scheduler.council(None))
    return council


def with_brief(*options: str, branch: str | None = None) -> Cell:
    """`council start` with a brief in a file, and perhaps a branch in the way."""

    def arranged(project: Enterprise) -> tuple[str, ...]:
        if branch is not None:
            git(project.folder, "branch", branch)
        (project.folder / "brief.md").write_text(BRIEF)
        return ("council", "start", "--brief-file", "brief.md", *options)

    return given(arranged)


def with_pairs(decision: str, **changes: Any) -> Cell:
    """`council apply` with every suggestion decided like that."""

    def arranged(project: Enterprise) -> tuple[str, ...]:
        counted(project)
        with project.scheduler() as scheduler:
            pairs = scheduler.suggestions(scheduler.council(None))
        pairs["items"] = [{**p, "decision": decision, **changes} for p in pairs["items"][:1]]
        assert pairs["items"]
        (project.folder / "pairs.json").write_text(json.dumps(pairs))
        return ("council", "apply", "pairs.json")

    return given(arranged)


def settling(verb: str, items: tuple[str, ...], text: str) -> dict[str, Cell | Never]:
    """The cells of a command that records something about items."""
    words = ("council", "group", verb)
    unknown = ("ada/nothing", *items[1:])
    return {
        "ok": after(counted, *words, *items, text, "so it is"),
        "usage": after(counted, *words, *items),
        "not_found": after(counted, *words, *unknown, text, "so it is"),
        "conflict": after(opened, *words, *items, text, "the round is open"),
        "busy": after(counted, *words, *items, text, "so it is"),
        "no_database": plain(*words, *items, text, "so it is"),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    }


def reader(*verb: str, **cells: Cell | Never) -> dict[str, Cell | Never]:
    """The cells of a command that looks at a council, after taking in what has come."""
    found: dict[str, Cell | Never] = {
        "ok": after(answered, *verb),
        "usage": plain(*verb, "surplus", "surplus"),
        "not_found": plain(*verb, *NO_SUCH),
        "conflict": NO_STATE,
        "busy": after(answered, *verb),
        "no_database": plain(*verb),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    }
    return found | cells


def put(*options: str, worker: str = "echo '- [do] Enable WAL mode :: wal, sqlite'") -> Cell:
    """`council ask` with a brief in a file, and one reviewer."""

    def arranged(project: Enterprise) -> tuple[str, ...]:
        (project.folder / "brief.md").write_text(BRIEF)
        seat = ("--reviewers", "ada", "--worker", worker)
        return ("council", "ask", "brief.md", *seat, *options)

    return given(arranged)


def put_where_a_branch_is_in_the_way(project: Enterprise) -> tuple[str, ...]:
    """`council ask` for worktrees, where a branch `orch` leaves no room for theirs."""
    git(project.folder, "branch", "orch")
    return put("--at", "main").arguments(project)


CELLS: dict[str, dict[str, Cell | Never]] = {
    "council ask": {
        "ok": put(),
        "usage": put("--reviewers", "ada,ada"),
        "not_found": Never("what it names is made by it"),
        "conflict": given(put_where_a_branch_is_in_the_way),
        "busy": put(),
        "no_database": Never("it makes one"),
        "stale": NO_TOKEN,
        "timeout": put("--wait", "0", worker="exec sleep 600"),
    },
    "council start": {
        "ok": with_brief("--key", "k", "--decision", "D1=Which store?:sqlite|files"),
        "usage": with_brief("--reviewers", "ada,ada"),
        "not_found": Never("what it names is made by it"),
        "conflict": with_brief("--at", "main", branch="orch"),
        "busy": with_brief(),
        "no_database": with_brief(),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "council wait": reader(
        "council",
        "wait",
        timeout=after(opened, "council", "wait", "--wait", "0.05"),
        busy=after(answered, "council", "wait", "--wait", "0.05"),
    ),
    "council tally": reader(
        "council", "tally", timeout=after(opened, "council", "tally", "--explain", "G1")
    )
    | {
        "ok": after(answered, "council", "tally", "--explain", "ada/wal"),
        "timeout": after(opened, "council", "tally"),
    },
    "council report": reader(
        "council", "report", timeout=after(opened, "council", "report", "--format", "json")
    )
    | {"ok": after(answered, "council", "report", "--output", "report.md")},
    "council ballot": reader(
        "council", "ballot", conflict=after(opened, "council", "ballot", "--deadline", "60")
    ),
    "council group merge": settling("merge", ("ada/wal", "eve/journal"), "--reason"),
    "council group split": settling("split", ("ada/wal", "bob/wal"), "--reason"),
    "council group dismiss": settling("dismiss", ("ada/backup",), "--reason"),
    "council group note": settling("note", ("ada/backup",), "--body"),
    "council suggest": reader("council", "suggest"),
    "council apply": {
        "ok": with_pairs("merge"),
        "usage": with_pairs("perhaps"),
        "not_found": with_pairs("keep", items=["ada/nothing", "bob/wal"]),
        "conflict": Cell(
            with_pairs("merge", items=["ada/wal", "eve/keep"]).arguments,
            9,
            "what is opposed is refused for safety",
        ),
        "busy": with_pairs("keep"),
        "no_database": with_pairs("keep"),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "council show": reader("council", "show"),
    "council list": {
        **reader("council", "list"),
        "busy": read_while_busy(after(counted, "council", "list")),
        "not_found": Never("it names no council"),
    },
    "council template": {
        "ok": plain("council", "template"),
        "usage": plain("council", "template", "surplus"),
        "not_found": Never("it names nothing"),
        "conflict": NO_STATE,
        "busy": NO_BASE,
        "no_database": NO_BASE,
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "council demo": {
        "ok": plain("council", "demo"),
        "usage": plain("council", "demo", "surplus"),
        "not_found": Never("it makes all that it needs"),
        "conflict": NO_STATE,
        "busy": NO_BASE,
        "no_database": NO_BASE,
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
}
