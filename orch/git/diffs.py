"""What a commit, or a working tree as it stands, changes against a commit: git's own words.

Only reads: no lock of git's is taken, no program of the user's config is started.
"""

from collections.abc import Callable
from typing import NamedTuple

from .commands import git, git_bytes
from .failures import shown
from .repository import Repository
from .standing import require_here

_OPTIONS = ("--no-color", "--no-ext-diff", "--no-textconv")


class Span(NamedTuple):
    """From a commit to another one, or, without `head`, to the working tree `folder`."""

    folder: str
    base: str
    head: str | None

    @property
    def commits(self) -> tuple[str, ...]:
        """What git is given."""
        return (self.base,) if self.head is None else (self.base, self.head)


class ChangedFile(NamedTuple):
    """One file, and how many lines it gained and lost; None for a binary one."""

    path: str
    added: int | None
    removed: int | None


class _Sink:
    """A file for git to write to, which hands each piece on."""

    def __init__(self, hand_on: Callable[[bytes], None]) -> None:
        self._hand_on = hand_on

    def write(self, piece: bytes) -> int:
        """Hand on a piece."""
        self._hand_on(piece)
        return len(piece)


def require_readable(repository: Repository, span: Span) -> None:
    """Git in the working tree of a span looks at that folder. Error `git_failed`."""
    if span.head is None:
        require_here(span.folder, repository.common_directory)


def write_diff(span: Span, hand_on: Callable[[bytes], None], *, stat: bool) -> None:
    """The whole diff, or `git diff --stat`, a piece at a time. Error `git_failed`."""
    form = ("--stat=80",) if stat else ("--patch",)
    words = ("diff", *form, *_OPTIONS, "--end-of-options", *span.commits, "--")
    sink = _Sink(hand_on)
    git_bytes(span.folder, *words, output=sink)  # type: ignore[arg-type]


def changed_files(span: Span) -> list[ChangedFile]:
    """Every file that differs, by its path; a renamed one is two. Error `git_failed`."""
    _, text = git(
        span.folder,
        *("diff", "--numstat", "-z", "--no-renames", *_OPTIONS),
        *("--end-of-options", *span.commits, "--"),
        reads=True,
    )
    rows = (row.split("\t", 2) for row in text.split("\0") if row)
    return [ChangedFile(shown(path), _number(plus), _number(minus)) for plus, minus, path in rows]


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None
