"""What a worker without a file system hands in: a diff, or edits, in its result. It becomes a tree
and a commit of the worker's, is judged, and only then brought into the attempt's worktree.

Done again after a crash it comes to the same: text, author and time stand in the result.
"""

import json
from collections.abc import Callable
from typing import NamedTuple

from inbox_orch.inbox.domain.model import Message
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store import kept_files
from inbox_orch.shared.store.artifacts import Stored

from ..git import bringing
from ..git import signed as signing
from ..git.commands import output_of
from ..git.integrating import Move
from ..git.masking import masked
from ..git.repository import Repository
from ..git.signed import Signed
from ..git.unfit import NotApplied
from ..git.unified import MAX_TEXT_BYTES
from ..git.worktrees import Hold
from ..patches import given as handing
from ..patches import hand_in
from ..patches.given import Given, Refused
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.model import Attempt, Run, Task
from ..runs.secrets import secrets_of
from . import rows, texts

NAMES = {"diff": "handed-in.diff", "edits": "handed-in.json"}
"""How the file is called that has what was handed in, by its way."""
NOTHING = "the result has neither `patch` nor `edits` in its payload"


class Handed(NamedTuple):
    """What was handed in, with the message that it came with; `words` are those beside it."""

    given: Given
    said: Message
    words: str


class Brought(NamedTuple):
    """What came of it: `stored` is the text as it is kept, None where there was none; `made` the
    commit that it became, if it did; and why it was not brought in, with the code of that error
    (see `NotApplied`)."""

    way: str = "diff"
    author: str = ""
    stored: Stored | None = None
    made: rows.Brought | None = None
    code: str | None = None
    reason: str | None = None


def handed_in(desk: Desk, thread_id: str) -> Handed:
    """What the last result of a thread has: in its payload, or in its body as JSON, or in an
    artifact that one of them names. Raises `NotApplied`, code `patch_format`. Error `io_error`."""
    said = desk.bus.last_message(thread_id, "result")
    try:
        if said is None:
            raise Refused(NOTHING)
        for text, words in ((said.payload, said.body), (said.body, "")):
            payload = _payload(text)
            if payload is not None:
                return Handed(_given(desk, thread_id, payload), said, words or "")
        raise Refused(NOTHING)
    except Refused as refused:
        raise NotApplied("patch_format", str(refused)) from refused


def _payload(text: str | None) -> dict[str, object] | None:
    try:
        value = json.loads(text or "null")
    except (ValueError, RecursionError):
        return None
    there = isinstance(value, dict) and any(key in value for key in handing.KEYS)
    return value if there else None


def _given(desk: Desk, thread_id: str, payload: dict[str, object]) -> Given:
    name = handing.named_artifact(payload)
    if name is None:
        return handing.of_payload(payload)
    try:
        artifact, file = desk.bus.artifact(thread_id, name, agent=_opener(desk, thread_id))
    except InboxOrchError as error:
        if error.code != "not_found":
            raise
        raise Refused(f"it names an artifact: {error.message}") from error
    with file:
        if artifact.bytes > MAX_TEXT_BYTES:
            size = f"{artifact.bytes} bytes, and at most {MAX_TEXT_BYTES} are taken"
            raise Refused(f"the artifact {name!r} has {size}")
        return handing.of_file(file.read())


def _opener(desk: Desk, thread_id: str) -> str:
    return str(desk.bus.threads([thread_id])[thread_id].sender)


def commit_made(
    desk: Desk, about: tuple[Run, Task], handed: Handed, repository: Repository, head: str
) -> tuple[str, tuple[str, ...]]:
    """The commit of what was handed in, on top of another, and what was done to make it. Raises
    `NotApplied`. Errors: `git_failed`, `disk_full`, `read_only`, `io_error`."""
    run, task = about
    tree = output_of(repository.path, "rev-parse", f"{head}^{{tree}}")
    made = hand_in.made(repository, tree, handed.given)
    secrets = secrets_of(config_of(run))
    message = texts.commit_message(masked(task.title, secrets), masked(handed.words, secrets))
    words = Signed(handed.said.sender, handed.said.created_at // 1000, message)
    return signing.commit_of(repository, made.tree, head, words), made.notes


def bring_in(
    desk: Desk,
    about: tuple[Run, Task, Attempt],
    head: str,
    held: tuple[Repository, Hold],
    judged: Callable[[rows.Brought], str | None],
) -> Brought:
    """Bring what an attempt's worker has handed in into its worktree, which is at `head`, or there
    already. `judged` says why a commit may not be brought in. Errors: those of git where this
    machine is the cause, of storing a file, and of every write."""
    run, task, attempt = about
    repository, hold = held
    done = Brought()
    try:
        handed = handed_in(desk, str(attempt.thread_id))
        stored = kept(desk, attempt, handed.given)
        done = Brought(handed.given.way, handed.said.sender, stored)
        commit, notes = commit_made(desk, (run, task), handed, repository, head)
        made = rows.Brought(commit, stored.sha256, done.way, notes)
        done = done._replace(made=made)
        objection = judged(made)
        if objection is not None:
            return done._replace(code="policy_denied", reason=objection)
        move = Move(str(attempt.branch), commit, head)
        bringing.bring(repository, str(attempt.worktree_path), hold, move)
    except NotApplied as refused:
        return done._replace(code=refused.code, reason=str(refused)[:1000])
    return done


def kept(desk: Desk, attempt: Attempt, given: Given) -> Stored:
    """Keep a text as it came, for as long as the database is there. Errors: those of storing a
    file, and of every write."""
    stored = desk.bus.artifacts.add_bytes(NAMES[given.way], given.raw)
    with desk.database.snapshot() as snapshot:
        if kept_files.has(snapshot, stored.sha256, attempt.id):
            return stored
    with desk.database.transaction() as tx:
        kept_files.keep(tx, stored, attempt.id, "handed_in", tx.now.wall_ms)
    return stored
