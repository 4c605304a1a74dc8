"""The processes that use the product: senders, workers, readers, watchers, caretakers.

Each does by chance, from its seed, what such a process does, and writes every call down. It goes
on until the file `stop` is there, or it is killed.
"""

import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import breaking
from history import Journal

from inbox_orch.inbox import Bus
from inbox_orch.shared.errors import InboxOrchError

POOLS = ("pool0", "pool1", "pool2")
WAIT_SECONDS = 15.0
MOST_QUEUED = 40
DELIVERIES = 1000
LEASES = (1.0, 1.5, 3.0)
_LULL_SECONDS = 0.4
_SHORTAGES = ("busy", "disk_full", "read_only")


class Actor:
    """One process in one of its lives."""

    def __init__(self, folder: Path, name: str, life: int, seed: str) -> None:
        self.folder, self.name, self.life = folder, name, life
        self._parent = os.getppid()
        self.chance = random.Random(f"{seed}/{name}/{life}")
        self.journal = Journal(folder / "history", name, life)
        self.database = str(folder / "disk" / "project" / ".inbox" / "bus.db")
        self._calm_down = folder / "lull"
        self._bodies = 0
        self.open()

    def open(self) -> None:
        """Open the database, again and again while it cannot be."""
        opened: Bus | None = None
        while opened is None and not self.stopping:
            opened = self.do("open", lambda: Bus.open(self.database, agent=self.name), lambda _: {})
        if opened is None:
            sys.exit(0)
        self.bus = opened

    @property
    def stopping(self) -> bool:
        """Whether the run is over, or was given up."""
        return (self.folder / "stop").exists() or os.getppid() != self._parent

    def live(self) -> None:
        """Go on until the end."""
        while not self.stopping:
            self.step()
            if self._calm_down.exists():
                self.pause(_LULL_SECONDS)
        self.bus.close()

    def step(self) -> None:
        """Something that such a process does."""
        raise NotImplementedError

    def do(
        self,
        operation: str,
        call: Callable[[], Any],
        told: Callable[[Any], dict[str, Any]],
        **facts: Any,
    ) -> Any:
        """Make a call and write it down; its result, or None when it was refused."""
        number = self.journal.called(operation, facts)
        try:
            result = call()
        except InboxOrchError as error:
            self.journal.refused(number, error.code)
            self.refused(operation, error.code)
            return None
        self.journal.returned(number, told(result))
        return result

    def refused(self, operation: str, code: str) -> None:
        """What a sensible process does then."""
        if code in _SHORTAGES:
            self.pause(0.2)
        if code == "read_only" and operation != "open":
            # Whatever was opened on a read-only disk stays read-only.
            self.bus.close()
            self.open()

    def body(self) -> str:
        """A text that nobody else ever writes."""
        self._bodies += 1
        return f"{self.name}/{self.life}/{self._bodies}"

    def maybe(self, share: float) -> bool:
        """By chance, so often."""
        return self.chance.random() < share

    def pause(self, most: float) -> None:
        """Do nothing for a while, as a process that has work of its own."""
        end = time.monotonic() + self.chance.uniform(0, most)
        while (left := end - time.monotonic()) > 0 and not self.stopping:
            time.sleep(min(left, 1.0))


class Sender(Actor):
    """Opens threads, and answers the questions that come back."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._unanswered: dict[str, Any] | None = self._cut_off()

    def step(self) -> None:
        if self._unanswered is not None:
            again, self._unanswered = self._unanswered, None
            self.send(**again)
        if self.maybe(0.15) and self._too_many():
            self.read(0.5)
            return
        to = self.chance.choice(POOLS)
        if self.maybe(0.03):
            to = f"reader{self.chance.randrange(3)}"
        body = self.body()
        self.send(to=to, body=body, key=body if self.maybe(0.5) else None)
        if self.maybe(0.2):
            self.read(None if self.maybe(0.7) else 0.3)

    def send(self, to: str, body: str, key: str | None) -> None:
        self.do(
            "send",
            lambda: self.bus.send(
                to=to, subject="work", body=body, key=key, max_deliveries=DELIVERIES
            ),
            lambda sent: {"thread": sent.thread.id, "message": sent.message.id},
            to=to,
            body=body,
            key=key,
        )

    def read(self, wait: float | None) -> None:
        """Fetch what came back, and answer what is asked."""
        fetched = fetch(self, wait)
        if fetched is None:
            return
        for message, thread in fetched.items:
            if message.kind == "question":
                answer(self, thread.id)
        mark(self, fetched)

    def _too_many(self) -> bool:
        found = self.do(
            "list",
            lambda: self.bus.list(states_wanted=["pending"], mailboxes=POOLS, limit=MOST_QUEUED),
            lambda _: {},
        )
        return found is None or found.truncated

    def _cut_off(self) -> dict[str, Any] | None:
        """The last keyed request of the life before, when its return was never read."""
        path = self.folder / "history" / f"{self.name}.{self.life - 1}.jsonl"
        last: dict[str, Any] | None = None
        for line in path.read_bytes().splitlines() if path.exists() else ():
            with contextlib.suppress(ValueError):
                _, _, name, facts = json.loads(line)
                if name == "send":
                    last = facts
                elif name in ("ok", "error"):
                    last = None
        return last if last is not None and last["key"] is not None else None


class Worker(Actor):
    """Claims, works, asks, finishes in every way, or lets a lease run out."""

    def step(self) -> None:
        lease = self.chance.choice(LEASES)
        pool = self.chance.choice(POOLS)
        claimed = self.do(
            "claim",
            lambda: self.bus.claim(
                mailboxes=[pool], lease_seconds=lease, wait_seconds=0.5 if self.maybe(0.3) else 0
            ),
            lambda c: {"thread": c.thread.id, "epoch": c.lease.epoch},
            lease_seconds=lease,
        )
        if claimed is None:
            return
        self.thread, self.token = claimed.thread.id, claimed.lease.token
        self.facts = {"thread": claimed.thread.id, "epoch": claimed.lease.epoch}
        while self.maybe(0.4):
            self.chance.choice((self.renew, self.update, self.update, self.ask))()
        self.chance.choices(
            (self.done, self.fail, self.release, self.let_it_run_out), (80, 7, 7, 6)
        )[0]()

    def renew(self) -> None:
        self._act("renew", lambda: self.bus.renew(self.thread, self.token))

    def update(self) -> None:
        body = self.body()
        self._act("update", lambda: self.bus.update(self.thread, self.token, body=body), body=body)

    def ask(self) -> None:
        body = self.body()
        asked = self._act(
            "ask", lambda: self.bus.ask(self.thread, self.token, body=body), body=body
        )
        if asked is None:
            return
        seconds = WAIT_SECONDS if self.maybe(0.5) else 1.0
        self.do(
            "wait_reply",
            lambda: self.bus.wait_reply(self.thread, self.token, wait_seconds=seconds),
            lambda replies: {"messages": [m.id for m in replies.messages]},
            **self.facts,
            wait=seconds,
        )

    def done(self) -> None:
        body = self.body()
        self._act("done", lambda: self.bus.done(self.thread, self.token, body=body), body=body)
        if self.maybe(0.05):
            self.renew()  # a token that must not serve any more

    def fail(self) -> None:
        body = self.body()
        self._act(
            "fail",
            lambda: self.bus.fail(self.thread, self.token, body=body, retry_in_seconds=0.05),
            body=body,
        )

    def release(self) -> None:
        self._act("release", lambda: self.bus.release(self.thread, self.token))

    def let_it_run_out(self) -> None:
        self.pause(4.0)
        # Whoever comes back after another has claimed must be refused, whatever it tries.
        while self.maybe(0.7):
            self.chance.choice((self.renew, self.update, self.ask, self.done))()

    def _act(self, operation: str, call: Callable[[], Any], **facts: Any) -> Any:
        return self.do(operation, call, lambda _: {}, **self.facts, **facts)


class Reader(Actor):
    """Waits for mail of its own, and sometimes dies before it has marked it read."""

    def step(self) -> None:
        fetched = fetch(self, WAIT_SECONDS if self.maybe(0.5) else self.chance.uniform(0, 1))
        if fetched is not None and self.maybe(0.9):
            mark(self, fetched)


class Watcher(Actor):
    """Follows every event, from where the life before had come to."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._cursor = self._last_seen()

    def step(self) -> None:
        number = self.journal.called("watch", {"after": self._cursor})
        seen: list[int] = []
        try:
            for event in self.bus.watch(after=self._cursor, wait_seconds=1.0):
                seen.append(event.seq)
                if len(seen) >= 500:
                    break
        except InboxOrchError as error:
            self.journal.refused(number, error.code)
            self.refused("watch", error.code)
            return
        if seen:
            self._cursor = str(seen[-1])
        self.journal.returned(number, {"seen": seen})

    def _last_seen(self) -> str:
        for life in range(self.life - 1, -1, -1):
            path = self.folder / "history" / f"{self.name}.{life}.jsonl"
            for line in reversed(path.read_bytes().splitlines() if path.exists() else []):
                with contextlib.suppress(ValueError):
                    _, _, name, rest = json.loads(line)
                    if name == "ok" and rest.get("seen"):
                        return str(rest["seen"][-1])
        return "0"


class Caretaker(Actor):
    """Backs up, prunes, examines, counts."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._took_seconds = 1.0

    def step(self) -> None:
        # Each of these takes longer the more there is; it must not take over the machine.
        self.pause(2.0 + 5 * self._took_seconds)
        began = time.monotonic()
        self.chance.choice((self.back_up, self.examine, self.prune, self.count))()
        self._took_seconds = time.monotonic() - began

    def back_up(self) -> None:
        path = self.folder / "backups" / "newest.db"
        self.do("backup", lambda: self.bus.backup(path, force=True), lambda _: {})

    def examine(self) -> None:
        self.do(
            "doctor",
            lambda: self.bus.doctor(verify=True),
            lambda found: {
                "problems": [c.text for c in found.checks if c.status == "problem"],
            },
        )

    def prune(self) -> None:
        if self.maybe(0.2):
            days = 20 / 86_400
            self.do("prune", lambda: self.bus.prune(days), lambda _: {}, older_than_days=days)

    def count(self) -> None:
        self.do("stats", lambda: self.bus.stats(), lambda _: {})


class Shell(Actor):
    """Does the same as senders and workers through the command line."""

    def step(self) -> None:
        self.pause(3.0)  # a call costs as much as hundreds through `Bus`
        body = self.body()
        if self.maybe(0.5):
            to = self.chance.choice(POOLS)
            self.run("send", "--to", to, "--subject", "s", "--body", body, to=to, body=body)
            return
        claimed = self.run(
            "claim", "--mailbox", self.chance.choice(POOLS), "--lease", "3", lease_seconds=3.0
        )
        if claimed is None:
            return
        lease = claimed["lease"]
        facts = {"thread": lease["thread"], "epoch": lease["epoch"]}
        self.run(
            "done", lease["thread"], "--token", lease["token"], "--body", body, **facts, body=body
        )

    def run(self, verb: str, *options: str, **facts: Any) -> dict[str, Any] | None:
        """One command; its data, or None when it failed."""
        facts.setdefault("key", None)
        number = self.journal.called(verb, facts)
        done = subprocess.run(
            [
                *(sys.executable, "-P", "-m", "inbox_orch.inbox", verb, *options),
                *("--json", "--db", self.database, "--agent", self.name),
            ],
            capture_output=True,
            text=True,
        )
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            self.journal.refused(number, f"no JSON: exit {done.returncode} {done.stderr[-300:]}")
            return None
        if not answer["ok"]:
            self.journal.refused(number, answer["error"]["code"])
            return None
        data: dict[str, Any] = answer["data"]
        told = {}
        if verb == "send":
            told = {"thread": data["thread"]["id"], "message": int(data["message"]["id"])}
        elif verb == "claim":
            told = {"thread": data["thread"]["id"], "epoch": data["lease"]["epoch"]}
        self.journal.returned(number, told)
        return data


# -- what several of them do -----------------------------------------------------------------


def fetch(actor: Actor, wait: float | None) -> Any:
    """Unread messages; None when it was refused or nothing came."""
    return actor.do(
        "fetch",
        lambda: actor.bus.fetch(wait_seconds=wait, limit=50),
        lambda fetched: {"messages": [message.id for message, _ in fetched.items]},
        wait=wait,
    )


def mark(actor: Actor, fetched: Any) -> None:
    """Move the cursor over what was fetched."""
    messages = [message.id for message, _ in fetched.items]
    if messages:
        actor.do("mark", lambda: actor.bus.mark_read(fetched), lambda _: {}, upto=messages[-1])


def answer(actor: Actor, thread: str) -> None:
    """Reply to a question."""
    body = actor.body()
    actor.do(
        "reply",
        lambda: actor.bus.reply(thread, body=body),
        lambda written: {"message": written.message.id, "answered": written.answered},
        thread=thread,
        body=body,
    )


ROLES: dict[str, type[Actor]] = {
    "sender": Sender,
    "worker": Worker,
    "reader": Reader,
    "watcher": Watcher,
    "caretaker": Caretaker,
    "shell": Shell,
}


def live(folder: str, name: str, life: str, seed: str, broken: str) -> None:
    """Live one life; `broken` is the guarantee to break, if any."""
    if broken:
        breaking.break_guarantee(broken)
    role_name = name.rstrip("0123456789")
    if role_name in ("leader", "coder"):
        import git_actors

        role = {"leader": git_actors.Leader, "coder": git_actors.Coder}[role_name]
    else:
        role = ROLES[role_name]
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(name)  # for whoever looks at `top`
    role(Path(folder), name, int(life), seed).live()


if __name__ == "__main__":
    live(*sys.argv[1:6])
