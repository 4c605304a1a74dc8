"""Reading is not seeing: what leaves messages unread, what does not, and what deaths change."""

import os
import re
import signal
import subprocess

from inbox_orch.inbox import Bus
from support.lengths import LONG
from support.processes import Clerk, crew, run_json, start_json, until


def _unread(leader):
    return [m.id for m, _ in leader.fetch(agent="w1", peek=True, limit=1000).items]


def test_looking_ten_times_in_every_way_leaves_everything_unread(path, leader, inbox_bin):
    thread = leader.send(to="w1", subject="task").thread.id
    before = _unread(leader)
    assert len(before) == 1
    looks = (
        ("list",),
        ("show", thread),
        ("watch", "--after", "0", "--wait", "0"),
        ("fetch", "--peek"),
    )
    with Bus.open(path, agent="w1") as worker:
        for _ in range(10):
            worker.list()
            worker.show(thread, full=True)
            list(worker.watch(after="0", wait_seconds=0))
            worker.fetch(peek=True)
            worker.overview()
            worker.stats()
    for look in looks:
        running = start_json(inbox_bin, *look, "--db", str(path), agent="w1")
        running.communicate()
        assert running.returncode == 0
    assert _unread(leader) == before


def test_what_was_fetched_stays_read_for_a_new_process_of_the_agent(path, leader, inbox_bin):
    leader.send(to="w1", subject="task")
    fetch = ("fetch", "--db", str(path))
    assert len(run_json(inbox_bin, *fetch, agent="w1").json["data"]["items"]) == 1
    assert run_json(inbox_bin, *fetch, agent="w1").json["data"]["items"] == []
    with crew(Clerk(path, "w1")) as (killed,):
        killed.call("fetch")
        killed.kill()
    assert run_json(inbox_bin, *fetch, agent="w1").json["data"]["items"] == []


def test_a_fetch_whose_output_could_not_be_written_leaves_all_unread(path, leader, inbox_bin):
    leader.send(to="w1", subject="task")
    before = _unread(leader)
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(
            [inbox_bin, "fetch", "--json", "--db", str(path), "--agent", "w1"],
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert ran.returncode == 1
    assert _unread(leader) == before


def test_a_fetch_killed_while_it_writes_its_output_leaves_all_unread(path, leader, inbox_bin):
    for number in range(400):
        leader.send(to="w1", subject=f"thread {number}", body="x" * 4000)
    before = _unread(leader)
    running = start_json(inbox_bin, "fetch", "--limit", "400", "--db", str(path), agent="w1")
    # It has begun to write, and cannot end: nobody reads what is more than a pipe holds.
    assert os.read(running.stdout.fileno(), 1) == b"{"
    until(lambda: _is_blocked(running.pid))
    running.send_signal(signal.SIGKILL)
    running.communicate()
    assert _unread(leader) == before


def _is_blocked(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rpartition(")")[2].split()[0] == "S"


def test_each_agent_of_a_pool_has_a_cursor_of_its_own(path, leader):
    leader.send(to="pool", subject="task")
    with Bus.open(path, agent="w1") as one, Bus.open(path, agent="w2") as two:
        one.mark_read(one.fetch(mailboxes=["pool"]))
        assert one.fetch(mailboxes=["pool"]).items == ()
        assert len(two.fetch(mailboxes=["pool"]).items) == 1


def test_cursors_never_skip_a_message_beside_16_writers(path, leader):
    writers = [Clerk(path, f"sender{n}") for n in range(16)]
    with crew(*writers), Bus.open(path, agent="w1") as reader:
        for writer in writers:
            for number in range(20):
                writer.start("send", to="w1", subject=f"{writer.agent} {number}")
        seen = []
        while len(seen) < 320:
            fetched = reader.fetch(limit=7, wait_seconds=20)
            seen += [(m.id, t.subject) for m, t in fetched.items]
            reader.mark_read(fetched)
        for writer in writers:
            assert {writer.answer().exit_code for _ in range(20)} == {0}
        assert reader.fetch().items == ()
    assert [i for i, _ in seen] == sorted({i for i, _ in seen})
    assert {s for _, s in seen} == {f"sender{n} {k}" for n in range(16) for k in range(20)}


def test_a_mailbox_that_nobody_reads_is_said_to_be_unknown_until_somebody_does(path, leader):
    assert leader.send(to="w1", subject="task").recipient_known is False
    with Bus.open(path, agent="w1") as worker:
        worker.fetch()
    assert leader.send(to="w1", subject="task").recipient_known is True


def test_readers_beside_a_writer_take_no_commit_away(path, leader, inbox_bin):
    looks = ("list", "show", "stats", "overview", "fetch", "watch")
    with crew(Clerk(path, "writer"), Clerk(path, "reader")) as (writer, reader):
        first = writer.call("send", to="pool", subject="thread").thread
        for number in range(300):
            writer.start("send", to="pool", subject=f"thread {number}")
            look = looks[number % len(looks)]
            given = {"watch": {"wait_seconds": 0, "after": str(number)}}.get(look, {})
            reader.start(look, *([first] if look == "show" else []), **given)
            # Commands come and go meanwhile, each the last to close or the first to open.
            if number % 60 == 0:
                run_json(inbox_bin, "list", "--db", str(path))
        assert {writer.answer().exit_code for _ in range(300)} == {0}
        assert {reader.answer().exit_code for _ in range(300)} == {0}
    assert leader.list(limit=1, count=True).total == 301


def test_hundreds_of_waits_in_one_process_leave_no_descriptor_open_and_no_memory_behind(
    path, leader
):
    waits, warm = (20_000, 1000) if LONG else (200, 100)
    with crew(Clerk(path, "w1")) as (waiter,):
        descriptors, resident = set(), []
        for _ in range(waits):
            waiter.start("claim", wait_seconds=20)
            leader.send(to="w1", subject="task")
            assert waiter.answer().exit_code == 0
            descriptors.add(len(os.listdir(f"/proc/{waiter.pid}/fd")))
            resident.append(_resident_kib(waiter.pid))
        assert len(descriptors) == 1
        assert max(resident) - max(resident[:warm]) < 2048


def _resident_kib(pid):
    """How much of the machine's memory a process takes."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+) kB", file.read()).group(1))
