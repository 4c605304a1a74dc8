"""What a worktree gets beside the files of its commit, as the run's config says.

Works on a worktree that has not been handed out yet, in its attempt's lock; stores nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes.endings import Ending, ending_text
from inbox_orch.shared.processes.signals import Signalled
from inbox_orch.shared.store.engine import Engine

from ..gates.checks import MAX_TAIL_BYTES
from ..gates.spec import GateSpec, NotStarted, Outcome
from ..git import manifest, worktrees
from ..git.copying import copy_untracked
from ..git.repository import Repository
from ..git.standing import require_here
from ..git.worktrees import Filling, Hold, Place
from ..runs.config import Config
from ..runs.secrets import secrets_of
from .rows import Details


class SetupFailed(Exception):
    """The set-up command did not succeed. The text is one line; `ended` is how it ended, None
    when it was left since it was not wanted any more."""

    def __init__(self, reason: str, ended: "SetupEnded | None" = None) -> None:
        super().__init__(reason)
        self.ended = ended

    @property
    def facts(self) -> dict[str, Any]:
        """What JSON has of how it ended."""
        return {} if self.ended is None else self.ended.as_json()


class SetupEnded(NamedTuple):
    """How a set-up command ended, how many seconds it took, the last of its output, and how many
    bytes that had in all."""

    ending: Ending
    seconds: float
    output_tail: str
    output_bytes: int

    def as_json(self) -> dict[str, Any]:
        return {
            "exit_status": self.ending.exit_status,
            "signal": self.ending.signal,
            "timed_out_seconds": self.ending.timed_out,
            "seconds": self.seconds,
            "output_tail": self.output_tail,
            "output_bytes": self.output_bytes,
        }


class Equipment(NamedTuple):
    """What a worktree is to have, and the environment of its set-up command."""

    config: Config
    environment: Mapping[str, str]


def equip(
    database: Engine,
    repository: Repository,
    place: Place,
    hold: Hold,
    wanted: Equipment,
    is_wanted: Callable[[], bool],
) -> Details:
    """Make the worktree with all that a worker is to find there.

    Returns what is to be remembered of it: `not_copied` and `untracked_at_start`. `is_wanted` is
    asked now and then while the set-up runs, and ends it.
    Errors: those of `worktrees.make`; `disk_full`, `read_only`, `io_error`. Raises `SetupFailed`.
    """
    config = wanted.config
    filling = Filling(lfs=config.lfs == "smudge", submodules=config.submodules)
    worktrees.make(repository, place, hold, filling)
    details = Details()
    if config.copy:
        source = repository.working_tree_at(None)
        copied = copy_untracked(source, place.path, config.copy, database.layout.holds)
        if copied.left_out:
            details = details._replace(not_copied=copied.left_out)
    if config.setup is not None:
        _set_up(database, repository, place, hold, wanted, is_wanted)
        require_here(place.path, repository.common_directory)  # still, after what it did
    if config.copy or config.setup is not None:
        untracked = repository.untracked_paths(place.path)
        if untracked:
            details = details._replace(untracked_at_start=untracked)
        # Clean-up has to see which of them the worker has changed.
        manifest.write(place.path)
    return details


def _set_up(
    database: Engine,
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
        raise SetupFailed(f"set-up: {withdrawn}") from withdrawn
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
        SetupEnded(checked.ending, checked.seconds, tail, checked.output_bytes),
    )


def _last_line(tail: str) -> str:
    """What a command that fails says last mostly tells why."""
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    return f": {lines[-1][:300]}" if lines else ""
