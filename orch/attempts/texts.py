"""What a worker is given to read: the brief and the task text."""

from collections.abc import Sequence
from typing import NamedTuple

MAX_BRIEF_BYTES = 2048
MAX_EARLIER_BYTES = 16 * 1024
EARLIER_NAME = "earlier-attempts.txt"

_LEFT_OUT = "(older attempts are left out)\n\n"
_CUT = " … (cut)"
_LEAST_BYTES = 200  # less of an attempt tells nothing
_MOST_SUBJECT, _MOST_WORDS = 100, 4000
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
_HARVESTING = "What you leave uncommitted there is committed for you once you have ended."


class Errand(NamedTuple):
    """What a worker has to know of an attempt: `run` is its name, `task` a key, `attempt` its
    number, `worktree` and `database` are paths. `harvest`: what it leaves is committed for it."""

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
    return "\n".join([*lines, rules]).format(**errand._asdict(), committing=committing)


def _size(text: str) -> int:
    # A path may have bytes that are not UTF-8 (PEP 383).
    return len(text.encode("utf-8", "surrogateescape"))


def task_text(title: str, body: str, earlier: Sequence[str], *, attached: bool = False) -> str:
    """The first message of a thread: the task, then what earlier attempts came to, oldest first,
    in at most 16 KiB. Where that is not enough, the newest have it; `attached` says that all of
    it is attached to the message as well."""
    text = f"{title}\n\n{body}" if body else title
    if not earlier:
        return text
    return f"{text}\n\nEarlier attempts\n\n{_cut_to_fit(earlier, attached=attached)}"


def fits(earlier: Sequence[str]) -> bool:
    """Whether a task's text has all that earlier attempts came to."""
    return _size("\n\n".join(earlier)) <= MAX_EARLIER_BYTES


def _cut_to_fit(earlier: Sequence[str], *, attached: bool) -> str:
    note = f"(All of this, whole, is attached as {EARLIER_NAME}.)\n\n" if attached else ""
    whole = note + "\n\n".join(earlier)
    if _size(whole) <= MAX_EARLIER_BYTES:
        return whole
    room = MAX_EARLIER_BYTES - _size(note) - _size(_LEFT_OUT)
    kept: list[str] = []
    for section in reversed(earlier):
        if room < _LEAST_BYTES:
            kept.append(_LEFT_OUT.strip())
            break
        part = section if _size(section) <= room else _beginning(section, room)
        kept.append(part)
        room -= _size(part) + 2
    return note + "\n\n".join(reversed(kept))


def _beginning(text: str, most_bytes: int) -> str:
    cut = text.encode("utf-8", "surrogateescape")[: most_bytes - len(_CUT.encode())]
    return cut.decode("utf-8", "ignore") + _CUT


def commit_message(title: str, words: str) -> str:
    """What the commit says that is made of what a worker left: the title of its task on one line,
    and then the worker's last words; both cut, and without what no commit can hold."""
    subject = " ".join(_plain(title).split())
    if len(subject) > _MOST_SUBJECT:
        subject = subject[: _MOST_SUBJECT - 2] + " …"
    body = _plain(words).strip()
    if len(body) > _MOST_WORDS:
        body = body[:_MOST_WORDS] + _CUT
    lines = "\n".join(line.rstrip() for line in body.split("\n"))
    return f"{subject}\n\n{lines}\n" if lines else f"{subject}\n"


def _plain(text: str) -> str:
    """Text without control characters and halves of characters; its lines end as git's do."""
    lined = text.replace("\r\n", "\n").replace("\r", "\n")
    whole = lined.encode("utf-8", "replace").decode()
    return "".join(c for c in whole if c in "\n\t" or c.isprintable() or c.isspace())


def conflict_account(onto: str, paths: Sequence[str], head: str, branch: str | None) -> str:
    """What the next worker has to know of a conflict, and how to go on."""
    return (
        f"Accepted, but it does not merge with what was integrated before it ({onto}), which your"
        f" branch starts from. They conflict in: {', '.join(paths)}.\n"
        f"Bring that work in and resolve the conflict: git merge {head}"
        + (f"  (it is branch {branch})" if branch else "")
        + "\nThen see that everything still works, and commit the merge."
    )
