"""`Bus`: the public Python API, for long-lived processes and for `orch`.

A `Bus` belongs to the thread and process that opened it; open one for each. A page: what a method
does stands in the module that it names, which is loaded when it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inbox_orch.shared.later import Later
from inbox_orch.shared.store.events import Matching
from inbox_orch.shared.store.sqlite.connecting import DEFAULT_BUSY_SECONDS, Opening

from .domain import limits
from .services.desk import Desk

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, BinaryIO

    from inbox_orch.shared.clock import Clock, Moment
    from inbox_orch.shared.store.artifacts import ArtifactStore, Stored
    from inbox_orch.shared.store.engine import Engine, Session, Transaction
    from inbox_orch.shared.store.waits import Look

    from .domain.model import Artifact, Holders, Message, Thread, WorkTimes, Written
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
    from .services import standing as judging
    from .services.reading import Listing, Overview, Shown, Stats
    from .services.standing import Standing
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
    judging = Later("inbox_orch.inbox.services.standing")


class Bus:
    """An open bus; a failure is an `InboxOrchError` with a `code` of the command line.

    The modules that are called say more. The errors of every write are not repeated below, nor are
    those of every token: `not_found`, `cancelled`, `lease_lost`, `invalid_state`.
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
        """Open the database at `path`, or the one that the working directory leads to, to act as
        `agent`. `database_id` refuses any other one; for the rest see `Opening`. Errors:
        `no_database`, `wrong_database`, `schema_newer`, `corrupt`, `read_only`, `usage`."""
        opening = Opening(clock, busy_seconds, notice, looks, perhaps_alone)
        return cls(Desk.open(path, agent=agent, database_id=database_id, opening=opening))

    def close(self) -> None:
        """Close the database."""
        self.desk.close()

    def __enter__(self) -> Bus:
        self.database.check_usable()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @property
    def database(self) -> Engine:
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
        """Join several calls, none of them a wait, into one: all of them happen, or none."""
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
        schema: str | None = None,
    ) -> Written:
        """Open a thread. `schema` is the text of a JSON Schema that `done` judges the result by.
        Errors: `usage`, `key_conflict`, `unknown_recipient`."""
        outgoing = sending.Outgoing(
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
            thread_id=thread_id,
            files=files,
            schema=schema,
        )
        return sending.send(self.desk, outgoing, key=key, agent=agent)

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
        """Write on a thread, or answer on it. Errors: `usage`, `not_found`, `key_conflict`."""
        return sending.reply(
            self.desk, thread_id, body=body, attach=attach, key=key, agent=agent, files=files
        )

    def cancel(
        self, thread_id: str, *, body: str | None = None, agent: str | None = None
    ) -> Written:
        """Stop a thread, whoever holds it. Errors: `not_found`, `invalid_state` (it is over)."""
        return sending.cancel(self.desk, thread_id, body=body, agent=agent)

    def unseal(self, thread_id: str, *, agent: str | None = None) -> Written:
        """Open a sealed thread to all. Errors: `not_found`, `invalid_state` (not the sender)."""
        return sending.unseal(self.desk, thread_id, agent=agent)

    def fetch(
        self,
        *,
        mailboxes: Sequence[str] = (),
        limit: int = limits.DEFAULT_FETCH_LIMIT,
        wait_seconds: float | None = None,
        peek: bool = False,
        agent: str | None = None,
    ) -> fetching.Fetched:
        """Unread messages of the agent's mailboxes, oldest first. Errors: `usage`, `timeout`."""
        return fetching.fetch(
            self.desk, mailboxes, limit=limit, wait_seconds=wait_seconds, peek=peek, agent=agent
        )

    def mark_read(self, read: fetching.Fetched | waiting.Replies) -> None:
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
    ) -> claiming.Claimed:
        """Take the lease of a thread. Errors: `usage`, `nothing_available`, `timeout`; for a named
        one `not_found`, `wrong_mailbox`, `already_claimed`, `invalid_state`."""
        return claiming.claim(
            self.desk,
            thread_id,
            mailboxes=mailboxes,
            lease_seconds=lease_seconds,
            wait_seconds=wait_seconds,
            agent=agent,
        )

    def renew(self, thread_id: str, token: str, *, lease_seconds: float | None = None) -> Written:
        """Set the lease's end to `lease_seconds` from now, or to its own length. Error `usage`."""
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
        """Tell the sender how it goes, and renew the lease. Errors: `usage`, `key_conflict`."""
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
        """Ask the sender, for at most `deadline_seconds`. Errors: `usage`, `key_conflict`."""
        question = holding.Question(body, options, deadline_seconds)
        return holding.ask(self.desk, thread_id, token, question, key=key)

    def wait_reply(
        self,
        thread_id: str,
        token: str,
        *,
        after: str | None = None,
        wait_seconds: float = limits.DEFAULT_WAIT_SECONDS,
    ) -> waiting.Replies:
        """Wait until somebody else has written; keeps the lease. Errors: `usage`, `timeout`."""
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
        """Finish with a result. Errors: `usage`, `result_refused` (by the thread's schema)."""
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
        """Finish badly, or hand back for another try. Error `usage`."""
        failure = holding.Failure(body, retry_in_seconds, fatal, files)
        return holding.fail(self.desk, thread_id, token, failure)

    def release(
        self, thread_id: str, token: str, *, delay_seconds: float = 0, body: str | None = None
    ) -> Written:
        """Hand back untouched: the delivery is given back. Error `usage`."""
        return holding.release(self.desk, thread_id, token, delay_seconds=delay_seconds, body=body)

    def standing(self, thread_id: str, token: str) -> Standing:
        """What a token is worth now: held, overdue, ended, cancelled, lost or unknown."""
        return judging.standing(self.desk, thread_id, token)

    def attach_output(
        self, thread_id: str, token: str, files: Sequence[Stored]
    ) -> tuple[Artifact, ...]:
        """Attach what a worker's command left behind, also when it has ended the lease."""
        return holding.attach_output(self.desk, thread_id, token, files)

    def attach(
        self,
        subject: str,
        files: Sequence[Stored],
        *,
        body: str,
        result: str,
        sealed: bool = False,
        agent: str | None = None,
    ) -> Written:
        """Keep files on a new thread of the agent's own that is done at once. Error `usage`."""
        return sending.attach(
            self.desk, subject, files, body=body, result=result, sealed=sealed, agent=agent
        )

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
        wanted = reading.Wanted(states_wanted, mailboxes, senders)
        return reading.list_threads(
            self.desk, wanted, limit=limit, after=after, count=count, agent=agent
        )

    def show(
        self,
        thread_id: str,
        *,
        full: bool = False,
        mailboxes: Sequence[str] = (),
        agent: str | None = None,
    ) -> Shown:
        """One thread, with `full` whole. Error `not_found` (also when it is not to be seen)."""
        return reading.show(self.desk, thread_id, full=full, mailboxes=mailboxes, agent=agent)

    def artifact(
        self, thread_id: str, name: str, *, mailboxes: Sequence[str] = (), agent: str | None = None
    ) -> tuple[Artifact, BinaryIO]:
        """The newest artifact of this name, and its content to be read. Error `not_found`."""
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
    ) -> waiting.Watch:
        """Visible events as they come, for `wait_seconds`. Errors: `usage`, `not_found`."""
        matching = Matching(thread_id, mailboxes=mailboxes, kinds=kinds)
        return waiting.watch(
            self.desk, matching, after=after, wait_seconds=wait_seconds, agent=agent
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

    def doctor(self, *, verify: bool = False, fix: bool = False) -> examining.Examined:
        """Check the database and what lies beside it. Errors: `usage`, `corrupt`."""
        return examining.examine(self.desk, verify=verify, fix=fix)

    def backup(
        self, path: str | os.PathLike[str], *, force: bool = False, artifacts: bool = False
    ) -> copying.BackedUp:
        """Copy the database, whole, to a new file. Errors: `usage`, `file_exists`, `corrupt`."""
        return copying.back_up(self.desk, path, force=force, artifacts=artifacts)

    def export(self) -> Iterator[dict[str, Any]]:
        """Everything as of one commit, as objects. Errors: `disk_full`, `io_error`, `corrupt`."""
        return copying.export(self.desk)

    def prune(
        self,
        older_than_days: float,
        *,
        dry_run: bool = False,
        unread: bool = False,
        agent: str | None = None,
    ) -> pruning.Pruned:
        """Remove the content of threads final for `older_than_days` or more. Error `usage`."""
        return pruning.prune(
            self.desk, older_than_days, dry_run=dry_run, unread=unread, agent=agent
        )

    # -- for the scheduler, which follows threads of its own and may see all of them -----------

    def reap(self, mailboxes: Sequence[str]) -> None:
        """Notice what has run out in these mailboxes; writes only when there is something."""
        return reaping.reap(self.desk, mailboxes)

    def anything_due(self, tx: Session, mailboxes: Sequence[str], now: Moment) -> bool:
        """Whether `reap` would write."""
        return reaping.anything_due(self.desk, tx, mailboxes, now)

    def due(
        self, tx: Session, mailboxes: Sequence[str], now: Moment, *, reaps: bool = True
    ) -> Look:
        """When something in these mailboxes falls due by itself, to wake up then."""
        return reaping.due(self.desk, tx, mailboxes, now, reaps=reaps)

    def reap_thread(self, tx: Transaction, thread: Thread) -> Thread:
        """Notice what has run out on one thread; returns it as it is then."""
        return reaping.reap_thread(self.desk, tx, thread)

    def threads(self, thread_ids: Sequence[str]) -> dict[str, Thread]:
        """Several threads by their ids."""
        return reading.threads_by_id(self.desk, thread_ids)

    def work_times(self, thread_ids: Sequence[str]) -> dict[str, WorkTimes]:
        """When those of the threads that were ever claimed were worked on."""
        return reading.work_times(self.desk, thread_ids)

    def holders(self, thread_ids: Sequence[str]) -> dict[str, Holders]:
        """Who has held those of the threads that were ever claimed."""
        return reading.holders(self.desk, thread_ids)

    def is_read(self, mailbox: str) -> bool:
        """Whether this mailbox has ever been read."""
        return reading.is_read(self.desk, mailbox)

    def delivered(self, thread_ids: Sequence[str]) -> set[str]:
        """Those of the threads that somebody has read the mailbox past."""
        return reading.delivered(self.desk, thread_ids)

    def messages(self, thread_id: str, *, newest: int | None = None) -> tuple[Message, ...]:
        """The messages of a thread, whole: all of them, or the `newest` ones."""
        return reading.messages_of(self.desk, thread_id, newest=newest)

    def message(self, message_id: int) -> Message | None:
        """One message by its id, whole."""
        return reading.message(self.desk, message_id)

    def last_message(self, thread_id: str, kind: str) -> Message | None:
        """The newest message of this kind on a thread."""
        return reading.last_message(self.desk, thread_id, kind)

    def cancel_settles_at(self, thread_id: str) -> int | None:
        """When a cancelled thread's last lease is over (monotonic ms). Error `not_found`."""
        return reading.cancel_settles_at(self.desk, thread_id)

    def last_lease(self, thread_id: str) -> LeaseRow | None:
        """The newest lease of a thread, whether it has ended or not."""
        return reading.last_lease(self.desk, thread_id)
