"""The bus by another hand: what the contract says each call does, on plain dictionaries.

Written from the contract, not from the code, with no SQL and no files. A call returns the code
that the bus must answer with ("ok" or an error's) and changes the model as the bus must change.
"""

from collections import Counter
from dataclasses import dataclass, field

from support.clocks import FakeClock

SYSTEM = "_system"
FINAL = ("done", "failed", "cancelled")


@dataclass
class Lease:
    """One acquisition of a thread."""

    thread: "Thread"
    token: str
    holder: str
    epoch: int
    milliseconds: int
    boot_id: str
    deadline: int
    counted: bool
    read_position: int
    ended_by: str | None = None
    end_request: object = None


@dataclass
class Question:
    """The open question of a blocked thread."""

    asker: str
    body: str
    deadline: int | None


@dataclass
class Thread:
    """A thread; `lease` is the live one. Messages up to `emptied_to` have been pruned."""

    id: str
    number: int
    sender: str
    mailbox: str
    priority: int
    max_deliveries: int
    available_at: int
    delayed: bool
    sealed: bool
    state: str = "pending"
    epoch: int = 0
    deliveries: int = 0
    uncounted: bool = False
    lease: Lease | None = None
    question: Question | None = None
    finished_at: int | None = None
    cancel_seen: bool = False
    pruned: bool = False
    emptied_to: int = 0
    written_later: bool = False
    late: bool = False

    @property
    def holder(self) -> str | None:
        """Who holds it."""
        return None if self.lease is None else self.lease.holder


@dataclass(frozen=True)
class Message:
    """A message without its id, which the database gives."""

    thread: str
    kind: str
    sender: str
    to: frozenset[str]


@dataclass
class Model:
    """Everything there is."""

    clock: FakeClock
    threads: dict[str, Thread] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    messages: dict[int, Message] = field(default_factory=dict)
    expected: Counter[Message] = field(default_factory=Counter)
    readers: set[tuple[str, str]] = field(default_factory=set)
    cursors: dict[tuple[str, str], int] = field(default_factory=dict)
    keys: dict[tuple[str, str, str], tuple[object, str]] = field(default_factory=dict)

    # -- anybody ---------------------------------------------------------------------------

    def key_outcome(self, command: str, agent: str, key: str | None, request: object) -> str:
        """ "new", "replayed" or "key_conflict"."""
        stored = None if key is None else self.keys.get((command, agent, key))
        if stored is None:
            return "new"
        return "replayed" if stored[0] == request else "key_conflict"

    def sent(self, thread: Thread, key: str | None, request: object) -> None:
        """`send` has made a thread."""
        self.threads[thread.id] = thread
        if key is not None:
            self.keys["send", thread.sender, key] = (request, thread.id)
        self.say(thread, "task", thread.sender, thread.mailbox)

    def may_see(self, thread: Thread, agent: str) -> bool:
        """Whether a sealed thread exists for an agent that calls without naming mailboxes."""
        holders = {lease.holder for lease in self.leases.values() if lease.thread is thread}
        reads = (agent, thread.mailbox) in self.readers or thread.mailbox == agent
        return not thread.sealed or reads or agent == thread.sender or agent in holders

    def reply(self, thread: Thread, author: str) -> bool:
        """`reply`; whether it answers the question."""
        self.reap_thread(thread)
        answers = thread.question is not None and thread.question.asker != author
        if author == thread.sender:
            to = {thread.holder or thread.mailbox}
        else:
            to = {thread.sender, thread.holder or thread.sender} - {author} or {thread.sender}
            to.add(thread.sender)
        self.say(thread, "reply", author, *to)
        if answers:
            self._close_question(thread)
        return answers

    def cancel(self, thread: Thread) -> str:
        """`cancel`: "ok", "already" or "invalid_state"."""
        self.reap_thread(thread)
        if thread.state == "cancelled":
            return "already"
        if thread.state in FINAL:
            return "invalid_state"
        self.say(thread, "cancel", None, thread.sender)
        self._end(thread, "cancelled", None)
        self._finish(thread, "cancelled")
        return "ok"

    def unseal(self, thread: Thread, author: str) -> str:
        """`unseal`."""
        if author != thread.sender:
            return "invalid_state"
        already, thread.sealed = not thread.sealed, False
        return "already" if already else "ok"

    def prune(self, *, unread: bool) -> tuple[int, set[str]]:
        """`prune --older-than 0`, with `--unread` or without: how many threads, and which were
        kept for what their sender has not fetched."""
        final = [
            thread
            for thread in self.threads.values()
            if (not thread.pruned or thread.written_later)
            and thread.finished_at is not None
            and thread.finished_at <= self.clock.wall_ms
        ]
        kept = [thread for thread in final if not unread and self._has_unread(thread)]
        due = [thread for thread in final if thread not in kept]
        newest = max(self.messages, default=0)
        for thread in due:
            thread.pruned, thread.written_later, thread.emptied_to = True, False, newest
            self.keys = {k: v for k, v in self.keys.items() if v[1] != thread.id}
        return len(due), {thread.id for thread in kept if not thread.pruned}

    def _has_unread(self, thread: Thread) -> bool:
        """Whether its sender has not fetched what others wrote to it, and is there still."""
        start = max(self.cursors.get((thread.sender, thread.sender), 0), thread.emptied_to)
        return any(
            number > start
            and message.thread == thread.id
            and message.sender != thread.sender
            and thread.sender in message.to
            for number, message in self.messages.items()
        )

    # -- claiming --------------------------------------------------------------------------

    def claim(self, reads: list[str], named: Thread | None) -> tuple[str, Thread | None]:
        """`claim`: the code, and the thread that is to be had."""
        self.reap(reads)
        for thread in self.threads.values():
            if thread.mailbox in reads and thread.available_at <= self.clock.wall_ms:
                thread.delayed = False
        if named is not None:
            return self._claim_named(reads, named)
        ready = [
            thread
            for thread in self.threads.values()
            if thread.mailbox in reads and thread.state == "pending" and not thread.delayed
        ]
        if not ready:
            return "nothing_available", None
        return "ok", min(ready, key=lambda thread: (-thread.priority, thread.number))

    def _claim_named(self, reads: list[str], thread: Thread) -> tuple[str, Thread | None]:
        if thread.mailbox not in reads:
            return "wrong_mailbox", None
        if thread.lease is not None:
            return "already_claimed", None
        if thread.state != "pending":
            return "invalid_state", None
        return ("nothing_available", None) if thread.delayed else ("ok", thread)

    def acquired(self, thread: Thread, holder: str, token: str, seconds: float) -> None:
        """The lease has been given out."""
        assert thread.lease is None, "two live leases on one thread"
        counted = not thread.uncounted
        thread.epoch += 1
        thread.deliveries += counted
        thread.uncounted, thread.state = False, "claimed"
        assert thread.deliveries <= thread.max_deliveries
        thread.lease = self.leases[token] = Lease(
            thread,
            token,
            holder,
            thread.epoch,
            int(seconds * 1000),
            self.clock.boot_id,
            self.clock.monotonic_ms + int(seconds * 1000),
            counted,
            max(i for i, m in self.messages.items() if m.thread == thread.id),
        )

    # -- the holder ------------------------------------------------------------------------

    def judge(self, thread: Thread, token: str, request: object = None) -> str:
        """What a token is worth, in the contract's order: "ok", "already" or an error."""
        lease = self.leases[token]
        last = lease.thread is thread and lease.epoch == thread.epoch
        if last and thread.state == "cancelled":
            thread.cancel_seen = True
            return "cancelled"
        if not last or lease.ended_by == "expired":
            return "lease_lost"
        if lease.ended_by is not None:
            repeated = request is not None and lease.end_request == request
            return "already" if repeated else "invalid_state"
        return "ok"

    def late(self, token: str) -> bool:
        """Whether the lease is over, though nobody has noticed."""
        return self._expired(self.leases[token])

    def extend(self, token: str, seconds: float | None = None) -> None:
        """`renew`, and what every `update` does, too."""
        lease = self.leases[token]
        if seconds is not None:
            lease.milliseconds = int(seconds * 1000)
        lease.boot_id = self.clock.boot_id
        lease.deadline = self.clock.monotonic_ms + lease.milliseconds

    def updated(self, thread: Thread, key: str | None, request: object) -> None:
        """`update`."""
        assert thread.lease is not None
        self.extend(thread.lease.token)
        if key is not None:
            self.keys["update", thread.lease.holder, key] = (request, thread.id)
        self.say(thread, "progress", thread.lease.holder, thread.sender)

    def ask(self, thread: Thread, body: str, deadline_seconds: float | None) -> str:
        """`ask`: "ok", "already" or "invalid_state"."""
        assert thread.lease is not None
        asker = thread.lease.holder
        if thread.question is not None:
            same = (thread.question.asker, thread.question.body) == (asker, body)
            return "already" if same else "invalid_state"
        deadline = (
            None if deadline_seconds is None else self.clock.wall_ms + int(deadline_seconds * 1000)
        )
        thread.question, thread.state = Question(asker, body, deadline), "blocked"
        self.say(thread, "question", asker, thread.sender)
        return "ok"

    def done(self, thread: Thread, request: object) -> None:
        """`done`."""
        assert thread.lease is not None
        thread.late = self._expired(thread.lease)
        self._say_last(thread, "result")
        self._end(thread, "done", request)
        self._finish(thread, "done")

    def fail(self, thread: Thread, request: object, retry_in: float | None) -> None:
        """`fail`."""
        assert thread.lease is not None
        late = self._expired(thread.lease)
        self._say_last(thread, "failure")
        self._end(thread, "failed", request)
        if retry_in is None or thread.deliveries >= thread.max_deliveries:
            thread.late = late
            self._finish(thread, "failed")
        else:
            self._offer(thread, retry_in)

    def release(self, thread: Thread, request: object, delay: float) -> None:
        """`release`: the delivery is given back."""
        assert thread.lease is not None
        counted = thread.lease.counted
        self._say_last(thread, "release")
        self._end(thread, "released", request)
        thread.deliveries -= counted
        thread.uncounted = not counted
        self._offer(thread, delay)

    def replies(self, thread: Thread, token: str) -> list[int]:
        """What others have written since the holder's own last message."""
        lease = self.leases[token]
        mine = [
            i for i, m in self.messages.items() if (m.thread, m.sender) == (thread.id, lease.holder)
        ]
        start = max(mine, default=lease.read_position)
        return [
            i
            for i, m in sorted(self.messages.items())
            if m.thread == thread.id and m.sender != lease.holder and i > start
        ]

    def keep_alive(self, token: str) -> None:
        """A wait renews the lease when a third of it has gone by."""
        lease = self.leases[token]
        left = lease.deadline - self.clock.monotonic_ms
        if lease.boot_id != self.clock.boot_id or left <= 2 * (lease.milliseconds // 3):
            self.extend(token)

    # -- what runs out ---------------------------------------------------------------------

    def reap(self, mailboxes: list[str]) -> None:
        """Leases of these mailboxes, and questions wherever they are."""
        for thread in self.threads.values():
            lease = thread.lease
            if thread.mailbox in mailboxes and lease is not None and self._expired(lease):
                self._expire(thread)
        for thread in self.threads.values():
            if self._overdue(thread):
                self.reap_thread(thread)

    def reap_for_fetch(self, agent: str, mailboxes: list[str]) -> None:
        """A sender that looks notices what became of its own threads, too."""
        sent = {t.mailbox for t in self.threads.values() if t.lease and t.sender == agent}
        self.reap([*mailboxes, *sent])

    def reap_thread(self, thread: Thread) -> None:
        """The lease first, then the question."""
        if thread.lease is not None and self._expired(thread.lease):
            self._expire(thread)
        self.reap_question(thread)

    def reap_question(self, thread: Thread) -> None:
        """The deadline of the question alone."""
        if self._overdue(thread):
            self.say(thread, "system", SYSTEM, thread.sender)
            self._close_question(thread)

    def _expired(self, lease: Lease) -> bool:
        return lease.boot_id != self.clock.boot_id or lease.deadline <= self.clock.monotonic_ms

    def _overdue(self, thread: Thread) -> bool:
        question = thread.question
        return (
            question is not None
            and question.deadline is not None
            and question.deadline <= self.clock.wall_ms
        )

    def _expire(self, thread: Thread) -> None:
        assert thread.lease is not None
        thread.lease.ended_by, thread.lease = "expired", None
        if thread.state == "blocked":
            thread.uncounted = True
        elif thread.deliveries < thread.max_deliveries:
            self._offer(thread, 0)
        else:
            self.say(thread, "system", SYSTEM, thread.sender)
            self._finish(thread, "failed")

    # -- steps -----------------------------------------------------------------------------

    def say(self, thread: Thread, kind: str, sender: str | None, *to: str) -> None:
        """A message that must have appeared; `sender` None: whoever calls."""
        thread.written_later = thread.pruned
        self.expected[Message(thread.id, kind, sender or "?", frozenset(to))] += 1

    def _say_last(self, thread: Thread, kind: str) -> None:
        assert thread.lease is not None
        self.say(thread, kind, thread.lease.holder, thread.sender)

    def _end(self, thread: Thread, how: str, request: object) -> None:
        if thread.lease is not None:
            thread.lease.ended_by, thread.lease.end_request = how, request
        thread.lease, thread.question = None, None

    def _finish(self, thread: Thread, state: str) -> None:
        thread.state, thread.finished_at, thread.delayed = state, self.clock.wall_ms, False

    def _offer(self, thread: Thread, delay: float) -> None:
        thread.state = "pending"
        thread.available_at = self.clock.wall_ms + int(delay * 1000)
        thread.delayed = delay > 0

    def _close_question(self, thread: Thread) -> None:
        thread.question = None
        thread.state = "claimed"
        if thread.lease is None:
            self._offer(thread, 0)
