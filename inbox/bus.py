"""`Bus`: the public Python API, for long-lived processes and for `orch`.

The command line is a thin shell over it. A `Bus` belongs to the thread and process that opened
it; open one for each. A page: what a method does stands in the module that it names, which is
loaded when it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inbox_orch.shared.later import Later
from inbox_orch.shared.store.sqlite.database import DEFAULT_BUSY_SECONDS

from .domain import limits
from .services.desk import Desk

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, BinaryIO

    from inbox_orch.shared.clock import Clock, Moment
    from inbox_orch.shared.store.artifacts import ArtifactStore, Stored
    from inbox_orch.shared.store.engine import Session, Transaction
    from inbox_orch.shared.store.sqlite.database import Database
    from inbox_orch.shared.store.waits import Look

    from .domain.model import Artifact, Message, Thread, WorkTimes
    from .services import (
        claiming,
        copying,
        examining,
        fetching,
        holding,
        pruning,
        reading,
        reaping,
        sending,
        waiting,
    )
    from .services.claiming import Claimed
    from .services.copying import BackedUp
    from .services.desk import Written
    from .services.examining import Examined
    from .services.fetching import Fetched
    from .services.pruning import Pruned
    from .services.reading import Listing, Overview, Shown, Stats
    from .services.waiting import Replies, Watch
    from .store.leases import LeaseRow
else:
    claiming = Later("inbox_orch.inbox.services.claiming")
    copying = Later("inbox_orch.inbox.services.copying")
    examining = Later("inbox_orch.inbox.services.examining")
    fetching = Later("inbox_orch.inbox.services.fetching")
    holding = Later("inbox_orch.inbox.services.holding")
    pruning = Later("inbox_orch.inbox.services.pruning")
    reading = Later("inbox_orch.inbox.services.reading")
    reaping = Later("inbox_orch.inbox.services.reaping")
    sending = Later("inbox_orch.inbox.services.sending")
    waiting = Later("inbox_orch.inbox.services.waiting")


class Bus:
    """An open bus. Failures are `InboxOrchError` with the codes of the command line
    (`error.code`).
    """

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        agent: str | None = None,
        database_id: str | None = None,
        clock: Clock | None = None,
        busy_seconds: float = DEFAULT_BUSY_SECONDS,
        notice: Callable[[str], None] = lambda text: None,
        looks: bool = False,
        perhaps_alone: bool = False,
    ) -> Bus:
        """Open the database at `path`, or the one that the working directory leads to.

        `agent` is the name under which calls act; `database_id` refuses any other database;
        `busy_seconds` is how long a write waits for other writers. `looks` leaves the schema of
        an older release as it is until something is written. `perhaps_alone`: where the disk has
        no room for sharing the database, keep all others out of it until it is closed.
        Errors: `no_database`, `wrong_database`, `schema_newer`, `corrupt`, `read_only`, `usage`.
        """
        desk = Desk.open(
            path,
            agent=agent,
            database_id=database_id,
            clock=clock,
            busy_seconds=busy_seconds,
            notice=notice,
            looks=looks,
            perhaps_alone=perhaps_alone,
        )
        return cls(desk)

    def close(self) -> None:
        """Close the database."""
        self.desk.close()

    def __enter__(self) -> Bus:
        self.database.check_usable()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @property
    def database(self) -> Database:
        """The open database."""
        return self.desk.database

    @property
    def agent(self) -> str | None:
        """The name under which calls act."""
        return self.desk.agent

    @property
    def artifacts(self) -> ArtifactStore:
        """The files beside the database."""
        return self.desk.artifacts

    @property
    def now_ms(self) -> int:
        """The present moment on the wall clock of this bus, in milliseconds."""
        return self.desk.now_ms

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Join several calls into one transaction: all of them happen, or none. Waits must not be
        called inside it."""
        return self.desk.transaction()

    def send(
        self,
        *,
        to: str,
        subject: str,
        body: str | None = None,
        payload: str | None = None,
        attach: Sequence[str] = (),
        priority: int = 0,
        delay_seconds: float = 0,
        max_deliveries: int = limits.DEFAULT_MAX_DELIVERIES,
        sealed: bool = False,
        strict: bool = False,
        key: str | None = None,
        agent: str | None = None,
        thread_id: str | None = None,
        files: Sequence[Stored] = (),
    ) -> Written:
        """Open a thread. Errors: `usage`, `key_conflict`, `unknown_recipient`, and
        those of every write."""
        return sending.send(
            self.desk,
            to=to,
            subject=subject,
            body=body,
            payload=payload,
            attach=attach,
            priority=priority,
            delay_seconds=delay_seconds,
            max_deliveries=max_deliveries,
            sealed=sealed,
            strict=strict,
            key=key,
            agent=agent,
            thread_id=thread_id,
            files=files,
        )

    def reply(
        self,
        thread_id: str,
        *,
        body: str,
        attach: Sequence[str] = (),
        key: str | None = None,
        agent: str | None = None,
        files: Sequence[Stored] = (),
    ) -> Written:
        """Write on a thread, held or not. On a blocked one, by an agent other than the
        asker, it answers the question (`answered` in the result). Errors: `usage`,
        `not_found` (also for a sealed thread that the author may not see),
        `key_conflict`, and those of every write."""
        return sending.reply(
            self.desk, thread_id, body=body, attach=attach, key=key, agent=agent, files=files
        )

    def cancel(
        self, thread_id: str, *, body: str | None = None, agent: str | None = None
    ) -> Written:
        """Stop a thread, even while it is held. Its holder learns of it by exit 10. Errors:
        `not_found`, `invalid_state` (done or failed)."""
        return sending.cancel(self.desk, thread_id, body=body, agent=agent)

    def unseal(self, thread_id: str, *, agent: str | None = None) -> Written:
        """Open a sealed thread to everyone; only its sender may. Errors: `not_found`,
        `invalid_state` (not the sender)."""
        return sending.unseal(self.desk, thread_id, agent=agent)

    def fetch(
        self,
        *,
        mailboxes: Sequence[str] = (),
        limit: int = limits.DEFAULT_FETCH_LIMIT,
        wait_seconds: float | None = None,
        peek: bool = False,
        agent: str | None = None,
    ) -> Fetched:
        """Unread messages of the agent's mailboxes, oldest first. Takes no lease.
        Errors: `usage`; `timeout` when a wait ends with nothing."""
        return fetching.fetch(
            self.desk,
            mailboxes=mailboxes,
            limit=limit,
            wait_seconds=wait_seconds,
            peek=peek,
            agent=agent,
        )

    def mark_read(self, read: Fetched | Replies) -> None:
        """Move what moves because this was read, forward only."""
        return waiting.mark_read(self.desk, read)

    def claim(
        self,
        thread_id: str | None = None,
        *,
        mailboxes: Sequence[str] = (),
        lease_seconds: float = limits.DEFAULT_LEASE_SECONDS,
        wait_seconds: float = 0,
        agent: str | None = None,
    ) -> Claimed:
        """Take the lease of a thread in one's mailboxes (one's own and those named).
        Errors: `usage`; `nothing_available` or, after a wait, `timeout`; for a named
        thread `not_found`, `wrong_mailbox`, `already_claimed`, `invalid_state`."""
        return claiming.claim(
            self.desk,
            thread_id,
            mailboxes=mailboxes,
            lease_seconds=lease_seconds,
            wait_seconds=wait_seconds,
            agent=agent,
        )

    def renew(self, thread_id: str, token: str, *, lease_seconds: float | None = None) -> Written:
        """Set the lease's end to `lease_seconds` from now (default: its own length).
        Errors: those of every token: `not_found`, `cancelled`, `lease_lost`,
        `invalid_state`."""
        return holding.renew(self.desk, thread_id, token, lease_seconds=lease_seconds)

    def update(
        self,
        thread_id: str,
        token: str,
        *,
        body: str | None = None,
        progress: int | None = None,
        attach: Sequence[str] = (),
        key: str | None = None,
    ) -> Written:
        """Tell the sender how it goes (`progress` in per cent); also renews the lease.
        Errors: `usage`, `key_conflict`, and those of every token."""
        return holding.update(
            self.desk, thread_id, token, body=body, progress=progress, attach=attach, key=key
        )

    def ask(
        self,
        thread_id: str,
        token: str,
        *,
        body: str,
        options: Sequence[str] = (),
        deadline_seconds: float | None = None,
        key: str | None = None,
    ) -> Written:
        """Ask the sender; the thread is blocked until another agent replies, or for
        `deadline_seconds`. Repeating the open question is `already`. Errors: `usage`,
        `key_conflict`, `invalid_state` (another question is open), and those of every
        token."""
        return holding.ask(
            self.desk,
            thread_id,
            token,
            body=body,
            options=options,
            deadline_seconds=deadline_seconds,
            key=key,
        )

    def wait_reply(
        self,
        thread_id: str,
        token: str,
        *,
        after: str | None = None,
        wait_seconds: float = limits.DEFAULT_WAIT_SECONDS,
    ) -> Replies:
        """Block until another agent has written on the thread, keeping the lease alive.
        Errors: `usage`, those of every token, `timeout` (with `data.next_cursor`)."""
        return waiting.wait_reply(
            self.desk, thread_id, token, after=after, wait_seconds=wait_seconds
        )

    def done(
        self,
        thread_id: str,
        token: str,
        *,
        body: str | None = None,
        payload: str | None = None,
        attach: Sequence[str] = (),
        files: Sequence[Stored] = (),
    ) -> Written:
        """Finish with a result. An exact repeat is `already`. Errors: `usage`, and
        those of every token."""
        return holding.done(
            self.desk, thread_id, token, body=body, payload=payload, attach=attach, files=files
        )

    def fail(
        self,
        thread_id: str,
        token: str,
        *,
        body: str,
        retry_in_seconds: float | None = None,
        fatal: bool = False,
        files: Sequence[Stored] = (),
    ) -> Written:
        """Finish badly. With `retry_in_seconds`: hand back for another try while
        deliveries are left. `fatal` tells a scheduler not to retry. An exact repeat is
        `already`. Errors: `usage`, and those of every token."""
        return holding.fail(
            self.desk,
            thread_id,
            token,
            body=body,
            retry_in_seconds=retry_in_seconds,
            fatal=fatal,
            files=files,
        )

    def release(
        self, thread_id: str, token: str, *, delay_seconds: float = 0, body: str | None = None
    ) -> Written:
        """Hand back untouched: the delivery is given back. An exact repeat is
        `already`. Errors: `usage`, and those of every token."""
        return holding.release(self.desk, thread_id, token, delay_seconds=delay_seconds, body=body)

    def attach_output(
        self, thread_id: str, token: str, files: Sequence[Stored]
    ) -> tuple[Artifact, ...]:
        """Attach what a worker's command left behind, also after the command itself has
        ended the lease with this token. Errors: `not_found`, `cancelled`, `lease_lost`."""
        return holding.attach_output(self.desk, thread_id, token, files)

    def list(
        self,
        *,
        states_wanted: Sequence[str] = (),
        mailboxes: Sequence[str] = (),
        senders: Sequence[str] = (),
        limit: int = limits.DEFAULT_LIST_LIMIT,
        after: str | None = None,
        count: bool = False,
        agent: str | None = None,
    ) -> Listing:
        """Threads by age, those that the agent may see. Error `usage`."""
        return reading.list_threads(
            self.desk,
            states_wanted=states_wanted,
            mailboxes=mailboxes,
            senders=senders,
            limit=limit,
            after=after,
            count=count,
            agent=agent,
        )

    def show(
        self,
        thread_id: str,
        *,
        full: bool = False,
        mailboxes: Sequence[str] = (),
        agent: str | None = None,
    ) -> Shown:
        """One thread: `full` gives every message and every body whole. Error
        `not_found`, also for a sealed thread that the agent may not see."""
        return reading.show(self.desk, thread_id, full=full, mailboxes=mailboxes, agent=agent)

    def artifact(
        self, thread_id: str, name: str, *, mailboxes: Sequence[str] = (), agent: str | None = None
    ) -> tuple[Artifact, BinaryIO]:
        """The newest artifact of this name and its content, open for reading. Error
        `not_found` (no such name, or pruned; `details.names` lists what there is)."""
        return reading.artifact(self.desk, thread_id, name, mailboxes=mailboxes, agent=agent)

    def watch(
        self,
        *,
        after: str | None = None,
        thread_id: str | None = None,
        mailboxes: Sequence[str] = (),
        kinds: Sequence[str] = (),
        wait_seconds: float = limits.DEFAULT_WAIT_SECONDS,
        agent: str | None = None,
    ) -> Watch:
        """Events as they are committed, those that the agent may see, for
        `wait_seconds`. Errors: `usage`; `not_found`, also for a sealed thread that the
        agent may not see."""
        return waiting.watch(
            self.desk,
            after=after,
            thread_id=thread_id,
            mailboxes=mailboxes,
            kinds=kinds,
            wait_seconds=wait_seconds,
            agent=agent,
        )

    def stats(self, *, mailboxes: Sequence[str] = (), agent: str | None = None) -> Stats:
        """Threads by mailbox and state, those that the agent may see. Error `usage`."""
        return reading.stats(self.desk, mailboxes=mailboxes, agent=agent)

    def overview(self, *, mailboxes: Sequence[str] = (), agent: str | None = None) -> Overview:
        """What waits for the agent: its leases, unread counts, questions put to it."""
        return reading.overview(self.desk, mailboxes=mailboxes, agent=agent)

    def latest_event(self) -> str:
        """The id of the newest event, "0" when there is none."""
        return waiting.latest_event(self.desk)

    def doctor(self, *, verify: bool = False, fix: bool = False) -> Examined:
        """Check the database and what lies beside it, as of one commit, in the order in
        which it is shown. Errors: `usage` (`fix` inside a transaction); `corrupt`: the
        file itself is damaged; `details.findings` says how, and the hint how to read
        out what can be read."""
        return examining.examine(self.desk, verify=verify, fix=fix)

    def backup(
        self, path: str | os.PathLike[str], *, force: bool = False, artifacts: bool = False
    ) -> BackedUp:
        """Copy the database as of one commit into a new file, whole or not at all.
        Errors: `file_exists`, `usage` (no such folder, the live database itself),
        `disk_full`, `read_only`, `io_error`, `corrupt` (the copy fails its check)."""
        return copying.back_up(self.desk, path, force=force, artifacts=artifacts)

    def export(self) -> Iterator[dict[str, Any]]:
        """Everything as of one commit, sealed threads included, as flat objects with a
        `type`; the last one, of type `end`, counts the others by type. Errors:
        `disk_full` (no room for the copy), `io_error`, `corrupt`."""
        return copying.export(self.desk)

    def prune(
        self,
        older_than_days: float,
        *,
        dry_run: bool = False,
        unread: bool = False,
        agent: str | None = None,
    ) -> Pruned:
        """Remove bodies, payloads, artifacts and keys of threads that have been final
        for at least `older_than_days`; rows and events stay, marked. `dry_run` only
        counts. Errors: `usage` (also inside a transaction), and those of every write."""
        return pruning.prune(
            self.desk, older_than_days, dry_run=dry_run, unread=unread, agent=agent
        )

    # -- for those who follow threads of theirs -----------------------------------------------

    def reap(self, mailboxes: Sequence[str]) -> None:
        """Notice what has run out in these mailboxes; writes only when there is
        something."""
        return reaping.reap(self.desk, mailboxes)

    def anything_due(self, tx: Session, mailboxes: Sequence[str], now: Moment) -> bool:
        """Whether `reap` would write."""
        return reaping.anything_due(self.desk, tx, mailboxes, now)

    def due(
        self, tx: Session, mailboxes: Sequence[str], now: Moment, *, reaps: bool = True
    ) -> Look:
        """When something in these mailboxes falls due by itself, for a wait to wake up
        then."""
        return reaping.due(self.desk, tx, mailboxes, now, reaps=reaps)

    def reap_thread(self, tx: Transaction, thread: Thread) -> Thread:
        """Notice what has run out on one thread; returns it as it is then."""
        return reaping.reap_thread(self.desk, tx, thread)

    def threads(self, thread_ids: Sequence[str]) -> dict[str, Thread]:
        """Several threads by their ids; for the scheduler, which may see all of them."""
        return reading.threads_by_id(self.desk, thread_ids)

    def work_times(self, thread_ids: Sequence[str]) -> dict[str, WorkTimes]:
        """When those of the threads that were ever claimed were worked on; for the
        scheduler."""
        return reading.work_times(self.desk, thread_ids)

    def is_read(self, mailbox: str) -> bool:
        """Whether this mailbox has ever been read."""
        return reading.is_read(self.desk, mailbox)

    def delivered(self, thread_ids: Sequence[str]) -> set[str]:
        """Those of the threads whose mailbox has been read past them; for the
        scheduler."""
        return reading.delivered(self.desk, thread_ids)

    def messages(self, thread_id: str, *, newest: int | None = None) -> tuple[Message, ...]:
        """The messages of a thread, whole: all of them, or the `newest` ones."""
        return reading.messages_of(self.desk, thread_id, newest=newest)

    def message(self, message_id: int) -> Message | None:
        """One message by its id, whole; for the scheduler, which may see all of them."""
        return reading.message(self.desk, message_id)

    def last_message(self, thread_id: str, kind: str) -> Message | None:
        """The newest message of this kind on a thread; for the scheduler."""
        return reading.last_message(self.desk, thread_id, kind)

    def cancel_settles_at(self, thread_id: str) -> int | None:
        """When a cancelled thread's last holder cannot be working on it any more, as
        far as leases tell: the end of its lease in monotonic milliseconds. Error
        `not_found`."""
        return reading.cancel_settles_at(self.desk, thread_id)

    def last_lease(self, thread_id: str) -> LeaseRow | None:
        """The newest lease of a thread, whether it has ended or not; for the scheduler."""
        return reading.last_lease(self.desk, thread_id)
