"""The database under forks, foreign locks, removed files, and processes that end at once."""

import os
import signal
import sqlite3
import time

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.shared.store.gate import Gate
from inbox_orch.shared.store.sqlite import creating, log
from sqlite.writing import Writing, watched
from support.buses import refused
from support.ledgers import integrity
from support.processes import Child, crew, finish, run_json, start_json, until
from support.timing import promptly

_HOLDER = """
import fcntl, sqlite3
from support.processes import say
kind, path = sys.argv[1:]
if kind == "gate":
    file = open(path, "a")
    fcntl.flock(file, fcntl.LOCK_EX)
else:
    connection = sqlite3.connect(path, isolation_level=None)
    if kind == "exclusive":
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("CREATE TABLE IF NOT EXISTS unused (x)")
    if kind == "exclusive":
        connection.execute("COMMIT")
say("holds")
sys.stdin.readline()
"""


def _holder(kind, path):
    holder = Child(_HOLDER, kind, path.parent / "gate" if kind == "gate" else path)
    assert holder.hear() == "holds"
    return holder


# -- fork ----------------------------------------------------------------------------------

_FORKS = """
import os
from inbox_orch.inbox import Bus
from inbox_orch.shared.errors import InboxOrchError
from support.processes import say

def use_in_child(bus):
    for call in (bus.list, lambda: bus.send(to="x", subject="y"), bus.database.version):
        try:
            call()
        except InboxOrchError as error:
            assert error.code == "usage" and "fork" in error.message
        else:
            os._exit(1)
    bus.close()

with Bus.open(sys.argv[1], agent="leader") as bus:
    verdicts = []
    for number in range(200):
        child = os.fork()
        if child == 0:
            use_in_child(bus)
            # Some tidy up as Python does, which drops what they have inherited.
            if number % 8:
                os._exit(0)
            del bus
            sys.exit(0)
        bus.send(to="workers", subject=f"thread {number}")
        verdicts.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
say(verdicts)
"""


def test_a_forked_child_is_refused_and_does_the_file_no_harm(path, leader):
    with crew(Child(_FORKS, path, fresh=True)) as (parent,):
        assert parent.hear() == [0] * 200
    assert integrity(path) == "ok"
    assert leader.list(limit=1, count=True).total == 200


# -- locks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["gate", "lock"])
def test_a_writer_gives_up_with_busy_at_its_deadline_and_works_afterwards(path, kind):
    with crew(_holder(kind, path)) as (holder,), Bus.open(path, agent="w", busy_seconds=0.4) as bus:

        def trial():
            began = time.monotonic()
            with refused("busy") as failure:
                bus.send(to="workers", subject="refused")
            seconds = time.monotonic() - began
            assert (failure.value.exit_code, failure.value.retryable) == (5, True)
            assert seconds >= 0.4
            return seconds

        promptly(trial, within=1.5)
        assert bus.list().items == ()
        holder.tell("go")
        holder.process.wait()
        assert bus.send(to="workers", subject="stored").thread.subject == "stored"


@pytest.mark.parametrize("kind", ["gate", "lock"])
def test_a_command_that_queues_for_the_lock_hears_an_interrupt_at_once(path, inbox_bin, kind):
    def trial():
        running = start_json(
            inbox_bin, "send", "--to", "w", "--subject", "s", "--db", str(path), agent="leader"
        )
        _until_it_has_opened(running.pid, str(path))
        began = time.monotonic()
        running.send_signal(signal.SIGINT)
        ran = finish(running)
        assert (ran.exit_code, ran.json["error"]["code"]) == (130, "interrupted")
        return time.monotonic() - began

    with crew(_holder(kind, path)):
        promptly(trial, within=1)


def _until_it_has_opened(pid, path):
    def has_it_open():
        folder = f"/proc/{pid}/fd"
        try:
            return any(os.path.realpath(f"{folder}/{n}") == path for n in os.listdir(folder))
        except FileNotFoundError:
            return False  # one was closed meanwhile

    until(has_it_open)


@pytest.mark.parametrize("kind", ["gate", "lock", "exclusive"])
def test_every_command_succeeds_once_a_lock_of_two_seconds_is_gone(path, leader, inbox_bin, kind):
    held = [leader.send(to="w1", subject=f"thread {n}").thread.id for n in range(4)]
    with Bus.open(path, agent="w1") as worker:
        tokens = [worker.claim(thread).lease.token for thread in held]
    leader.close()
    commands = [
        ("send", "--to", "w2", "--subject", "s"),
        ("fetch",),
        ("renew", held[0], "--token", tokens[0]),
        ("ask", held[0], "--token", tokens[0], "--body", "b"),
        ("done", held[1], "--token", tokens[1]),
        ("release", held[2], "--token", tokens[2]),
        ("cancel", held[3]),
        ("show", held[0]),
        ("list",),
    ]
    holder = _holder(kind, path)
    with crew(holder):
        running = [start_json(inbox_bin, *c, "--db", str(path), agent="w1") for c in commands]
        with pytest.raises(AssertionError, match="nothing in time"):
            holder.hear(within=2)
        holder.tell("go")
        outcomes = [finish(process) for process in running]
    assert [(c[0], o.exit_code) for c, o in zip(commands, outcomes, strict=True)] == [
        (c[0], 0) for c in commands
    ]


def test_a_database_held_exclusively_is_busy_and_not_damaged(path, inbox_bin, monkeypatch):
    monkeypatch.setenv("INBOX_BUSY_TIMEOUT", "0.3")
    with crew(_holder("exclusive", path)):
        for command in (("list",), ("send", "--to", "w", "--subject", "s")):
            ran = run_json(inbox_bin, *command, "--db", str(path), agent="leader")
            assert (ran.exit_code, ran.json["error"]["code"]) == (5, "busy")
            assert ran.json["error"]["retryable"]


def test_reading_needs_no_lock_while_somebody_writes(path, leader):
    leader.send(to="workers", subject="task")
    with crew(_holder("lock", path)):
        promptly(lambda: _seconds_to_list(leader), within=0.5)


def _seconds_to_list(leader):
    began = time.monotonic()
    assert len(leader.list().items) == 1
    return time.monotonic() - began


# -- files that go away --------------------------------------------------------------------


@pytest.mark.parametrize("what, code", [("removed", "no_database"), ("replaced", "wrong_database")])
def test_a_write_to_a_file_that_is_not_there_any_more_is_never_acknowledged(
    path, leader, tmp_path, what, code
):
    os.rename(path, tmp_path / "moved away")
    for rest in ("-wal", "-shm"):
        os.unlink(f"{path}{rest}")
    if what == "replaced":
        creating.create(str(path))
    with refused(code) as failure:
        leader.send(to="workers", subject="would be lost")
    assert failure.value.exit_code == 6
    with refused(code):
        leader.list()


# -- errors inside a transaction -----------------------------------------------------------


def test_a_disk_that_fills_up_inside_a_transaction_is_disk_full_and_changes_nothing(leader):
    connection = leader.database.connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count={pages + 2}")
    with refused("disk_full"):
        leader.send(to="workers", subject="task", body="x" * 100_000)
    connection.execute("PRAGMA max_page_count=1000000")
    assert leader.list().items == ()
    assert leader.send(to="workers", subject="task").thread.state == "pending"


def test_a_failed_checkpoint_after_the_commit_is_no_failure_of_the_call(leader, monkeypatch):
    def refuse(*_, **__):
        raise sqlite3.DatabaseError("a page of the log cannot be copied")

    monkeypatch.setattr(log, "CHECKPOINT_BYTES", 0)
    monkeypatch.setattr(log, "TRUNCATE_BYTES", 0)
    monkeypatch.setattr(log.Log, "_truncate", refuse)
    sent = leader.send(to="workers", subject="committed").thread
    assert leader.show(sent.id).thread == sent


# -- what was acknowledged -----------------------------------------------------------------

_ENDS_AT_ONCE = """
import os
from inbox_orch.inbox import Bus
path, verb, thread, token = sys.argv[1:]
bus = Bus.open(path, agent="w1")
calls = {
    "send": lambda: bus.send(to="w2", subject="from one that has gone"),
    "claim": lambda: bus.claim(),
    "renew": lambda: bus.renew(thread, token, lease_seconds=3600),
    "update": lambda: bus.update(thread, token, body="b", progress=50),
    "ask": lambda: bus.ask(thread, token, body="b"),
    "done": lambda: bus.done(thread, token, body="b"),
    "fail": lambda: bus.fail(thread, token, body="b"),
    "release": lambda: bus.release(thread, token),
    "reply": lambda: bus.reply(thread, body="b"),
    "cancel": lambda: bus.cancel(thread),
    "mark_read": lambda: bus.mark_read(bus.fetch()),
}
calls[verb]()
os._exit(0)
"""

_SEEN = {
    "send": lambda bus, thread: bus.list(mailboxes=["w2"]).items[0].sender == "w1",
    "claim": lambda bus, thread: bus.list(states_wanted=["pending"]).items == (),
    "renew": lambda bus, thread: bus.show(thread).thread.lease.lease_ms == 3_600_000,
    "update": lambda bus, thread: bus.show(thread).thread.progress == 50,
    "ask": lambda bus, thread: bus.show(thread).thread.state == "blocked",
    "done": lambda bus, thread: bus.show(thread).thread.state == "done",
    "fail": lambda bus, thread: bus.show(thread).thread.state == "failed",
    "release": lambda bus, thread: bus.show(thread).thread.state == "pending",
    "reply": lambda bus, thread: bus.show(thread).messages[-1].kind == "reply",
    "cancel": lambda bus, thread: bus.show(thread).thread.state == "cancelled",
    "mark_read": lambda bus, thread: bus.fetch(agent="w1").items == (),
}


@pytest.mark.parametrize("verb", _SEEN)
def test_what_a_call_has_returned_is_there_although_its_process_ended_at_once(path, verb):
    with Bus.open(path, agent="leader") as leader, Bus.open(path, agent="w1") as worker:
        thread = leader.send(to="w1", subject="held").thread.id
        token = worker.claim().lease.token
        leader.send(to="w1", subject="waiting")
    with crew(Child(_ENDS_AT_ONCE, path, verb, thread, token)) as (child,):
        assert child.process.wait() == 0
    with Bus.open(path, agent="leader") as fresh:
        assert _SEEN[verb](fresh, thread)


# -- how it writes -------------------------------------------------------------------------


def test_every_writing_transaction_takes_the_write_lock_before_it_reads(leader, path):
    writing = Writing()
    with Bus.open(path, agent="w1") as worker:
        watched(worker.database.connection, writing)
        leader.send(to="w1", subject="task")
        claimed = worker.claim()
        thread, token = claimed.thread.id, claimed.lease.token
        worker.update(thread, token, body="b")
        worker.ask(thread, token, body="b")
        worker.reply(thread, body="b")
        worker.renew(thread, token)
        worker.mark_read(worker.fetch())
        worker.done(thread, token)
        worker.send(to="w2", subject="s", sealed=True, key="k")
        leader.send(to="w1", subject="task")
        claimed = worker.claim()
        worker.release(claimed.thread.id, claimed.lease.token)
        claimed = worker.claim()
        worker.fail(claimed.thread.id, claimed.lease.token, body="b")
        worker.cancel(worker.send(to="w2", subject="s").thread.id)
    assert writing.faults == []
    assert writing.writes > 30


def test_no_code_but_sqlite_opens_the_files_of_the_database(path, tmp_path, monkeypatch):
    code = """
import os
from inbox_orch.inbox import Bus
from inbox_orch.inbox.worker.result import read_result
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.inputs import read_input
from support.processes import say
opened, own = [], {}

def identity(path):
    status = os.stat(path)
    return status.st_dev, status.st_ino

def note(name, given):
    if name == "open" and isinstance(given[0], (str, bytes)) and os.path.exists(given[0]):
        opened.append(own.get(identity(given[0]), os.fsdecode(given[0])))

def refused(call, *given, **options):
    try:
        call(*given, **options)
    except InboxOrchError as error:
        assert error.code == "usage" and "inbox backup" in error.hint, error
        return
    raise AssertionError("a file of the database was read")

sys.addaudithook(note)
with Bus.open(sys.argv[1], agent="w1") as bus:
    bus.send(to="w1", subject="task", attach=[sys.executable])
    bus.mark_read(bus.fetch())
    claimed = bus.claim()
    thread, token = claimed.thread.id, claimed.lease.token
    bus.update(thread, token, body="b")
    bus.ask(thread, token, body="b")
    bus.reply(thread, body="b", agent="leader")
    bus.wait_reply(thread, token)
    bus.done(thread, token)
    list(bus.watch(after="0", wait_seconds=0))
    bus.list(), bus.show(thread), bus.stats(), bus.overview()
    for end in ("", "-wal", "-shm"):
        os.link(sys.argv[1] + end, "hard-link" + end)
        os.symlink(sys.argv[1] + end, "link" + end)
        own[identity(sys.argv[1] + end)] = "bus.db" + end
        for name in (sys.argv[1] + end, "hard-link" + end, "link" + end):
            refused(bus.send, to="w1", subject="task", attach=[name])
            refused(read_input, name, 1000)
            assert not read_result(name).attach
say(opened)
"""
    monkeypatch.chdir(tmp_path)
    with crew(Child(code, path)) as (child,):
        opened = child.hear()
    assert any(name.endswith("/gate") for name in opened)
    assert [name for name in opened if os.path.basename(name).startswith("bus.db")] == []


@pytest.mark.parametrize("name", ["bus.db", "bus.db-shm", "hard-link", "link"])
def test_who_attaches_the_database_keeps_what_was_acknowledged_to_it(path, tmp_path, name):
    """Closed once, the file is without SQLite's locks: the next command that ends would take the
    log away from under this process."""
    code = """
import os
from inbox_orch.inbox import Bus
from inbox_orch.shared.errors import InboxOrchError
from support.processes import say
bus = Bus.open(sys.argv[1], agent="leader")
bus.send(to="w1", subject="before")
try:
    bus.send(to="w1", subject="attached", attach=[sys.argv[2]])
    say("attached")
except InboxOrchError as error:
    say(error.code)
sys.stdin.readline()
bus.send(to="w1", subject="after")
os._exit(0)
"""
    os.link(path, tmp_path / "hard-link")
    (tmp_path / "link").symlink_to(path)
    given = (path.parent if name.startswith("bus") else tmp_path) / name
    with crew(Child(code, path, given)) as (child,):
        said = child.hear()
        assert run_json("inbox", "list", "--db", str(path)).exit_code == 0
        child.tell("go on")
        assert child.process.wait() == 0
    with Bus.open(path) as bus:
        subjects = [thread.subject for thread in bus.list().items]
    assert (said, sorted(subjects)) == ("usage", ["after", "before"])


def test_the_gate_is_left_at_once_by_whoever_gives_up(path):
    gate, rival = Gate(str(path.parent / "gate")), Gate(str(path.parent / "gate"))
    gate.acquire(1)
    for _ in range(3):
        with refused("busy"):
            rival.acquire(0.05)
    gate.release()
    rival.acquire(5)
    with refused("busy"):
        gate.acquire(0.05)
    rival.release()
