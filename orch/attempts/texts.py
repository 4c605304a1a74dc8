"""What is written for workers, and of their work: the text of a task, accounts of conflicts, and
the message of a commit."""

from collections.abc import Sequence

MAX_EARLIER_BYTES = 16 * 1024
EARLIER_NAME = "earlier-attempts.txt"

_LEFT_OUT = "(older attempts are left out)\n\n"
_CUT = " … (cut)"
_LEAST_BYTES = 200  # less of an attempt tells nothing
_MOST_SUBJECT, _MOST_WORDS = 100, 4000


def with_earlier(text: str, earlier: Sequence[str], *, attached: bool = False) -> str:
    """The first message of a thread: the task's text, then what earlier attempts came to, oldest
    first, in at most 16 KiB. Where that is not enough, the newest have it; `attached` says that
    all of it is attached to the message as well."""
    if not earlier:
        return text
    return f"{text}\n\nEarlier attempts\n\n{_cut_to_fit(earlier, attached=attached)}"


def fits(earlier: Sequence[str]) -> bool:
    """Whether a task's text has all that earlier attempts came to."""
    return _size("\n\n".join(earlier)) <= MAX_EARLIER_BYTES


def _size(text: str) -> int:
    # A path may have bytes that are not UTF-8 (PEP 383).
    return len(text.encode("utf-8", "surrogateescape"))


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
