"""Plain work: what a worker finds in its worktree, and the thread and the brief that it is sent.

The kind of attempt that every other falls back on; see `kinds`.
"""

import json
from typing import NamedTuple

from inbox_orch.inbox.services import sending
from inbox_orch.inbox.services.desk import Draft
from inbox_orch.shared.ids import new_id
from inbox_orch.shared.store.artifacts import Stored
from inbox_orch.shared.store.engine import Session, Transaction

from ..gates.surroundings import command_environment
from ..git import worktrees
from ..git.worktrees import Filling, Hold
from ..journal import rows as journal_rows
from ..runs import run_rows as runs
from ..runs.config import config_of
from ..runs.desk import Desk, place_of
from ..runs.limits import MAX_DELIVERIES
from ..runs.model import Attempt, Run, Task
from . import moving, verify
from . import rows as attempts
from .equip import Equipment, equip
from .kinds import FirstMessage
from .rows import Details, Text, details_with

MAX_BRIEF_BYTES = 2048

_BESIDE = "(its path is long: it stands beside this brief)"
_RULES = """\
Work only in the worktree. {committing}
Claim:  inbox claim {thread} --mailbox {mailbox} --agent YOU --json   (gives the token)
Then:   export INBOX_THREAD={thread} INBOX_TOKEN=<token>
Keep:   inbox renew | inbox update --progress N --body TEXT
Ask:    inbox ask --body TEXT [--option X]; inbox wait-reply
End:    inbox done --body TEXT | inbox fail --body TEXT | inbox release
Exit 7: the lease is lost, stop. Exit 10: cancelled, stop.
Every call takes --db {database} --db-id {database_id} (or INBOX_DB, INBOX_DB_ID).
"""
_COMMITTING = "Commit there; what is not committed does not count."
_READING = "Read, and change nothing there: what you change is taken back."
_TEXTS = """\
Change nothing there: hand it in. End with `inbox done --body TEXT --payload-file FILE`, as JSON:
{"patch": DIFF}, {"patch": {"artifact": NAME}} (see --attach) or {"edits": [EDIT, ...]}, an EDIT
being {"path", "old", "new"}, {"path", "content"} or {"path", "delete": true}.
DIFF is what `git diff` prints and nothing else; `old` has to be in the file exactly once.\
"""
_HARVESTING = "What you leave uncommitted there is committed for you once you have ended."


class Errand(NamedTuple):
    """What a worker has to know of an attempt: `run` is its name, `task` a key, `attempt` its
    number, `worktree` and `database` are paths. `harvest`: what it leaves is committed for it;
    `reads`: it is to change nothing; `hands_in_text`: what it changes stands in its result."""

    run: str
    task: str
    attempt: int
    thread: str
    mailbox: str
    worktree: str | None
    branch: str | None
    base_commit: str | None
    database: str
    database_id: str
    harvest: bool = False
    reads: bool = False
    hands_in_text: bool = False


def prepare(desk: Desk, run: Run, task: Task, attempt: Attempt, hold: Hold) -> Attempt:
    """Everything that a worker is to find there; returns the attempt with details of it."""
    repository = desk.repository(run)
    if attempt.base_source in ("merge", "attempt"):  # it may be a merge, too
        assert attempt.base_commit is not None
        repository.keep(f"refs/orch/base/{attempt.id}", attempt.base_commit)
    place, config = place_of(desk, attempt), config_of(run)
    if not config.copy and config.setup is None:
        filling = Filling(lfs=config.lfs == "smudge", submodules=config.submodules)
        worktrees.make(repository, place, hold, filling)
        return attempt
    environment = command_environment(desk.database, run, task, attempt, config, place.path)
    details = equip(
        desk.database,
        repository,
        place,
        hold,
        Equipment(config, environment),
        is_wanted=lambda: _is_wanted_still(desk, run, attempt),
    )
    if details == Details():
        return attempt
    kept = attempt.harvest or attempt.hands_in_text
    before = attempt if kept else attempt._replace(details=None)
    return attempt._replace(details=details_with(before, details))


def _is_wanted_still(desk: Desk, run: Run, attempt: Attempt) -> bool:
    with desk.database.snapshot() as snapshot:
        present = attempts.get(snapshot, attempt.id)
        mine = journal_rows.owns_intent(snapshot, attempt.id, "dispatch", desk.database.owner())
    wanted = mine and present is not None and present.state == "allocating"
    return wanted and not is_cancelled(desk, run)


def is_cancelled(desk: Desk, run: Run) -> bool:
    """Whether the run is being cancelled by now, so that nothing of it is handed out."""
    with desk.database.snapshot() as snapshot:
        present = runs.get(snapshot, run.id)
    return present is not None and present.state == "cancelling"


def offer(
    desk: Desk, tx: Transaction, run: Run, task: Task, attempt: Attempt, text: FirstMessage
) -> Attempt:
    """Send the thread and say so, in one transaction; where the change was handed in already, it
    is done at once."""
    handed = attempts.details_of(attempt).text if attempt.hands_in_text else None
    if handed is not None:
        return hand_over(desk, tx, run, task, attempt, handed)
    database, thread_id = desk.database, new_id()
    facts = {
        "run": run.name,
        "task": task.key,
        "attempt": attempt.number,
        "attempt_id": attempt.id,
        "worktree": attempt.worktree_path,
        "branch": attempt.branch,
        "base_commit": attempt.base_commit,
        # For the worker to know: it is orch that ends the attempt then.
        "time_limit_seconds": task.limits.run_seconds,
        "database": database.address,
        "database_id": database.id,
        # A worker that claims by itself has seen no dispatch: the rules go with the thread.
        "brief": brief_of(desk, run, task, attempt, thread_id),
    }
    payload = {name: value for name, value in facts.items() if value is not None}
    content = Draft(text.body)
    if attempt.number > 1:  # then it has more in it than the task, which was checked
        content = desk.bus.desk.draft(text.body, files=text.files)
    outgoing = sending.Outgoing(
        to=attempt.mailbox,
        subject=f"{task.key}: {task.title}"[:200],
        priority=task.priority,
        max_deliveries=MAX_DELIVERIES,
        thread_id=thread_id,
        schema=task.result_schema,
    )
    draft = content._replace(payload=json.dumps(payload))
    sending.open_thread(desk.bus.desk, tx, outgoing, draft, agent=run.leader)
    return moving.hand_out(desk, tx, run, attempt, thread_id)


def hand_over(
    desk: Desk, tx: Transaction, run: Run, task: Task, attempt: Attempt, text: Text
) -> Attempt:
    """The thread of what somebody has handed in without having been sent it: theirs, and done."""
    from inbox_orch.inbox.services import claiming, holding

    outgoing = sending.Outgoing(
        to=text.by, subject=f"{task.key}: {task.title}"[:200], thread_id=new_id()
    )
    content = desk.bus.desk.draft(task.text)
    thread_id = sending.open_thread(desk.bus.desk, tx, outgoing, content, agent=run.leader).id
    token = claiming.claim(desk.bus.desk, thread_id, agent=text.by).lease.token
    assert token is not None
    key = "patch" if text.way == "diff" else "edits"
    holding.done(
        desk.bus.desk,
        thread_id,
        token,
        body=f"Handed in as {text.name}.",
        payload=json.dumps({key: {"artifact": text.name}}),
        files=(Stored(text.name, text.sha256, text.size),),
    )
    return moving.hand_out(desk, tx, run, attempt, thread_id)


def brief_of(
    desk: Desk, run: Run, task: Task, attempt: Attempt, thread_id: str, *, reads: bool = False
) -> str:
    """What the worker of an attempt is told; see `brief` and `Errand`."""
    errand = Errand(
        run=run.name,
        task=task.key,
        attempt=attempt.number,
        thread=thread_id,
        mailbox=attempt.mailbox,
        worktree=attempt.worktree_path,
        branch=attempt.branch,
        base_commit=attempt.base_commit,
        database=desk.database.address,
        database_id=desk.database.id,
        harvest=attempt.harvest,
        reads=reads,
        hands_in_text=attempt.hands_in_text,
    )
    return brief(errand)


def brief(errand: Errand) -> str:
    """Ids, paths, rules and the commands, in at most 2 KiB: paths that are too long for that
    stand only beside the brief, in the payload and in the output of `dispatch`."""
    text = _written(errand)
    if _size(text) > MAX_BRIEF_BYTES:
        worktree = None if errand.worktree is None else _BESIDE
        text = _written(errand._replace(worktree=worktree, database=_BESIDE))
    assert _size(text) <= MAX_BRIEF_BYTES
    return text


def _written(errand: Errand) -> str:
    lines = ["Task {task} of run {run}, attempt {attempt}, thread {thread}."]
    if errand.worktree is not None:
        lines += ["Worktree: {worktree}", "Branch: {branch}, from {base_commit}"]
    rules = _RULES if errand.worktree is not None else _RULES.split("\n", 1)[1]
    committing = _HARVESTING if errand.harvest else _COMMITTING
    if errand.hands_in_text:
        committing = _TEXTS
    if errand.reads:
        committing = _READING
    return "\n".join([*lines, rules]).format(**errand._asdict(), committing=committing)


def _size(text: str) -> int:
    # A path may have bytes that are not UTF-8 (PEP 383).
    return len(text.encode("utf-8", "surrogateescape"))


def take_in(desk: Desk, run: Run) -> int:
    """Decide on what workers say is done; see `verify.verify`."""
    return verify.verify(desk, run)


def thread_behind(tx: Session, attempt: Attempt) -> str | None:
    """The thread on which events about an attempt stand."""
    return attempt.thread_id
