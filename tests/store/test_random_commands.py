"""Random commands of several agents, on a clock that runs, jumps and starts again.

Each answer is compared with the model's, each row with the model's after every step, and at the
end the events are folded and compared with the tables. RANDOM_COMMANDS=N runs N examples.
"""

import functools
import os
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from inbox_orch.shared.errors import InboxOrchError
from support.buses import Office
from support.engines import looking
from support.model import Message, Model, Thread

AGENTS = st.sampled_from(["lead", "w1", "w2"])
WORKERS = st.sampled_from(["w1", "w2"])
MAILBOXES = st.sampled_from(["pool", "w1"])
BODIES = st.sampled_from(["yes", "no"])
KEYS = st.sampled_from([None, None, "k1", "k2"])
LEASES = st.sampled_from([1.0, 30.0, 60.0])
DELAYS = st.sampled_from([0.0, 0.0, 20.0])
POOL = st.sampled_from([True, True, False])
# Counted from the newest: most calls are about what was sent and claimed last.
RECENT = st.sampled_from([0, 0, 0, 1, 1, 2, 3, 5])


class Commands(RuleBasedStateMachine):
    """The bus and the model beside each other."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.office = Office(Path(self.folder.name))
        self.buses = {name: self.office.bus(name) for name in ("lead", "w1", "w2")}
        self.model = Model(self.office.clock)
        self.author = "?"
        self.held = []
        for mailbox in ("pool", "w1"):
            self._send("lead", mailbox, 0, 0.0, 2, False, None)
        self._claim("w1", True, 30.0, None)

    def teardown(self):
        try:
            found = self.buses["lead"].doctor(verify=True)
            assert not found.problems, [c for c in found.checks if c.status == "problem"]
        finally:
            self.office.close()
            self.folder.cleanup()

    def _thread(self, recent):
        ids = list(self.model.threads)
        return ids[-1 - recent % len(ids)]

    def _token(self, recent):
        return self.held[-1 - recent % len(self.held)]

    def call(self, author, method, *arguments, **options):
        """(code, result) of a call on the bus of an agent."""
        self.author = author
        try:
            return "ok", getattr(self.buses[author], method)(*arguments, **options)
        except InboxOrchError as error:
            return error.code, None

    # -- anybody ---------------------------------------------------------------------------

    @rule(
        author=AGENTS,
        mailbox=MAILBOXES,
        priority=st.sampled_from([0, 0, 5]),
        delay=DELAYS,
        most=st.sampled_from([1, 2, 5]),
        sealed=st.booleans(),
        key=KEYS,
    )
    def send(self, author, mailbox, priority, delay, most, sealed, key):
        self._send(author, mailbox, priority, delay, most, sealed, key)

    def _send(self, author, mailbox, priority, delay, most, sealed, key):
        options = {"to": mailbox, "priority": priority, "delay_seconds": delay}
        options |= {"max_deliveries": most, "sealed": sealed}
        request = tuple(options.items())
        expected = self.model.key_outcome("send", author, key, request)
        code, sent = self.call(author, "send", subject="task", body="do", key=key, **options)
        if expected == "key_conflict":
            assert code == "key_conflict"
            return
        assert code == "ok"
        assert bool(sent.replayed) == (expected == "replayed")
        if expected == "replayed":
            assert sent.thread.id == self.model.keys["send", author, key][1]
            return
        self.model.reap([mailbox])
        available_at = self.office.clock.wall_ms + int(delay * 1000)
        thread = Thread(
            sent.thread.id,
            len(self.model.threads),
            author,
            mailbox,
            priority,
            most,
            available_at,
            delay > 0,
            sealed,
        )
        self.model.sent(thread, key, request)

    @rule(author=AGENTS, thread=RECENT, body=BODIES)
    def reply(self, author, thread, body):
        self._reply(author, self._thread(thread), body)

    def _reply(self, author, thread, body):
        if not self.model.may_see(self.model.threads[thread], author):
            assert self.call(author, "reply", thread, body=body)[0] == "not_found"
            return
        answered = self.model.reply(self.model.threads[thread], author)
        code, replied = self.call(author, "reply", thread, body=body)
        assert (code, replied.answered) == ("ok", answered)

    @rule(
        author=AGENTS,
        thread=RECENT,
        what=st.sampled_from(["cancel", "cancel", "unseal", "prune", "prune unread"]),
    )
    def look_after(self, author, thread, what):
        {
            "cancel": self._cancel,
            "unseal": self._unseal,
            "prune": functools.partial(self._prune, unread=False),
            "prune unread": functools.partial(self._prune, unread=True),
        }[what](author, self._thread(thread))

    def _cancel(self, author, thread):
        if not self.model.may_see(self.model.threads[thread], author):
            assert self.call(author, "cancel", thread)[0] == "not_found"
            return
        expected = self.model.cancel(self.model.threads[thread])
        code, cancelled = self.call(author, "cancel", thread)
        assert code == ("invalid_state" if expected == "invalid_state" else "ok")
        assert code != "ok" or cancelled.already == (expected == "already")

    def _unseal(self, author, thread):
        if not self.model.may_see(self.model.threads[thread], author):
            assert self.call(author, "unseal", thread)[0] == "not_found"
            return
        expected = self.model.unseal(self.model.threads[thread], author)
        code, unsealed = self.call(author, "unseal", thread)
        assert code == ("invalid_state" if expected == "invalid_state" else "ok")
        assert code != "ok" or unsealed.already == (expected == "already")

    def _prune(self, author, _, *, unread):
        number, kept = self.model.prune(unread=unread)
        pruned = self.call(author, "prune", 0, unread=unread)[1]
        assert (pruned.threads, pruned.unread_threads) == (number, len(kept))
        assert set(pruned.unread) == kept

    # -- claiming and reading --------------------------------------------------------------

    @rule(agent=WORKERS, pool=POOL, seconds=LEASES)
    def claim(self, agent, pool, seconds):
        self._claim(agent, pool, seconds, None)

    @rule(agent=WORKERS, pool=POOL, seconds=LEASES, thread=RECENT)
    def claim_named(self, agent, pool, seconds, thread):
        self._claim(agent, pool, seconds, self._thread(thread))

    def _claim(self, agent, pool, seconds, named):
        mailboxes = ["pool"] if pool else []
        chosen = None if named is None else self.model.threads[named]
        self.model.readers |= {(agent, mailbox) for mailbox in (agent, *mailboxes)}
        expected, thread = self.model.claim([agent, *mailboxes], chosen)
        code, claimed = self.call(agent, "claim", named, mailboxes=mailboxes, lease_seconds=seconds)
        assert code == expected
        if claimed is None:
            return
        assert claimed.thread.id == thread.id
        self._learn_messages()
        self.model.acquired(thread, agent, claimed.lease.token, seconds)
        self.held.append((thread.id, claimed.lease.token))

    @rule(
        agent=AGENTS,
        pool=POOL,
        limit=st.sampled_from([1, 3, 100]),
        peek=st.sampled_from([False, False, False, True]),
        flushed=st.sampled_from([True, True, False]),
    )
    def fetch(self, agent, pool, limit, peek, flushed):
        mailboxes = ["pool"] if pool else []
        reads = [agent, *mailboxes]
        if not peek:
            self.model.readers |= {(agent, mailbox) for mailbox in reads}
            self.model.reap_for_fetch(agent, reads)
        code, fetched = self.call(agent, "fetch", mailboxes=mailboxes, limit=limit, peek=peek)
        self._learn_messages()
        unread = {
            number: [m for m in reads if m in message.to and number > self._cursor(agent, m)]
            for number, message in self.model.messages.items()
            if message.sender != agent
        }
        expected = sorted(number for number, where in unread.items() if where)[:limit]
        assert (code, [message.id for message, _ in fetched.items]) == ("ok", expected)
        if flushed and not peek:
            self.buses[agent].mark_read(fetched)
        if (flushed or not expected) and not peek:
            self._move_cursors(agent, reads, unread, expected)

    def _move_cursors(self, agent, reads, unread, shown):
        """Over what was shown, and over one's own messages up to the next unread one."""
        for mailbox in reads:
            left = [n for n, where in unread.items() if mailbox in where and n not in shown]
            passed = [
                number
                for number, message in self.model.messages.items()
                if mailbox in message.to and number < min(left, default=number + 1)
            ]
            if max(passed, default=0) > self._cursor(agent, mailbox):
                self.model.cursors[agent, mailbox] = max(passed)

    def _cursor(self, agent, mailbox):
        return self.model.cursors.get((agent, mailbox), 0)

    # -- the holder ------------------------------------------------------------------------

    @rule(held=RECENT, seconds=st.sampled_from([None, 1.0, 60.0]))
    def renew(self, held, seconds):
        held = self._token(held)
        thread, token, code, result = self._token_call(held, "renew", lease_seconds=seconds)
        if code == "ok":
            assert result.late == self.model.late(token)
            self.model.reap_question(thread)
            self.model.extend(token, seconds)

    @rule(held=RECENT, progress=st.sampled_from([None, 10]), key=KEYS)
    def update(self, held, progress, key):
        held = self._token(held)
        thread, token = self.model.threads[held[0]], held[1]
        holder = self.model.leases[token].holder
        request = (thread.id, progress)
        verdict = self.model.judge(thread, token)
        code, result = self.call(holder, "update", *held, body="so far", progress=progress, key=key)
        if verdict != "ok":
            assert code == verdict
            return
        self.model.reap_question(thread)
        outcome = self.model.key_outcome("update", holder, key, request)
        if outcome == "key_conflict":
            assert code == "key_conflict"
            return
        assert code == "ok"
        late = self.model.late(token)
        assert bool(result.replayed) == (outcome == "replayed")
        if outcome == "new":
            assert result.late == late
            self.model.updated(thread, key, request)

    @rule(held=RECENT, body=BODIES, deadline=st.sampled_from([None, None, 20.0]))
    def ask(self, held, body, deadline):
        self._ask(self._token(held), body, deadline)

    def _ask(self, held, body, deadline):
        thread, token = self.model.threads[held[0]], held[1]
        verdict = self.model.judge(thread, token)
        code, result = self.call(
            self.model.leases[token].holder, "ask", *held, body=body, deadline_seconds=deadline
        )
        if verdict == "ok":
            self.model.reap_question(thread)
            verdict = self.model.ask(thread, body, deadline)
        assert code == ("ok" if verdict == "already" else verdict)
        assert code != "ok" or result.already == (verdict == "already")

    @rule(
        held=RECENT,
        body=BODIES,
        delay=st.sampled_from([None, 0.0, 20.0]),
        what=st.sampled_from(["done", "fail", "release", "release"]),
    )
    def finish(self, held, body, delay, what):
        {"done": self._done, "fail": self._fail, "release": self._release}[what](
            self._token(held), body, delay
        )

    def _done(self, held, body, _):
        request = ("done", body)
        thread, _, code, _ = self._token_call(held, "done", request, body=body)
        if code == "ok":
            self.model.reap_question(thread)
            self.model.done(thread, request)

    def _fail(self, held, body, retry_in):
        request = ("fail", body, retry_in)
        thread, _, code, _ = self._token_call(
            held, "fail", request, body=body, retry_in_seconds=retry_in
        )
        if code == "ok":
            self.model.reap_question(thread)
            self.model.fail(thread, request, retry_in)

    def _release(self, held, _, delay):
        delay = delay or 0.0
        request = ("release", delay)
        thread, _, code, _ = self._token_call(held, "release", request, delay_seconds=delay)
        if code == "ok":
            self.model.reap_question(thread)
            self.model.release(thread, request, delay)

    @rule(held=RECENT, flushed=st.booleans())
    def wait_reply(self, held, flushed):
        held = self._token(held)
        thread, token = self.model.threads[held[0]], held[1]
        lease = self.model.leases[token]
        verdict = self.model.judge(thread, token)
        code, replies = self.call(lease.holder, "wait_reply", *held, wait_seconds=0)
        if verdict != "ok":
            assert code == verdict
            return
        self.model.reap_question(thread)
        self._learn_messages()
        expected = self.model.replies(thread, token)
        assert code == ("ok" if expected else "timeout")
        if not expected:
            self.model.keep_alive(token)
            return
        assert [message.id for message in replies.messages] == expected
        if flushed:
            self.buses[lease.holder].mark_read(replies)
            lease.read_position = max(lease.read_position, expected[-1])

    def _token_call(self, held, method, request=None, **options):
        """A call whose only refusals are the token's: (thread, token, code, result); the code
        is "already" for a repeat, and then nothing changes."""
        thread, token = self.model.threads[held[0]], held[1]
        verdict = self.model.judge(thread, token, request)
        code, result = self.call(self.model.leases[token].holder, method, *held, **options)
        assert code == ("ok" if verdict == "already" else verdict)
        assert code != "ok" or request is None or result.already == (verdict == "already")
        return thread, token, verdict, result

    # -- time ------------------------------------------------------------------------------

    @rule(held=RECENT, body=BODIES, agent=WORKERS)
    def a_question_outlives_its_lease(self, held, body, agent):
        """A way that single commands take too seldom: asked, expired, answered, claimed again."""
        token = self._token(held)
        self._ask(token, body, None)
        self._learn_messages()
        self.office.clock.advance(61)
        self._reply("lead", token[0], body)
        self._learn_messages()
        self._claim(agent, True, 30.0, token[0])

    @rule(seconds=st.sampled_from([1, 15, 25, 61]))
    def time_passes(self, seconds):
        self.office.clock.advance(seconds)

    @rule(seconds=st.sampled_from([-3600, -10, 10, 3600, None]))
    def a_clock_jumps(self, seconds):
        if seconds is None:
            self.office.clock.reboot()
        else:
            self.office.clock.jump_wall(seconds)

    # -- what must hold after every step ---------------------------------------------------

    @invariant()
    def rows_are_the_model_s(self):
        self._learn_messages()
        rows = self._rows(
            "SELECT id, state, epoch, deliveries, uncounted, holder, sealed, pruned, cancel_seen,"
            " delayed, late FROM thread"
        )
        assert {row[0]: tuple(row)[1:] for row in rows} == {
            t.id: (
                t.state,
                t.epoch,
                t.deliveries,
                t.uncounted,
                t.holder,
                t.sealed,
                t.pruned,
                t.cancel_seen,
                t.delayed,
                t.late,
            )
            for t in self.model.threads.values()
        }
        rows = self._rows(
            "SELECT token, epoch, holder, ended_by, deadline_monotonic, counted, read_position"
            " FROM lease"
        )
        assert {row[0]: tuple(row)[1:] for row in rows} == {
            lease.token: (
                lease.epoch,
                lease.holder,
                lease.ended_by,
                lease.deadline,
                lease.counted,
                lease.read_position,
            )
            for lease in self.model.leases.values()
        }
        rows = self._rows("SELECT agent, mailbox, position FROM read_cursor")
        assert {tuple(row)[:2]: row[2] for row in rows} == self.model.cursors

    def _learn_messages(self):
        """The messages of the last call are those that the model expects; their ids are new."""
        newest = max(self.model.messages, default=0)
        expected = self.model.expected
        for number, thread, kind, sender, to in self._rows(
            "SELECT id, thread_id, kind, sender, (SELECT group_concat(mailbox, ' ')"
            f" FROM destination WHERE message_id = id) FROM message WHERE id > {newest} ORDER BY id"
        ):
            message = Message(thread, kind, sender, frozenset(to.split()))
            anonymous = Message(thread, kind, "?", message.to)
            found = message if message in expected else anonymous
            assert expected[found] > 0, f"{message} was not expected, but {expected}"
            assert sender in (found.sender, self.author)
            expected[found] -= 1
            self.model.messages[number] = message
        assert not +expected, f"{+expected} did not come"

    def _rows(self, query):
        return looking(self.buses["lead"].database).all(query)


TestCommands = Commands.TestCase
TestCommands.settings = settings(
    max_examples=int(os.environ.get("RANDOM_COMMANDS", "60")),
    stateful_step_count=40,
    derandomize="RANDOM_COMMANDS" not in os.environ,
)
