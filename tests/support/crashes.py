"""The operations that are killed at every step, and what must hold after each kill.

After each: the next command works, `doctor --verify` is clean, an operation that had returned
is there, one that had not is there whole or not at all, and the same call again leads to the
right end.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inbox_orch.inbox import Bus
from inbox_orch.migrations import SCHEMA_VERSION
from inbox_orch.shared.store.sqlite import creating
from sqlite import outside
from sqlite.empty import empty_as_of, fill
from support.buses import refused
from support.clocks import FakeClock
from support.killing import kill_at_every_step

BODY = "a body\n" * 50
CONTENT = bytes(range(256)) * 40
Returned = Callable[[], None]


def open_bus(folder: Path, agent: str = "w1", **options: Any) -> Bus:
    """The bus in the folder."""
    return Bus.open(database_path(folder), agent=agent, **options)


def database_path(folder: Path) -> Path:
    """Where its database lies."""
    return folder / ".inbox" / "bus.db"


def make_project(folder: Path) -> None:
    """A database, and a file to attach."""
    creating.create(str(database_path(folder)))
    (folder / "file.bin").write_bytes(CONTENT)


def assert_sound(bus: Bus) -> None:
    """`doctor --verify` finds nothing."""
    found = bus.doctor(verify=True)
    assert not found.problems, [c for c in found.checks if c.status == "problem"]


def assert_attached(bus: Bus, thread_id: str, name: str = "file.bin") -> None:
    """The thread has the file exactly once, byte for byte."""
    assert [a.name for a in bus.show(thread_id).artifacts] == [name]
    _, content = bus.artifact(thread_id, name)
    with content:
        assert content.read() == CONTENT


class Send:
    """`send --attach --key`."""

    def prepare(self, folder: Path) -> None:
        make_project(folder)

    def act(self, folder: Path, facts: None, returned: Returned) -> None:
        with open_bus(folder, "leader") as bus:
            self._send(bus, folder)
            returned()

    def check(self, folder: Path, facts: None, *, returned: bool) -> None:
        with open_bus(folder, "leader") as bus:
            assert_sound(bus)
            before = [thread.id for thread in bus.list().items]
            assert len(before) in ((1,) if returned else (0, 1))
            repeated = self._send(bus, folder)
            assert repeated.replayed is bool(before)
            (after,) = bus.list().items
            assert before in ([], [after.id])
            assert bus.show(after.id, full=True).messages[0].body == BODY
            assert_attached(bus, after.id)
            assert_sound(bus)

    def _send(self, bus: Bus, folder: Path) -> Any:
        return bus.send(
            to="workers", subject="s", body=BODY, attach=[str(folder / "file.bin")], key="k"
        )


class Claim:
    """`claim`."""

    def prepare(self, folder: Path) -> str:
        make_project(folder)
        with open_bus(folder, "leader") as bus:
            return bus.send(to="workers", subject="s", body=BODY).thread.id

    def act(self, folder: Path, facts: str, returned: Returned) -> None:
        with open_bus(folder) as bus:
            bus.claim(mailboxes=["workers"])
            returned()

    def check(self, folder: Path, facts: str, *, returned: bool) -> None:
        with open_bus(folder, "w2") as bus:
            assert_sound(bus)
            thread = bus.show(facts).thread
            assert (thread.state, thread.epoch, thread.deliveries, thread.holder) in (
                ("claimed", 1, 1, "w1"),
                *(() if returned else (("pending", 0, 0, None),)),
            )
        # Nobody has the token. On another boot the lease is over and the thread is offered again.
        with open_bus(folder, "w2", clock=FakeClock()) as bus:
            claimed = bus.claim(mailboxes=["workers"])
            assert (claimed.thread.id, claimed.lease.epoch) == (facts, thread.epoch + 1)
            assert_sound(bus)


class Update:
    """`update --attach --key`."""

    def prepare(self, folder: Path) -> tuple[str, str]:
        thread_id = Claim().prepare(folder)
        with open_bus(folder) as bus:
            token = bus.claim(mailboxes=["workers"], lease_seconds=3600).lease.token
            assert token is not None
            return thread_id, token

    def act(self, folder: Path, facts: tuple[str, str], returned: Returned) -> None:
        with open_bus(folder) as bus:
            self._update(bus, folder, facts)
            returned()

    def check(self, folder: Path, facts: tuple[str, str], *, returned: bool) -> None:
        with open_bus(folder) as bus:
            assert_sound(bus)
            before = bus.show(facts[0])
            there = len(before.messages) == 2
            assert there or not returned
            written = (len(before.artifacts), before.thread.progress)
            assert written == ((1, 40) if there else (0, None))
            assert self._update(bus, folder, facts).replayed is there
            assert [m.kind for m in bus.show(facts[0]).messages] == ["task", "progress"]
            assert_attached(bus, facts[0])
            assert_sound(bus)

    def _update(self, bus: Bus, folder: Path, facts: tuple[str, str]) -> Any:
        file = str(folder / "file.bin")
        return bus.update(*facts, body="half", progress=40, attach=[file], key="u")


class Done(Update):
    """`done --attach`; its repeat is known by the token."""

    def act(self, folder: Path, facts: tuple[str, str], returned: Returned) -> None:
        with open_bus(folder) as bus:
            self._done(bus, folder, facts)
            returned()

    def check(self, folder: Path, facts: tuple[str, str], *, returned: bool) -> None:
        with open_bus(folder) as bus:
            assert_sound(bus)
            before = bus.show(facts[0]).thread
            assert (before.state, before.holder) in (
                ("done", None),
                *(() if returned else (("claimed", "w1"),)),
            )
            assert self._done(bus, folder, facts).already is (before.state == "done")
            after = bus.show(facts[0], full=True)
            assert after.thread.state == "done"
            assert [(m.kind, m.body) for m in after.messages[1:]] == [("result", BODY)]
            assert_attached(bus, facts[0])
            assert_sound(bus)

    def _done(self, bus: Bus, folder: Path, facts: tuple[str, str]) -> Any:
        file = str(folder / "file.bin")
        return bus.done(*facts, body=BODY, payload='{"n": 1}', attach=[file])


class Backup:
    """`backup --artifacts`."""

    def prepare(self, folder: Path) -> str:
        make_project(folder)
        with open_bus(folder, "leader") as bus:
            sent = bus.send(to="w", subject="s", body=BODY, attach=[str(folder / "file.bin")])
        (folder / "copies").mkdir()
        return sent.thread.id

    def act(self, folder: Path, facts: str, returned: Returned) -> None:
        with open_bus(folder) as bus:
            bus.backup(folder / "copies" / "copy.db", artifacts=True)
            returned()

    def check(self, folder: Path, facts: str, *, returned: bool) -> None:
        copy = folder / "copies" / "copy.db"
        assert copy.exists() or not returned
        if copy.exists():
            self._check_copy(copy, facts)
        with open_bus(folder) as bus:
            assert_sound(bus)
            bus.backup(copy, artifacts=True, force=True)
            assert_sound(bus)
        self._check_copy(copy, facts)
        assert {path.name for path in copy.parent.iterdir()} == {
            "copy.db",
            "copy.db.artifacts",
        }

    def _check_copy(self, copy: Path, thread_id: str) -> None:
        assert copy.stat().st_mode & 0o777 == 0o600
        with Bus.open(copy, agent="w1") as bus:
            assert_sound(bus)
            assert_attached(bus, thread_id)
        (copy.parent / "copy.db.gate").unlink(missing_ok=True)


class Prune:
    """`prune`, with a content that a live thread needs, too."""

    def prepare(self, folder: Path) -> tuple[str, list[str]]:
        make_project(folder)
        (folder / "own.bin").write_bytes(b"of the old threads only")
        with open_bus(folder, "leader") as bus:
            old = [self._send(bus, folder, ["file.bin", "own.bin"]) for _ in range(3)]
            for thread_id in old:
                bus.cancel(thread_id, body="enough")
            live = self._send(bus, folder, ["file.bin"])
        for path in database_path(folder).parent.rglob("artifacts/??/*"):
            os.utime(path, (1, 1))  # a file without a thread is collected only when it is old
        return live, old

    def act(self, folder: Path, facts: tuple[str, list[str]], returned: Returned) -> None:
        with open_bus(folder) as bus:
            bus.prune(0)
            returned()

    def check(self, folder: Path, facts: tuple[str, list[str]], *, returned: bool) -> None:
        live, old = facts
        with open_bus(folder) as bus:
            assert_sound(bus)
            pruned = [bus.show(thread_id).thread.pruned for thread_id in old]
            assert pruned in ([[True] * 3] if returned else [[True] * 3, [False] * 3])
            bus.prune(0)
            assert_sound(bus)
            for thread_id in old:
                shown = bus.show(thread_id)
                assert shown.thread.pruned
                assert [m.body for m in shown.messages] == [None, None]
            assert_attached(bus, live)
            assert len(list(bus.artifacts.contents())) == 1

    def _send(self, bus: Bus, folder: Path, files: list[str]) -> str:
        attach = [str(folder / name) for name in files]
        return bus.send(to="workers", subject="s", body=BODY, attach=attach).thread.id


class Init:
    """`init`."""

    def prepare(self, folder: Path) -> None:
        pass

    def act(self, folder: Path, facts: None, returned: Returned) -> None:
        creating.create(str(database_path(folder)))
        returned()

    def check(self, folder: Path, facts: None, *, returned: bool) -> None:
        path = str(database_path(folder))
        if returned or os.path.exists(path):
            with open_bus(folder) as bus:
                assert_sound(bus)
        else:
            with refused("no_database"), open_bus(folder):
                pass
            assert creating.create(path)
        assert not creating.create(path)
        with open_bus(folder) as bus:
            assert_sound(bus)
            bus.send(to="w", subject="s")
        names = {entry.name for entry in database_path(folder).parent.iterdir()}
        assert names - {"reserve"} == {".gitignore", "artifacts", "bells", "bus.db", "gate"}


class Migration:
    """The first command on a database of the first schema."""

    def prepare(self, folder: Path) -> str:
        make_project(folder)
        with open_bus(folder, "leader") as bus:
            sent = bus.send(to="w1", subject="s", body=BODY).thread.id
        path = database_path(folder)
        path.rename(path.with_name("newest.db"))
        empty_as_of(path, 1)
        path.chmod(0o600)
        fill(path, path.with_name("newest.db"))
        path.with_name("newest.db").unlink()
        return sent

    def act(self, folder: Path, facts: str, returned: Returned) -> None:
        with open_bus(folder):
            returned()

    def check(self, folder: Path, facts: str, *, returned: bool) -> None:
        version = outside.value(database_path(folder), "PRAGMA user_version")
        tables = outside.contents(database_path(folder))
        assert version in ((SCHEMA_VERSION,) if returned else (1, SCHEMA_VERSION))
        assert ("attempt" in tables) is (version > 1)
        with open_bus(folder) as bus:
            assert_sound(bus)
            claimed = bus.claim()
            assert (claimed.thread.id, claimed.messages[0].body) == (facts, BODY)
            assert_sound(bus)


def make_old_project(folder: Path) -> None:
    """A project whose database has the schema of step 1."""
    make_project(folder)
    path = database_path(folder)
    path.unlink()
    empty_as_of(path, 1)
    path.chmod(0o600)


SCENARIOS = {
    "send": Send,
    "claim": Claim,
    "update": Update,
    "done": Done,
    "backup": Backup,
    "prune": Prune,
    "init": Init,
    "migration": Migration,
}


def main() -> None:
    """Kill the operation named on the command line; print how often."""
    deaths = kill_at_every_step(SCENARIOS[sys.argv[1]](), Path(sys.argv[2]))
    sys.stdout.write(json.dumps(deaths._asdict()))
