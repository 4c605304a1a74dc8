"""The command-line tools that are compared: how each is called for the same steps.

Owns the words of their command lines and the making of stores with many items, in each tool's
own format. Says for each step that a tool does not have why. Measures nothing itself.
"""

# ruff: noqa: S608 - names of tables are put into statements here, never values

import contextlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from tool import Refused, Tool

WORKER = "worker"
BODY = "x" * 200
RESULT = "r" * 200
# So many are listed by who has a limit: as many as `inbox list` gives by itself.
LISTED = 50
ALL_LISTED = "prints all: has no limit"
# What `take` gives when somebody else was faster.
ANOTHERS = "another's"
_NUMBERS = "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?)"


class Inbox(Tool):
    name = package = "inbox"

    def program(self) -> str:
        return "inbox"

    def variables(self) -> dict[str, str]:
        return {"INBOX_DB": str(self.path), "INBOX_AGENT": WORKER}

    @property
    def path(self) -> Path:
        return self.folder / ".inbox" / "bus.db"

    def set_up(self) -> None:
        self.run("init", ".")

    def fill(self, items: int) -> None:
        from stock import stock

        stock(self.path, done=1, pending=items)

    def left(self) -> int:
        return _count(self.path, "thread WHERE state = 'pending'")

    def send(self, key: str) -> None:
        self.run("send", "--to", "workers", "--subject", key, "--body", BODY, "--json")

    def claim(self, worker: str) -> Any:
        words = ("claim", "--mailbox", "workers", "--agent", worker, "--json")
        answer = json.loads(self.run(*words, accepts=(0, 8)))
        if self.status == 8:
            return None
        return answer["data"]["thread"]["id"], answer["data"]["lease"]["token"]

    def done(self, taken: Any, worker: str) -> None:
        thread, token = taken
        self.run("done", thread, "--token", token, "--body", RESULT, "--agent", worker, "--json")

    def listing(self) -> None:
        words = ("--mailbox", "workers", "--state", "pending", "--limit", str(LISTED))
        self.run("list", *words, "--json")


class AgentCollab(Tool):
    name, package = "agent-collab", "agent-collab-kit"
    _sent = "m1"
    notes: ClassVar = {
        "version": "`--help`; there is no `--version`",
        "claim": "`claim` locks a name that the caller gives; it is no queue",
        "done": "`ack`",
        "drain": "`inbox`, `claim` of one of the first eight, `ack`: three commands an item",
        "listing": ALL_LISTED,
    }

    def leading(self) -> tuple[str, ...]:
        return ("--db", "collab.db")

    def set_up(self) -> None:
        self.run("init")

    def fill(self, items: int) -> None:
        with _filling(self.folder / "collab.db") as connection:
            connection.execute(
                f"{_NUMBERS} INSERT INTO messages SELECT 'm' || i, 'k' || i, 'leader', ?, ?, i,"
                " NULL FROM n",
                (items, WORKER, BODY),
            )
            connection.execute(
                f"{_NUMBERS} INSERT INTO leases SELECT 'stored' || i, 'o', 'g', 9e9 FROM n",
                (items,),
            )

    def left(self) -> int:
        return _count(self.folder / "collab.db", "messages WHERE acknowledged_at IS NULL")

    def version(self) -> None:
        self.run("--help")

    def send(self, key: str) -> None:
        whom = ("--sender", "leader", "--recipient", WORKER)
        self._sent = json.loads(self.run("send", *whom, "--body", BODY, "--key", key))["id"]

    def claim(self, worker: str) -> Any:
        """A lease on a name; the message that belongs to it is the one that was sent last."""
        name = f"r{time.monotonic_ns()}"
        self.run("claim", "--resource", name, "--owner", worker, "--ttl", "300")
        return self._sent

    def done(self, taken: Any, worker: str) -> None:
        self.run("ack", "--recipient", WORKER, "--id", taken)

    def waiting(self) -> list[dict[str, Any]]:
        """The messages that nobody has acknowledged."""
        found: list[dict[str, Any]] = json.loads(self.run("inbox", "--recipient", WORKER))
        return found

    def take(self, worker: str) -> Any:
        """As several workers share one list: lock one of the first names, then acknowledge."""
        waiting = self.waiting()
        if not waiting:
            return None
        chosen = random.choice(waiting[:8])["id"]
        words = ("--resource", chosen, "--owner", worker, "--ttl", "300")
        self.run("claim", *words, accepts=(0, 1, 2, 3, 4, 5))
        return chosen if self.status == 0 else ANOTHERS

    def listing(self) -> None:
        self.waiting()


class Fleetwright(Tool):
    name = package = "fleetwright"
    notes: ClassVar = {"listing": "counts only; there is no list of units"}

    def variables(self) -> dict[str, str]:
        return {"FLEETWRIGHT_DB": str(self.folder / "fleet.db")}

    def set_up(self) -> None:
        self.run("start", "--db", "fleet.db", "--create")

    def fill(self, items: int) -> None:
        with _filling(self.folder / "fleet.db") as connection:
            connection.execute(
                f"{_NUMBERS} INSERT INTO unit (unit_id, kind, name, status, meta, created_at,"
                " updated_at) SELECT 'task:u' || i, 'task', 'u' || i, 'open', '{}', i, i FROM n",
                (items,),
            )

    def left(self) -> int:
        return _count(self.folder / "fleet.db", "unit WHERE status = 'open'")

    def send(self, key: str) -> None:
        self.run("add", "task", key)

    def claim(self, worker: str) -> Any:
        units = json.loads(self.run("claim", "--worker", worker, "--json", accepts=(0, 1)) or b"[]")
        return units[0]["unit_id"] if units else None

    def done(self, taken: Any, worker: str) -> None:
        self.run("done", "--worker", worker, "--result", "{}", taken)

    def listing(self) -> None:
        self.run("status", "--json")


class AgentMail(Tool):
    name, package = "agent-mail", "agent-mail-cli"
    notes: ClassVar = {
        "version": "`--help`; there is no `--version`",
        "claim": "`read --limit 1` marks a message as read; there is no lease",
        "done": "`ack`",
        "drain": "one agent's mailbox, which is meant for one reader, not for eight",
    }
    _agent = f"p:{WORKER}"

    def variables(self) -> dict[str, str]:
        return {"AGENT_MAIL_DB": str(self.folder / "mail.db")}

    def set_up(self) -> None:
        self.send("first")
        self.done(self.claim(WORKER), WORKER)

    def fill(self, items: int) -> None:
        with _filling(self.folder / "mail.db") as connection:
            connection.execute(
                f"{_NUMBERS} INSERT INTO messages (id, sender, recipient, subject, body, created)"
                " SELECT printf('%08x-0000-4000-8000-000000000000', i), 'p:leader', ?, 's', ?,"
                " strftime('%Y-%m-%dT%H:%M:%S+00:00', 'now') FROM n",
                (items, self._agent, BODY),
            )

    def left(self) -> int:
        return _count(self.folder / "mail.db", "messages WHERE read_at IS NULL")

    def version(self) -> None:
        self.run("--help")

    def send(self, key: str) -> None:
        whom = ("--from", "p:leader", "--to", self._agent)
        self.run("send", *whom, "--subject", key, "--body", BODY)

    def claim(self, worker: str) -> Any:
        messages = json.loads(self.run("read", "--limit", "1", self._agent))["messages"]
        return messages[0]["id"] if messages else None

    def done(self, taken: Any, worker: str) -> None:
        self.run("ack", self._agent, taken)

    def listing(self) -> None:
        self.run("read", "--no-mark-read", "--limit", str(LISTED), self._agent)


class AgentLanes(Tool):
    name = package = "agent-lanes"
    notes: ClassVar = {
        "version": "`--help`; there is no `--version`",
        "claim": "`next`, then `claim`: two commands",
        "done": "`respond`",
        "listing": ALL_LISTED,
    }
    lacks: ClassVar = {
        "100000": "not tried with 100,000: it keeps a folder of files for each, and reads all"
    }

    def leading(self) -> tuple[str, ...]:
        return ("--config", "handoff/handoff.yaml")

    def set_up(self) -> None:
        command = [self._bin + self.name, "init", "."]
        subprocess.run(
            command, cwd=self.folder, env=self.environment, check=True, capture_output=True
        )
        (self.folder / "request.md").write_text(BODY, encoding="utf-8")

    def fill(self, items: int) -> None:
        self.send("first")
        tasks = self.folder / "handoff" / "state" / "tasks"
        first = max(tasks.iterdir())
        text = (first / "task.json").read_text(encoding="utf-8")
        for number in range(items - 1):
            name = f"{first.name[:-12]}{number:012x}"
            (tasks / name).mkdir(mode=0o700)
            (tasks / name / "task.json").write_text(
                text.replace(first.name, name), encoding="utf-8"
            )
            shutil.copy(first / "events.jsonl", tasks / name)

    def left(self) -> int:
        files = (self.folder / "handoff" / "state" / "tasks").glob("*/task.json")
        return sum('"state": "queued"' in file.read_text(encoding="utf-8") for file in files)

    def version(self) -> None:
        self.run("--help")

    def send(self, key: str) -> None:
        files = ("--request-from", "request.md", "--response-to", "response.md")
        self.run("submit", "--lane", "default", *files, "--prompt", key, "--json")

    def claim(self, worker: str) -> Any:
        found = json.loads(
            self.run("next", "--lane", "default", "--timeout", "0", "--json", accepts=(0, 1, 2, 3))
        )
        if "task" not in found:
            return None
        name = found["task"]["id"]
        answer = self.run("claim", "--owner", worker, "--json", name, accepts=(0, 1, 2))
        return (name, json.loads(answer)["claim_token"]) if self.status == 0 else ANOTHERS

    def done(self, taken: Any, worker: str) -> None:
        name, token = taken
        self.run("respond", name, "--claim-token", token, "--body", RESULT, "--json")

    def listing(self) -> None:
        self.run("list", "--active-only", "--json")


class SimpleBroker(Tool):
    name = package = "simplebroker"
    notes: ClassVar = {
        "claim": "`move` to a queue of the worker's own; there is no lease",
        "done": "`delete`",
        "listing": "`peek --all` prints all: between one and all it has no limit",
    }

    def program(self) -> str:
        return "broker"

    def leading(self) -> tuple[str, ...]:
        return ("-f", "broker.db")

    def version(self) -> None:
        self.run("--version")

    def set_up(self) -> None:
        self.run("write", "tasks", "first")
        self.run("read", "tasks")

    def fill(self, items: int) -> None:
        self.run("write", "tasks", BODY)
        with _filling(self.folder / "broker.db") as connection:
            connection.execute(
                f"{_NUMBERS} INSERT INTO messages (queue, body, ts)"
                " SELECT m.queue, m.body, m.ts - n.i"
                " FROM n, (SELECT * FROM messages WHERE claimed = 0 LIMIT 1) AS m",
                (items - 1,),
            )

    def left(self) -> int:
        return _count(self.folder / "broker.db", "messages WHERE queue = 'tasks' AND claimed = 0")

    def send(self, key: str) -> None:
        self.run("write", "tasks", BODY)

    def claim(self, worker: str) -> Any:
        answer = self.run("move", "tasks", f"own-{worker}", "--json", "-t", accepts=(0, 1, 2, 3))
        return json.loads(answer)["timestamp"] if answer.strip() else None

    def done(self, taken: Any, worker: str) -> None:
        self.run("delete", "-m", taken, f"own-{worker}")

    def listing(self) -> None:
        self.run("peek", "tasks", "--all")


class PacCollab(Tool):
    name = package = "pac-collab"
    notes: ClassVar = {
        "version": "`--help`; there is no `--version`",
        "claim": "`acquire`, which also makes a worktree",
        "done": "`release`, which also removes the worktree",
        "listing": ALL_LISTED,
    }
    lacks: ClassVar = {
        "send": "has no queue: it locks a task that the caller names",
        "drain": "has no queue: it locks a task that the caller names",
    }

    def set_up(self) -> None:
        git = ("git", "-c", "user.name=B", "-c", "user.email=b@example.invalid")
        for words in (
            ("init", "--quiet", "--bare", "-b", "main", "origin.git"),
            ("clone", "--quiet", "origin.git", "repo"),
            ("-C", "repo", "commit", "--quiet", "--allow-empty", "-m", "Begin"),
            ("-C", "repo", "push", "--quiet", "origin", "HEAD:main"),
            ("-C", "repo", "remote", "set-head", "origin", "--auto"),
        ):
            subprocess.run(
                [*git, *words],
                cwd=self.folder,
                env=self.environment,
                check=True,
                capture_output=True,
            )
        self.done(self.claim(WORKER), WORKER)

    def fill(self, items: int) -> None:
        with _filling(self.folder / ".pac-collab" / "coordinator.db") as connection:
            connection.execute(
                f"{_NUMBERS} INSERT INTO sandboxes (project_id, task_id, feature_name,"
                " base_repo_path, sandbox_path, branch_name, status, created_at, updated_at)"
                " SELECT 'p', 's' || i, 'f', 'repo', 'x', 'b' || i, 'SUCCESS', '2026-01-01',"
                " '2026-01-01' FROM n",
                (items,),
            )

    def version(self) -> None:
        self.run("--help")

    def claim(self, worker: str) -> Any:
        name = f"t{time.monotonic_ns()}"
        what = ("--project-id", "p", "--task-id", name, "--feature-name", "f")
        answer = json.loads(
            self.run("acquire", "--base-repo-path", "repo", *what, "--base-ref", "origin/main")
        )
        if answer["status"] != "ALLOCATED":
            raise Refused(f"`acquire`: {answer.get('reason', answer['status'])}")
        return name

    def done(self, taken: Any, worker: str) -> None:
        self.run("release", "--project-id", "p", "--task-id", taken, "--outcome", "FAILED")

    def listing(self) -> None:
        self.run("list")


def _count(path: Path, what: str) -> int:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {what}").fetchone()[0])


@contextlib.contextmanager
def _filling(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        yield connection
        connection.commit()


TOOLS: tuple[type[Tool], ...] = (
    Inbox,
    AgentCollab,
    AgentLanes,
    AgentMail,
    Fleetwright,
    PacCollab,
    SimpleBroker,
)
# The queues that are only libraries have no commands.
LIBRARIES = ("huey", "litequeue", "persist-queue")
NO_COMMAND = "a library: has no command for it"


def tools(folder: Path, bin_folder: str | None) -> dict[str, Tool]:
    """Each tool that is installed, with a store of its own; ours first."""
    ours = f"{Path(sys.executable).parent}/"
    found: dict[str, Tool] = {}
    for kind in TOOLS:
        where = ours if kind is Inbox else bin_folder
        if where is None:
            continue
        made = kind(folder / kind.name, where)
        if os.path.exists(where + made.program()):
            made.folder.mkdir(parents=True, exist_ok=True)
            found[kind.name] = made
    return found
