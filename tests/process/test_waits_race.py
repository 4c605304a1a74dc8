"""No wait is missed: what comes at the moment when a wait begins is found at once.

`script/bench waits` runs the same race 2,000 times with bells and 2,000 times without.
"""

import random
import statistics

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.shared.store.sqlite import creating
from support.ledgers import all_events
from support.processes import Child, Clerk, Gun, close_all, crew

PAIRS = 6
ROUNDS_OF_A_PAIR = 25
AROUND_SECONDS = 0.05
# Far more than a busy machine needs, and far less than a wait that is missed would take.
WAIT_SECONDS = 20.0
# Half of the waits, at least: a busy machine makes some of them late.
MOST_LATE_SECONDS = 1.0

# Waits for a reply from a given delay after the gun on, again and again.
_WAITER = """
import time, os, json
from inbox_orch.inbox import Bus
from inbox_orch.shared.store import waits
from inbox_orch.shared.errors import InboxOrchError
from support.processes import say

path, gun, wait_seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
if sys.argv[4] == "alone":
    waits.FALLBACK_SECONDS = (1000.0, 1000.0)
with Bus.open(path, agent="w") as bus:
    claimed = bus.claim()
    after = None
    say(claimed.thread.id)
    for line in sys.stdin:
        say("aimed")
        os.read(gun, 1)
        time.sleep(json.loads(line))
        try:
            replies = bus.wait_reply(
                claimed.thread.id, claimed.lease.token, after=after, wait_seconds=wait_seconds
            )
            say([time.monotonic_ns(), [m.body for m in replies.messages]])
            after = replies.next_cursor
        except InboxOrchError as error:
            say([0, error.code])
"""

_WRITER = """
import time, os, json
from inbox_orch.inbox import Bus
from support.processes import say

path, thread, gun = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Bus.open(path, agent="leader") as bus:
    for line in sys.stdin:
        delay, body = json.loads(line)
        say("aimed")
        os.read(gun, 1)
        time.sleep(delay)
        bus.reply(thread, body=body)
        say(time.monotonic_ns())
"""

# Sees all events up to the one in the mailbox that ends it.
_WATCHER = """
from inbox_orch.inbox import Bus
from support.processes import say

seen = []
with Bus.open(sys.argv[1], agent="watcher") as bus:
    say("watches")
    for event in bus.watch(after="0", wait_seconds=600):
        seen.append(event.seq)
        if event.mailbox == "end":
            break
say(seen)
"""


class Pair:
    """A waiter and a writer on a database of their own, set off together."""

    def __init__(self, folder, doorbell):
        self.path = folder / "bus.db"
        creating.create(str(self.path))
        with Bus.open(self.path, agent="leader") as leader:
            leader.send(to="w", subject="talk")
        self.gun = Gun()
        fd = self.gun.descriptor
        self.waiter = Child(
            _WAITER,
            *(self.path, fd, WAIT_SECONDS, doorbell),
            pass_fds=(fd,),
            environment={"INBOX_DOORBELL": doorbell},
        )
        self.writer = Child(_WRITER, self.path, self.waiter.hear(), fd, pass_fds=(fd,))

    def prepare(self, number, offset_seconds):
        """The reply comes `offset_seconds` after the wait has begun, or before it."""
        self.waiter.tell(AROUND_SECONDS)
        self.writer.tell([AROUND_SECONDS + offset_seconds, f"reply {number}"])
        assert (self.waiter.hear(), self.writer.hear()) == ("aimed", "aimed")
        self.gun.fire(2)

    def close(self):
        close_all((self.waiter, self.writer, self.gun))


# Bells alone, without the look every 250 ms behind them, must be enough: a lost ring is seen.
@pytest.mark.parametrize("doorbell", ["on", "off", "alone"])
def test_a_reply_around_the_start_of_the_wait_never_lets_it_time_out(tmp_path, doorbell):
    chance = random.Random(doorbell)
    pairs, late_seconds = [], []
    for number in range(PAIRS):
        folder = tmp_path / str(number)
        folder.mkdir()
        pairs.append(Pair(folder, doorbell))
    with crew(*pairs):
        for number in range(ROUNDS_OF_A_PAIR):
            for pair in pairs:
                pair.prepare(number, chance.uniform(-AROUND_SECONDS, AROUND_SECONDS))
            for pair in pairs:
                replied_ns = pair.writer.hear()
                returned_ns, bodies = pair.waiter.hear(within=WAIT_SECONDS + 5)
                assert bodies == [f"reply {number}"]
                late_seconds.append((returned_ns - replied_ns) / 1e9)
    assert statistics.median(late_seconds) < MOST_LATE_SECONDS


def test_a_thread_sent_at_the_start_of_a_claim_is_never_missed(tmp_path):
    path, gun = tmp_path / "bus.db", Gun()
    creating.create(str(path))
    claimers = [Clerk(path, f"w{n}", gun=gun) for n in range(4)]
    senders = [Clerk(path, f"leader{n}", gun=gun) for n in range(4)]
    with crew(*claimers, *senders, gun):
        for _ in range(75):
            for claimer, sender in zip(claimers, senders, strict=True):
                claimer.start_at_gun("claim", wait_seconds=WAIT_SECONDS)
                sender.start_at_gun("send", to=claimer.agent, subject="task")
            for clerk in (*claimers, *senders):
                clerk.aimed()
            gun.fire(8)
            sent = [sender.answer().thread for sender in senders]
            claimed = [claimer.answer(within=WAIT_SECONDS + 5) for claimer in claimers]
            assert [answer.thread for answer in claimed] == sent


def test_a_watch_beside_16_writers_sees_every_event_once_and_in_order(tmp_path):
    path, gun = tmp_path / "bus.db", Gun()
    creating.create(str(path))
    writers = [Clerk(path, f"w{n}", gun=gun) for n in range(16)]
    watcher = Child(_WATCHER, path)
    with crew(watcher, *writers, gun), Bus.open(path, agent="leader") as bus:
        assert watcher.hear() == "watches"
        watcher.until_asleep()
        for _ in range(10):
            for writer in writers:
                writer.start_at_gun("send", to="pool", subject="task")
            for writer in writers:
                writer.aimed()
            gun.fire(len(writers))
            for writer in writers:
                assert writer.answer().exit_code == 0
        bus.send(to="end", subject="task")
        seen = watcher.hear()
        assert seen == [event.seq for event in all_events(bus)]
        assert len(seen) == 161
