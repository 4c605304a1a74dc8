"""The whole life of one gate on a tree: whether it is run at all, each try, what it wrote.

Knows no attempt and no database: who calls says on what ground it stands, and stores the result.
Killed at whatever line, nothing is left but what the gate itself has written into the worktree,
and the next gate there begins by putting that back.
"""

import os
import shlex
import stat
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple

from ..git.failures import temporary_folder
from ..patches.hiding import hidden
from . import judging, patch_safety
from .definitions import REPORT, Gate
from .globs import matches_any
from .judging import Base
from .matching import has_to_be_apart, read_apart
from .patch_safety import RawChange
from .readers.read import listens_to, read
from .readers.reading import MOST_BYTES, Reading
from .results import GateResult
from .spec import GateSpec, Outcome

if TYPE_CHECKING:
    from .running import Runner

_FOR_PROGRAMS = ("ruff", "sarif")


class Ground(NamedTuple):
    """Where gates are run. `folder` is the worktree, `common` its shared git directory (None where
    git is not to be asked); `environment` is all that commands get. `changed_paths`: what the work
    changes against its base, None where that is not known. `tree_now` names the tree that the
    worktree has, `put_back` lets it have a tree again and returns the paths that it has changed for
    that, `between` gives the paths in which two trees differ. `changes` feeds `patch-safety` with
    what a tree changes. `keeps`: output is kept as an artifact, for which the runner has a place.
    `checkout` gives a folder with the files of a tree, for a gate that is `clean`; without it those
    are run in the worktree like others.
    """

    runner: "Runner"
    folder: str
    common: str | None
    environment: Mapping[str, str]
    secrets: Sequence[str]
    changed_paths: tuple[str, ...] | None
    tree_now: Callable[[], str]
    put_back: Callable[[str], tuple[str, ...]]
    between: Callable[[str, str], tuple[str, ...]]
    changes: Callable[[str], Sequence[RawChange]] | None = None
    keeps: bool = True
    checkout: Callable[[str], AbstractContextManager[str]] | None = None


class _Try(NamedTuple):
    """One try: what was read, how it was run (None where nothing was), and what it wrote."""

    reading: Reading
    outcome: Outcome | None = None
    wrote: tuple[str, ...] = ()


def trying(
    ground: Ground, gate: Gate, tree: str, base: Base | None
) -> Generator[None, None, GateResult]:
    """Judge a tree by a gate, and give the caller a turn now and then; to close the generator ends
    the command.

    Raises what `Runner.running` does: `Withdrawn`, `Interrupted`, `NotStarted`. Errors: those of
    git, of the temporary folder and of keeping an artifact. Whatever is raised, the worktree may
    be as the gate has left it.
    """
    reason = _reason_to_skip(ground, gate)
    if reason is not None:
        return GateResult(gate.name, "skipped", reason, mode=gate.mode)
    if not _stands_on(ground, tree):
        reason = "the worktree is not what is judged, and cannot be put back"
        return GateResult(gate.name, "error", reason, mode=gate.mode)
    tries = [(yield from _tried(ground, gate, tree))]
    if judging.asks_again(gate, tries[0].reading, base):
        if gate.writes == "keep":
            _stands_on(ground, tree)
        tries.append((yield from _tried(ground, gate, tree)))
    return _result(gate, tries, base, ground)


def _reason_to_skip(ground: Ground, gate: Gate) -> str | None:
    if not gate.run and ground.changes is None:
        return "nothing says here what was changed"
    changed = ground.changed_paths
    if gate.paths and changed is not None and not matches_any(gate.paths, changed):
        return f"nothing is changed in {', '.join(gate.paths[:3])}"
    return None


def _stands_on(ground: Ground, tree: str) -> bool:
    """Let the worktree have the tree, if it has another one; whether it has it then."""
    if ground.tree_now() == tree:
        return True
    ground.put_back(tree)
    return ground.tree_now() == tree


def _result(gate: Gate, tries: Sequence[_Try], base: Base | None, ground: Ground) -> GateResult:
    readings = [one.reading for one in tries]
    found = judging.verdict(gate, readings[0], readings[1] if len(tries) > 1 else None, base)
    outcomes = [one.outcome.checked for one in tries if one.outcome is not None]
    # What an earlier try has written was put back in any case.
    wrote = (
        {path for one in tries for path in one.wrote} if gate.writes != "keep" else tries[-1].wrote
    )
    if outcomes:
        last = outcomes[-1]
        found = found._replace(
            seconds=round(sum(each.seconds for each in outcomes), 3),
            # What was read says it all, where the output is for programs.
            output="" if gate.reads in _FOR_PROGRAMS and found.failures else last.output_tail,
        )
        if last.artifact is not None:
            stored = (last.artifact, last.artifact_sha256, last.artifact_bytes)
            found = found._replace(artifact=stored)
    return _without_secrets(found, ground.secrets)._replace(wrote=tuple(sorted(wrote)))


# -- one try -----------------------------------------------------------------------------


def _tried(ground: Ground, gate: Gate, tree: str) -> Generator[None, None, _Try]:
    if not gate.run:
        assert ground.changes is not None
        return _Try(patch_safety.judged(gate, ground.changes(tree)))
    if gate.clean and ground.checkout is not None:
        with ground.checkout(tree) as folder:
            there = {**ground.environment, "PWD": folder}
            apart = ground._replace(folder=folder, common=None, environment=there)
            return (yield from _run(apart, gate))
    done = yield from _run(ground, gate)
    after = ground.tree_now()
    if after == tree:
        return done
    keeps = gate.writes == "keep"
    return done._replace(wrote=ground.between(tree, after) if keeps else ground.put_back(tree))


def _run(ground: Ground, gate: Gate) -> Generator[None, None, _Try]:
    with temporary_folder() as scratch:
        report = os.path.join(scratch, "report")
        outcome = yield from ground.runner.running(_spec(ground, gate, report))
        said = _report_at(report)
    folder, ending = os.path.realpath(ground.folder), outcome.checked.ending
    content = outcome.heard if said is None else said
    if content and has_to_be_apart(gate):
        return _Try((yield from read_apart(ground.runner, gate, ending, content, folder)), outcome)
    return _Try(read(gate, ending, outcome.heard, said, folder), outcome)


def _spec(ground: Ground, gate: Gate, report: str) -> GateSpec:
    words = None
    if isinstance(gate.run, str):
        command = gate.run.replace(REPORT, shlex.quote(report))
    else:
        words = tuple(word.replace(REPORT, report) for word in gate.run)
        command = gate.shown
    return GateSpec(
        command,
        ground.folder,
        ground.common,
        ground.environment,
        gate.timeout_seconds,
        ground.secrets,
        f"gate-{gate.name}.txt" if ground.keeps else None,
        words,
        listens_to(gate),
    )


def _report_at(path: str) -> bytes | None:
    """What the command has written there; None when that is nothing, no plain file, or too much."""
    try:
        # A pipe that was put there must not be waited for, and no link is followed.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    return content if len(content) <= MOST_BYTES else None


def _without_secrets(result: GateResult, secrets: Sequence[str]) -> GateResult:
    """The result as it may be stored and told; the output was masked while it came."""
    failures: dict[str, int] = {}
    for name, count in result.failures.items():
        shown = hidden(name, secrets)
        failures[shown] = failures.get(shown, 0) + count
    return result._replace(
        failures=failures,
        texts={hidden(n, secrets): hidden(text, secrets) for n, text in result.texts.items()},
        flaky=tuple(hidden(name, secrets) for name in result.flaky),
        reason=None if result.reason is None else hidden(result.reason, secrets),
    )
