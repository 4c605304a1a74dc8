"""A gate as a value: a command that has to succeed in a folder before work goes on. Pure.

Starts nothing (see `running`). Who has work checked or set up says here what is to be run.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes.endings import Ending

from ..git.masking import masked
from ..runs.limits import DEFAULT_CHECK_SECONDS, FOREIGN_SECONDS
from ..runs.model import Limits
from .checks import Checked, brief_command

SLACK_SECONDS = 60.0
"""So much longer than its limit a check may take until it is ended and written down."""


class GateSpec(NamedTuple):
    """What is to be run, where, with which environment, and for how long at most.

    `repository` is the shared git directory to which the folder has to belong; None where there
    is no worktree that git could be asked about. `secrets` are masked in the command and in its
    output. `artifact` is the name under which the output is kept; None keeps none. `words` are
    run as they are, without a shell; `command` only tells of them then. `listens`: what is handed
    back of what it says, beside what is kept: `stdout`, `all`, or None for nothing.
    """

    command: str
    folder: str
    repository: str | None
    environment: Mapping[str, str]
    limit_seconds: float
    secrets: Sequence[str] = ()
    artifact: str | None = None
    words: tuple[str, ...] | None = None
    listens: str | None = None

    @property
    def output(self) -> str:
        """What its output is called where bytes of it are left out."""
        return self.artifact or "output"

    @property
    def shown(self) -> str:
        """The command as it may be stored and told."""
        return masked(self.command, self.secrets)


class Outcome(NamedTuple):
    """What running a gate came to: the value that is stored, its output, head and tail, and what
    was listened to; None where that was too much."""

    checked: Checked
    content: bytes
    heard: bytes | None = b""

    @property
    def passed(self) -> bool:
        """Whether the command has succeeded."""
        return self.checked.passed


class NotStarted(Exception):
    """A command could not be started. `reason`: the system's words; `gone`: its worktree is not
    there any more; `of_git`: what git failed with, where it is git that could not be started."""

    def __init__(
        self, spec: GateSpec, reason: str, *, gone: bool, of_git: InboxOrchError | None = None
    ) -> None:
        super().__init__(reason)
        self.spec, self.reason, self.gone, self.of_git = spec, reason, gone, of_git

    def as_error(self, hint: str) -> InboxOrchError:
        """`io_error` of a check, with the caller's word on what to do."""
        return InboxOrchError(
            "io_error",
            f"the check `{brief_command(self.spec.shown)}` could not be started: {self.reason}",
            hint=hint,
            details={"folder": self.spec.folder},
        )


def checked(
    spec: GateSpec, ending: Ending, seconds: float, output_tail: str, output_bytes: int
) -> Checked:
    """What is stored of a command that has been run; the artifact with its output comes later."""
    return Checked(spec.shown, ending, seconds, output_tail, output_bytes)


def limit_seconds(limits: Limits) -> float:
    """How many seconds each check may run."""
    return limits.check_seconds or DEFAULT_CHECK_SECONDS


def patience_seconds(checks: int, limits: Limits) -> float:
    """After how many seconds a process that runs so many checks, and cannot be seen from here,
    counts as gone."""
    return FOREIGN_SECONDS + checks * (limit_seconds(limits) + SLACK_SECONDS)
