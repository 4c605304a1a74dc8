"""What a worktree gets beside the files of its commit, as the run's config says.

Works on a worktree that nobody has been given yet, in its attempt's lock; stores nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from inbox_orch.shared.database import Database
from inbox_orch.shared.endings import ending_text
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.signals import Signalled

from ..domain.checks import MAX_TAIL_BYTES
from ..domain.config import Config
from ..git import manifest, worktrees
from ..git.copying import copy_untracked
from ..git.filling import Filling
from ..git.repository import Repository
from ..git.worktrees import Hold, Place
from .surroundings import secrets_of


class SetupFailed(Exception):
    """The set-up command did not succeed. The text is one line; `details` have its output."""

    def __init__(self, reason: str, details: dict[str, Any]) -> None:
        super().__init__(reason)
        self.details = details


class Equipment(NamedTuple):
    """What a worktree is to have, and the environment of its set-up command."""

    config: Config
    environment: Mapping[str, str]


def equip(
    database: Database,
    repository: Repository,
    place: Place,
    hold: Hold,
    wanted: Equipment,
    is_wanted: Callable[[], bool],
) -> dict[str, Any]:
    """Make the worktree with all that a worker is to find there.

    Returns what the attempt's details say of it: `not_copied`, paths with reasons, and
    `untracked_at_start`, which the worker need not commit. `is_wanted` is asked now and then
    while the set-up runs, and ends it.
    Errors: those of `worktrees.make`; `disk_full`, `read_only`, `io_error`. Raises `SetupFailed`.
    """
    config = wanted.config
    filling = Filling(lfs=config.lfs == "smudge", submodules=config.submodules)
    worktrees.make(repository, place, hold, filling)
    details: dict[str, Any] = {}
    if config.copy:
        source = repository.working_tree_at(None)
        copied = copy_untracked(source, place.path, config.copy, database.layout.holds)
        if copied.left_out:
            details["not_copied"] = [entry._asdict() for entry in copied.left_out]
    if config.setup is not None:
        _set_up(database, place, hold, wanted, is_wanted)
    if config.copy or config.setup is not None:
        untracked = repository.untracked_paths(place.path)
        if untracked:
            details["untracked_at_start"] = list(untracked)
        # Clean-up has to see which of them the worker has changed.
        manifest.write(place.path)
    return details


def _set_up(
    database: Database,
    place: Place,
    hold: Hold,
    wanted: Equipment,
    is_wanted: Callable[[], bool],
) -> None:
    """Run the command to its end. Should we be killed, the attempt's lock stays held until the
    last process of it has been ended: the worktree must not be made anew under its feet."""
    from .running import Check, Interrupted, Runner, Withdrawn

    setup, environment = wanted.config.setup, wanted.environment
    assert setup is not None
    secrets = secrets_of(wanted.config, environment)
    check = Check(setup.command, place.path, environment, setup.timeout_seconds, secrets)
    try:
        with Runner(database.notice, (hold.descriptor,)) as runner:
            outcome = runner.run(check, begins=lambda group: True, wanted=is_wanted)
    except Interrupted as interrupted:
        raise Signalled(interrupted.number) from None
    except Withdrawn as withdrawn:
        raise SetupFailed(f"set-up: {withdrawn}", {}) from withdrawn
    except OSError as error:
        raise InboxOrchError(
            "io_error",
            f"the set-up did not start: {error.strerror}",
            hint="check that `sh` can be run, and the disk",
        ) from error
    if outcome.ending.timed_out is not None or outcome.ending.exit_status != 0:
        tail = outcome.content[-MAX_TAIL_BYTES:].decode("utf-8", "replace")
        raise SetupFailed(
            ending_text(outcome.ending, "The set-up").rstrip(".") + _last_line(tail),
            {
                "exit_status": outcome.ending.exit_status,
                "signal": outcome.ending.signal,
                "timed_out_seconds": outcome.ending.timed_out,
                "seconds": outcome.seconds,
                "output_tail": tail,
                "output_bytes": outcome.output_bytes,
            },
        )


def _last_line(tail: str) -> str:
    """What a command that fails says last mostly tells why."""
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    return f": {lines[-1][:300]}" if lines else ""
