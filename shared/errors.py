"""The one error family and the one table from error code to exit code.

Every failure that a caller can meet is an `InboxOrchError` with a stable `code`.
The table is the contract of both commands; see `docs/exit-codes.md`.
"""

from collections.abc import Mapping
from typing import Any

EXIT_INTERRUPTED = 130
EXIT_READER_GONE = 141
EXIT_TERMINATED = 143
# `data` stands beside the error: the cursor to go on from, the outcome, the whole result.
EXITS_WITH_DATA = frozenset({8, 11})

EXIT_CODES: dict[str, int] = {
    "internal": 1,
    "output_failed": 1,
    "outcome_unknown": 1,
    "usage": 2,
    "not_found": 3,
    "already_claimed": 4,
    "wrong_mailbox": 4,
    "invalid_state": 4,
    "key_conflict": 4,
    "unknown_recipient": 4,
    "cycle": 4,
    "dep_not_in_base": 4,
    "base_conflict": 4,
    "busy": 5,
    "no_database": 6,
    "wrong_database": 6,
    "schema_newer": 6,
    "read_only": 6,
    "disk_full": 6,
    "io_error": 6,
    "unsafe_filesystem": 6,
    "no_boot_id": 6,
    "extra_missing": 6,
    "corrupt": 6,
    "git_missing": 6,
    "git_failed": 6,
    "worker_failed": 6,
    "lease_lost": 7,
    "timeout": 8,
    "nothing_available": 8,
    "dirty_repository": 9,
    "unmerged_work": 9,
    "live_attempt": 9,
    "unsafe_removal": 9,
    "unsafe_link": 9,
    "foreign_owner": 9,
    "file_exists": 9,
    "opposed": 9,
    "cancelled": 10,
    "run_unsuccessful": 11,
    "needs_decision": 11,
    "degraded": 11,
    "checks_failed": 11,
    "no_quorum": 11,
    "work_rejected": 11,
    "problems_found": 11,
    "interrupted": EXIT_INTERRUPTED,
    "terminated": EXIT_TERMINATED,
}

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

_RETRYABLE = frozenset({"busy", "timeout", "nothing_available", "disk_full", "interrupted"})


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
        assert code in EXIT_CODES, f"error code {code!r} is not in the table"
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.details = dict(details or {})
        self.data = dict(data) if data is not None else None

    @property
    def exit_code(self) -> int:
        """The process exit code that belongs to `code`."""
        return EXIT_CODES[self.code]

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed later with nothing else changed."""
        return self.code in _RETRYABLE

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
