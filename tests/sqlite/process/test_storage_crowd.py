"""Many processes at one file: nothing is lost, half written, twice there, or damaged."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
import uuid

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.inbox.services import reaping
from support.ledgers import integrity
from support.processes import (
    Child,
    Clerk,
    Gun,
    crew,
    finish,
    linger,
    marked,
    run_json,
    start_json,
    until,
)


def _send(inbox_bin, path, subject, *options):
    return start_json(
        inbox_bin,
        *("send", "--to", "pool", "--subject", subject, "--db", str(path), *options),
        agent="leader",
    )


def test_64_commands_that_send_at_once_store_64_threads(path, leader, inbox_bin):
    running = [_send(inbox_bin, path, f"thread {n}") for n in range(64)]
    assert [finish(process).exit_code for process in running] == [0] * 64
    subjects = [thread.subject for thread in leader.list(limit=1000).items]
    assert sorted(subjects) == sorted(f"thread {n}" for n in range(64))
    assert integrity(path) == "ok"


def test_16_sends_with_one_key_make_one_thread(path, leader):
    gun = Gun()
    clerks = [Clerk(path, "leader", gun=gun) for _ in range(16)]
    with crew(*clerks, gun):
        for clerk in clerks:
            clerk.start_at_gun("send", to="pool", subject="once", key="k1")
        for clerk in clerks:
            clerk.aimed()
        gun.fire(16)
        answers = [clerk.answer() for clerk in clerks]
    assert len({answer.thread for answer in answers}) == 1
    assert sorted(answer.value["replayed"] for answer in answers) == [False] + [True] * 15
    assert leader.list(limit=1, count=True).total == 1


def test_a_send_that_is_killed_and_repeated_with_its_key_makes_one_thread(path, leader, inbox_bin):
    chance = random.Random(48)
    began = time.monotonic()
    assert finish(_send(inbox_bin, path, "another", "--key", "k")).exit_code == 0
    whole = time.monotonic() - began
    killed = 0
    for number in range(40):
        subject = f"thread {number}"
        first = _send(inbox_bin, path, subject, "--key", f"k{number}")
        linger(chance.uniform(0, whole))
        first.kill()
        first.communicate()
        in_time = first.returncode == -signal.SIGKILL
        killed += in_time
        whole *= 1.05 if in_time else 0.85  # how long it takes now, on a machine that others use
        again = finish(_send(inbox_bin, path, subject, "--key", f"k{number}"))
        assert again.exit_code == 0
    subjects = [thread.subject for thread in leader.list(limit=1000).items]
    assert sorted(subjects) == sorted(["another", *(f"thread {n}" for n in range(40))])
    assert killed > 10, "too few were killed to show anything"
    assert integrity(path) == "ok"


def test_40_updates_at_once_are_all_there(path, leader):
    thread = leader.send(to="w1", subject="task").thread.id
    gun = Gun()
    clerks = [Clerk(path, "w1", gun=gun) for _ in range(10)]
    with crew(*clerks, gun):
        token = clerks[0].call("claim").token
        for part in range(4):
            for place, clerk in enumerate(clerks):
                clerk.start_at_gun("update", thread, token, body=f"note {part} {place}")
            for clerk in clerks:
                clerk.aimed()
            gun.fire(len(clerks))
            assert [clerk.answer().exit_code for clerk in clerks] == [0] * len(clerks)
    notes = [m.body for m in leader.show(thread, full=True).messages if m.kind == "progress"]
    assert sorted(notes) == sorted(f"note {a} {b}" for a in range(4) for b in range(10))


def test_updates_and_replies_side_by_side_never_find_the_database_busy(path, leader):
    thread = leader.send(to="w1", subject="task").thread.id
    with crew(Clerk(path, "w1"), Clerk(path, "leader")) as (worker, other):
        token = worker.call("claim").token
        for number in range(300):
            worker.start("update", thread, token, body=f"update {number}")
            other.start("reply", thread, body=f"reply {number}")
        assert [worker.answer().exit_code for _ in range(300)] == [0] * 300
        assert [other.answer().exit_code for _ in range(300)] == [0] * 300
    assert len(leader.show(thread, full=True).messages) == 601


def test_a_large_body_is_seen_whole_or_not_at_all(path, leader):
    code = """
from inbox_orch.inbox import Bus
from support.processes import say
with Bus.open(sys.argv[1], agent="w1") as bus:
    claimed = bus.claim()
    say("claimed")
    for number in range(40):
        bus.reply(claimed.thread.id, body=str(number % 10) * 1_000_000)
say("written")
"""
    thread = leader.send(to="w1", subject="task").thread.id
    with crew(Child(code, path)) as (writer,):
        assert writer.hear() == "claimed"
        seen = 0
        while seen < 40:
            found = [m for m in leader.show(thread, full=True).messages if m.kind == "reply"]
            assert len(found) >= seen
            for message in found[seen:]:
                assert message.body is not None
                assert len(message.body) == message.body_bytes == 1_000_000
                assert hashlib.sha256(message.body.encode()).hexdigest() == message.body_sha256
            seen = len(found)
        assert writer.hear() == "written"


def test_a_result_that_comes_while_a_reaper_is_on_its_way_stays(path, leader, monkeypatch):
    with Bus.open(path, agent="w1") as worker, Bus.open(path, agent="w2") as reaper:
        thread = leader.send(to="w1", subject="task").thread.id
        token = worker.claim(lease_seconds=1).lease.token
        genuine = reaping.anything_due
        late = []

        def finish_first(desk, snapshot, mailboxes, now):
            due = genuine(desk, snapshot, mailboxes, now)
            if due and not late and desk is reaper.desk:
                # Between what the reaper has read and what it writes.
                late.append(worker.done(thread, token, body="in time").late)
            return due

        monkeypatch.setattr(reaping, "anything_due", finish_first)
        while not late:
            reaper.fetch(mailboxes=["w1"])
        assert leader.show(thread).thread.state == "done"
    kinds = [event.kind for event in leader.watch(after="0", wait_seconds=0)]
    assert kinds[-1] == "thread_done"
    assert "lease_expired" not in kinds


def test_many_processes_with_random_kills_leave_a_sound_file(path, leader):
    code = """
import random
from inbox_orch.inbox import Bus
from inbox_orch.shared.errors import InboxOrchError
from support.processes import say
chance = random.Random(sys.argv[2])
with Bus.open(sys.argv[1], agent=sys.argv[2]) as bus:
    say("ready")
    while True:
        bus.send(to="pool", subject="task", body="x" * chance.randrange(1, 20_000))
        claimed = bus.claim(mailboxes=["pool"], lease_seconds=1)
        thread, token = claimed.thread.id, claimed.lease.token
        try:
            bus.update(thread, token, progress=50, body="half")
            chance.choice([bus.done, bus.release])(thread, token)
        except InboxOrchError as error:
            assert error.code == "lease_lost", error
"""
    chance = random.Random(39)
    crowd = [Child(code, path, f"w{n}") for n in range(12)]
    with crew(*crowd):
        for member in crowd:
            assert member.hear() == "ready"
        for number, member in enumerate(crowd):
            linger(chance.uniform(0.02, 0.3))
            member.kill()
            if number % 4 == 3:
                assert integrity(path) == "ok"
    assert integrity(path) == "ok"
    assert leader.send(to="pool", subject="goes on").thread.state == "pending"


def test_no_process_is_left_behind_by_a_command(path, leader, inbox_bin):
    leader.send(to="w1", subject="task")
    mark = f"started-by-{uuid.uuid4()}"
    for command in (
        ("claim", "--agent", "w1"),
        ("claim", "--agent", "w2", "--wait", "0.1"),
        ("send", "--agent", "w1", "--to", "w2", "--subject", "s"),
        ("list",),
    ):
        running = subprocess.Popen(
            [inbox_bin, *command, "--db", str(path), "--json"],
            stdout=subprocess.DEVNULL,
            env={**os.environ, "MARK_OF_A_TEST": mark},
            start_new_session=True,
        )
        running.wait()
        with pytest.raises(ProcessLookupError):
            os.killpg(running.pid, 0)
        if sys.platform == "linux":
            until(lambda: not marked(mark), within=20)  # nor one that has left the group


def test_an_id_that_nobody_has_is_not_found_and_never_taken_for_a_claimed_one(path, inbox_bin):
    nobody = "0" * 25 + "1"
    for command in (("claim", nobody), ("show", nobody), ("cancel", nobody)):
        ran = run_json(inbox_bin, *command, "--db", str(path), agent="w1")
        assert (ran.exit_code, ran.json["error"]["code"]) == (3, "not_found")
