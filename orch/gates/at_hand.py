"""The gates of the attempt in whose worktree somebody stands, run on what lies there now.

For workers: needs no lease, changes no state, puts nothing back, and stores nothing: the leader's
own gates decide. Uncommitted work is judged along.
"""

import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.processes.signals import Signalled
from inbox_orch.shared.shell.nearest import did_you_mean
from inbox_orch.shared.store.engine import Session

from ..git import diffs
from ..git.diffs import Span
from ..git.failures import shown
from ..git.repository import Repository
from ..runs import run_rows as runs
from ..runs import task_rows as tasks
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.model import Attempt, Run, Task
from ..runs.secrets import secrets_of
from . import here_rows, result_rows, surroundings_rows
from .chosen import also_found, checks_of, gates_of
from .definitions import Gate
from .interpreters import activated
from .judging import Base, base_of
from .patch_safety import RawChange
from .proving import Proof, base_by
from .results import GateResult
from .spec import NotStarted
from .surroundings import command_environment

if TYPE_CHECKING:
    from .running import Runner
    from .trying import Ground

_AS_IT_IS = "as it is"
"""Stands for the tree: what lies there is judged, whatever it is."""
_MOST_UNTRACKED = 100  # more are not listed by `Repository.untracked_paths`
_ABSENT = "000000"


class AtHand(NamedTuple):
    """Where somebody stands: the attempt at a task of a run, its worktree, and its gates in order,
    each with what is known of the base (None where nothing is); last the checks of the task."""

    run: Run
    task: Task
    attempt: Attempt
    folder: str
    gates: tuple[tuple[Gate, Base | None], ...]
    proofs: tuple[Proof, ...] = ()

    @property
    def name(self) -> str:
        """How people name the attempt."""
        return f"{self.task.key}/{self.attempt.number}"


def at_hand(desk: Desk, folder: str) -> AtHand:
    """The attempt whose worktree a folder lies in. Errors: `not_found` when it lies in none;
    `git_failed` when its repository is gone."""
    top = _top_of(folder)
    with desk.database.snapshot() as snapshot:
        attempt = None if top is None else _attempt_at(snapshot, top)
        if attempt is None or top is None:
            raise InboxOrchError(
                "not_found",
                f"{shown(folder)} is in the worktree of no attempt",
                hint="call it in one; `orch attempt list` has their folders",
                details={"kind": "attempt", "id": shown(folder)},
            )
        run = runs.get(snapshot, attempt.run_id)
        task = tasks.by_id(snapshot, attempt.task_id)
    assert run is not None, "runs are never removed"
    tree = desk.repository(run).ref_commit(f"{attempt.base_commit}^{{tree}}")
    gates, proofs = _known_of(desk, run, tree)
    checks = [(gate, None) for gate in checks_of(task)]
    return AtHand(run, task, attempt, top, (*gates, *checks), proofs)


def chosen(here: AtHand, names: Sequence[str]) -> AtHand:
    """With the gates that are named, all of them by default. Error `usage` when there are none, no
    such one, or when one that is named cannot judge here."""
    if not here.gates:
        raise usage(
            f"run {here.run.name} has no gates",
            hint="`gates:` of the config that `orch run init --config FILE` takes says which;"
            " `--check` of a task adds one",
        )
    known = [gate.name for gate, _ in here.gates]
    for name in names:
        if name not in known:
            hint = did_you_mean(name[:200], known, f"there are: {', '.join(known)}")
            raise usage(f"there is no gate {name[:200]!r}", hint=hint, gate=name[:200])
        proof = _unusable(here, name)
        if proof is not None:
            raise usage(proof.sentence.rstrip("."), hint="mend that, or leave the gate out")
    wanted = names or known
    return here._replace(gates=tuple(pair for pair in here.gates if pair[0].name in wanted))


def run_gates(
    desk: Desk, here: AtHand, tell: Callable[[GateResult], None] = lambda _: None
) -> list[GateResult]:
    """Run the gates in order, each to its end, whatever the others come to; `tell` is called with
    each result. SIGINT and SIGTERM end the command and raise `Signalled`. Errors: `io_error` when
    one cannot be started; those of git and of the temporary folder."""
    from .running import Interrupted, Runner
    from .trying import trying
    from .turns import finished

    results: list[GateResult] = []
    try:
        with Runner(desk.database.notice) as runner:
            ground = _ground(desk, here, runner)
            for gate, base in here.gates:
                proof = _unusable(here, gate.name)
                if proof is None:
                    result = finished(trying(ground, gate, _AS_IT_IS, base))
                else:
                    result = GateResult(gate.name, "skipped", proof.sentence, mode=gate.mode)
                results.append(result)
                tell(result)
    except Interrupted as interrupted:
        raise Signalled(interrupted.number) from None
    except NotStarted as failed:
        raise failed.as_error("try again once that is put right") from failed.__cause__
    return results


# -- where somebody stands ---------------------------------------------------------------


def _top_of(folder: str) -> str | None:
    """The top of the working tree in which a folder lies, as the system names it."""
    here = os.path.realpath(folder)
    while not os.path.lexists(os.path.join(here, ".git")):
        here, last = os.path.dirname(here), here
        if here == last:
            return None
    return here


def _attempt_at(session: Session, top: str) -> Attempt | None:
    """The newest attempt that has this folder for its worktree, by whatever path."""
    for attempt in here_rows.with_worktree_called(session, os.path.basename(top)):
        if os.path.realpath(str(attempt.worktree_path)) == top:
            return attempt
    return None


def _known_of(
    desk: Desk, run: Run, tree: str | None
) -> tuple[tuple[tuple[Gate, Base | None], ...], tuple[Proof, ...]]:
    """The gates of a run with what is known of them on the base that has this tree: those that its
    config says, and those that were found there."""
    with desk.database.snapshot() as snapshot:
        known = None if tree is None else surroundings_rows.get(snapshot, run.id, tree)
        own = gates_of(config_of(run))
        gates = own if known is None else also_found(own, known.gates)
        proofs = {g.name: p for g in gates if known is not None and (p := known.proof(g))}
        pairs: list[tuple[Gate, Base | None]] = []
        for gate in gates:
            if gate.name in proofs:
                pairs.append((gate, base_by(proofs[gate.name])))
            else:
                alone = tree and result_rows.alone(snapshot, run.id, tree, gate.name)
                pairs.append((gate, base_of(alone) if alone else None))
    return tuple(pairs), tuple(proofs.values())


def _unusable(here: AtHand, name: str) -> Proof | None:
    return next((p for p in here.proofs if p.gate == name and not p.usable), None)


# -- what gates are run on ---------------------------------------------------------------


def _ground(desk: Desk, here: AtHand, runner: "Runner") -> "Ground":
    """The worktree as it is: somebody is at work in it, so nothing is compared or put back."""
    from .trying import Ground

    config, repository = config_of(here.run), desk.repository(here.run)
    paths = _changed_paths(repository, here)
    inherited = command_environment(
        desk.database, here.run, here.task, here.attempt, config, here.folder
    )
    return Ground(
        runner,
        here.folder,
        repository.common_directory,
        activated(inherited, here.folder),
        secrets_of(config),
        paths,
        tree_now=lambda: _AS_IT_IS,
        put_back=lambda _: (),
        between=lambda *_: (),
        changes=None if paths is None else lambda _: list(_raw_changes(here.folder, paths)),
        keeps=False,
    )


def _changed_paths(repository: Repository, here: AtHand) -> tuple[str, ...] | None:
    """What the work changes, committed or not; None where there is too much to list."""
    if here.attempt.base_commit is None:
        return None
    span = Span(here.folder, here.attempt.base_commit, None)
    diffs.require_readable(repository, span)
    untracked = repository.untracked_paths(here.folder)
    if len(untracked) >= _MOST_UNTRACKED:
        return None
    known = json.loads(here.attempt.details or "{}").get("untracked_at_start") or ()
    new = [path for path in untracked if path not in known]
    changed = [file.path for file in diffs.changed_files(span)]
    return tuple(dict.fromkeys([*changed, *new]))


def _raw_changes(folder: str, paths: Sequence[str]) -> Iterator[RawChange]:
    """The files of these paths as they lie there, as git would take them in."""
    for path in paths:
        at = os.path.join(folder, path)
        try:
            found = os.lstat(at)
        except (FileNotFoundError, NotADirectoryError):
            yield RawChange(path, _ABSENT, _ABSENT)
            continue
        if stat.S_ISLNK(found.st_mode):
            yield RawChange(path, _ABSENT, "120000", found.st_size, os.readlink(at))
        elif stat.S_ISDIR(found.st_mode):
            yield RawChange(path, _ABSENT, "160000")
        else:
            mode = "100755" if found.st_mode & stat.S_IXUSR else "100644"
            yield RawChange(path, _ABSENT, mode, found.st_size)
