"""The one error family, and what the parts of the program name: error codes, kinds of events.

Every failure that a caller can meet is an `InboxOrchError` with a stable `code`. Each part names
its own codes and kinds in its module `vocabulary` (`ERRORS` by their codes, `EVENTS`); those of
`shared` are here. The others are known by the names of their modules alone, and loaded when they
are needed: most calls meet no error, and what the machine refuses has a code of `shared`.
`EXIT_CODES` has all of them with their exit codes, the contract of both commands; see
`docs/exit-codes.md`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

EXIT_INTERRUPTED = 130
EXIT_READER_GONE = 141
EXIT_TERMINATED = 143
# `data` stands beside the error: the cursor to go on from, the outcome, the whole result.
EXITS_WITH_DATA = frozenset({8, 11})


class Code:
    """What an error code stands for: the exit code, the place among those of one exit code in
    lists for people, and what it means. `retryable`: the same call may succeed later with nothing
    else changed."""

    def __init__(
        self, exit_code: int, place: int, meaning: str, *, retryable: bool = False
    ) -> None:
        self.exit_code = exit_code
        self.place = place
        self.meaning = meaning
        self.retryable = retryable


ERRORS = {
    "internal": Code(1, 10, "a bug; `INBOX_DEBUG=1` shows where, please report it"),
    "output_failed": Code(
        1,
        20,
        "standard output is closed or full; the work was done wholly or not at all",
    ),
    "outcome_unknown": Code(
        1,
        30,
        "the disk failed at the commit; the change was made wholly or not at all, and it "
        "cannot be known which",
    ),
    "usage": Code(2, 10, "an option, an argument, a body or a file is not as it must be"),
    "not_found": Code(
        3,
        10,
        "no such thread, artifact, run, task, …; a sealed thread may count as missing",
    ),
    "key_conflict": Code(4, 40, "the `--key` was used for another request"),
    "busy": Code(
        5,
        10,
        "others held the database for longer than `INBOX_BUSY_TIMEOUT`, or cleared away what "
        "the call was about to name",
        retryable=True,
    ),
    "no_database": Code(6, 10, "there is none where the rules lead; `inbox init` makes one"),
    "wrong_database": Code(
        6,
        20,
        "another database than `--db-id` says, or another program's file",
    ),
    "schema_newer": Code(6, 30, "a newer release has changed the database; use that one"),
    "read_only": Code(6, 40, "a file or folder cannot be read or written by this user"),
    "disk_full": Code(6, 50, "no space left", retryable=True),
    "io_error": Code(6, 60, "the operating system could not read or write"),
    "unsafe_filesystem": Code(
        6,
        70,
        "SQLite's write-ahead log is not safe there; `init --force` overrides",
    ),
    "no_boot_id": Code(6, 80, "the system does not tell one boot from another (no /proc)"),
    "extra_missing": Code(
        6,
        90,
        "an optional part is not installed; the hint has the command that does it",
    ),
    "corrupt": Code(6, 100, "the file is damaged, or is no database"),
    "unsafe_link": Code(
        9,
        50,
        "a symbolic link is where only a file or folder of the program's own may be",
    ),
    "foreign_owner": Code(
        9,
        60,
        "the database was found by searching, and belongs to another user; `--db` overrides",
    ),
    "file_exists": Code(9, 70, "a file is there already and would be replaced"),
    "degraded": Code(11, 30, "some parts are there, some are missing; `data` says which"),
    "interrupted": Code(EXIT_INTERRUPTED, 10, "SIGINT (Ctrl-C)", retryable=True),
    "terminated": Code(EXIT_TERMINATED, 10, "SIGTERM"),
}
"""The codes of `shared`, on which all parts stand."""

EXIT_MEANINGS: dict[int, str] = {
    0: "done (an empty list is done, too)",
    1: "a bug in the program, the output could not be written, or the disk failed at a commit",
    2: "wrong call",
    3: "no such thing",
    4: "conflict with the present state",
    5: "busy, try again",
    6: "the environment",
    7: "the lease is no longer yours",
    8: "not yet: nothing came before the deadline, nothing to claim",
    9: "refused for safety",
    10: "the thread that you hold was cancelled",
    11: "the result is there, and it is not a plain success",
    130: "interrupted",
    141: "the reader of the output went away",
    143: "terminated",
}


PARTS = (
    "inbox.domain",
    "orch.git",
    "orch.runs",
    "orch.patches",
    "orch.gates",
    "orch.attempts",
    "orch.integration",
    "orch.cleanup",
    "orch.purge",
    "orch.stages",
    "orch.council",
    "orch.leader",
)
"""The parts with a vocabulary. Each may also use that of the parts before it."""


def code_named(name: str) -> Code | None:
    """What a code stands for; None when no part names it. Loads no more than it has to."""
    if name in ERRORS:
        return ERRORS[name]
    for part in PARTS:
        named: dict[str, Code] = vocabulary(part).ERRORS
        if name in named:
            return named[name]
    return None


def error_codes() -> dict[str, Code]:
    """Every code with what it stands for, by exit code and place."""
    found = dict(ERRORS)
    for part in PARTS:
        found |= vocabulary(part).ERRORS
    return dict(sorted(found.items(), key=lambda item: (item[1].exit_code, item[1].place)))


def event_kinds() -> dict[str, str]:
    """Every kind of event, with the part that names it."""
    return {kind: part for part in PARTS for kind in vocabulary(part).EVENTS}


def vocabulary(part: str) -> Any:
    """The module in which a part names its codes and kinds."""
    from importlib import import_module

    return import_module(f"inbox_orch.{part}.vocabulary")


if TYPE_CHECKING:
    EXIT_CODES: dict[str, int]
else:

    def __getattr__(name: str) -> Any:
        if name == "EXIT_CODES":
            return {code: each.exit_code for code, each in error_codes().items()}
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class InboxOrchError(Exception):
    """A failure that the caller can act on.

    `code` is a key of `EXIT_CODES`. `message` says what is wrong, `hint` what to do next.
    `details` holds machine-readable facts. `data` is the result that stands beside the error
    on exits 8 and 11 (the cursor to go on from, the outcome).
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        details: Mapping[str, Any] | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        found = code_named(code)
        assert found is not None, f"error code {code!r} is not in the table"
        super().__init__(message)
        self.code = code
        self._stands_for = found
        self.message = message
        self.hint = hint
        self.details = dict(details or {})
        self.data = dict(data) if data is not None else None

    @property
    def exit_code(self) -> int:
        """The process exit code that belongs to `code`."""
        return self._stands_for.exit_code

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed later with nothing else changed."""
        return self._stands_for.retryable

    def as_json(self) -> dict[str, Any]:
        """The `error` object of the JSON envelope."""
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "retryable": self.retryable,
            "details": self.details,
        }


def usage(message: str, *, hint: str | None = None, **details: Any) -> InboxOrchError:
    """A call that was wrong in itself: exit 2, nothing was changed."""
    return InboxOrchError("usage", message, hint=hint, details=details)


def not_found(kind: str, identifier: str, *, hint: str | None = None) -> InboxOrchError:
    """There is no `kind` called `identifier`: exit 3."""
    return InboxOrchError(
        "not_found",
        f"there is no {kind} {identifier!r}",
        hint=hint,
        details={"kind": kind, "id": identifier},
    )
