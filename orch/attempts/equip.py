"""What a worktree gets beside the files of its commit, as the run's config says.

Works on a worktree that has not been handed out yet, in its attempt's lock; stores nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes.endings import ending_text
from inbox_orch.shared.processes.signals import Signalled
from inbox_orch.shared.store.sqlite.database import Database

from ..gates.checks import MAX_TAIL_BYTES
from ..gates.spec import GateSpec, NotStarted, Outcome
from ..git import manifest, worktrees
from ..git.copying import copy_untracked
from ..git.repository import Repository
from ..git.standing import require_here
from ..git.worktrees import Filling, Hold, Place
from ..runs.config import Config
from ..runs.secrets import secrets_of


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
        _set_up(database, repository, place, hold, wanted, is_wanted)
        require_here(place.path, repository.common_directory)  # still, after what it did
    if config.copy or config.setup is not None:
        untracked = repository.untracked_paths(place.path)
        if untracked:
            details["untracked_at_start"] = list(untracked)
        # Clean-up has to see which of them the worker has changed.
        manifest.write(place.path)
    return details


def _set_up(
    database: Database,
    repository: Repository,
    place: Place,
    hold: Hold,
    wanted: Equipment,
    is_wanted: Callable[[], bool],
) -> None:
    """Run the command to its end. Should we be killed, the attempt's lock stays held until the
    last process of it has been ended: the worktree must not be made anew under its feet."""
    from ..gates.running import Interrupted, Mandate, Runner, Withdrawn

    setup, environment = wanted.config.setup, wanted.environment
    assert setup is not None
    gate = GateSpec(
        setup.command,
        place.path,
        repository.common_directory,
        environment,
        setup.timeout_seconds,
        secrets_of(wanted.config, environment),
    )
    mandate = Mandate(wanted=is_wanted)
    try:
        with Runner(database.notice, mandate, locks=(hold.descriptor,)) as runner:
            outcome = runner.run(gate)
    except Interrupted as interrupted:
        raise Signalled(interrupted.number) from None
    except Withdrawn as withdrawn:
        raise SetupFailed(f"set-up: {withdrawn}", {}) from withdrawn
    except NotStarted as failed:
        raise _not_started(failed) from failed.__cause__
    if not outcome.passed:
        raise _failed(outcome)


def _not_started(failed: NotStarted) -> InboxOrchError:
    return failed.of_git or InboxOrchError(
        "io_error",
        f"the set-up did not start: {failed.reason}",
        hint="check that `sh` can be run, and the disk",
    )


def _failed(outcome: Outcome) -> SetupFailed:
    checked, tail = outcome.checked, outcome.content[-MAX_TAIL_BYTES:].decode("utf-8", "replace")
    return SetupFailed(
        ending_text(checked.ending, "The set-up").rstrip(".") + _last_line(tail),
        {
            "exit_status": checked.ending.exit_status,
            "signal": checked.ending.signal,
            "timed_out_seconds": checked.ending.timed_out,
            "seconds": checked.seconds,
            "output_tail": tail,
            "output_bytes": checked.output_bytes,
        },
    )


def _last_line(tail: str) -> str:
    """What a command that fails says last mostly tells why."""
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    return f": {lines[-1][:300]}" if lines else ""
