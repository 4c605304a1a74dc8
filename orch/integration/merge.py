"""What an integration would come to: every piece of accepted work merged in memory, in order.

Makes objects at most; no branch and no row is changed.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from inbox_orch.shared.errors import not_found, usage

from ..git import integrating as git_integrating
from ..git.genuine import require_genuine
from ..git.integrating import Commit
from ..git.repository import Repository
from ..runs.desk import no_worktree_of
from ..runs.model import Attempt, Run
from . import rules as integration
from .rules import CONFLICT, HELD_BACK, MERGED, NOT_RESOLVED, Missed, Piece, Result


class Target(NamedTuple):
    """The branch that is to come forward to what was integrated, where it is, and the paths in
    which it does not merge with that."""

    branch: str
    commit: str
    paths: tuple[str, ...] = ()


class Plan(NamedTuple):
    """What would be merged. `before` is where the branch of the integration is, None when it is
    not there; `start` where merging begins; `tip` where it comes to. `already`: how many pieces
    are in it; `unresolved`: what conflicted earlier, and is being worked on again; `missed`: what
    comes in or drops out although the leader may not want it."""

    branch: str
    before: str | None
    start: str
    tip: str
    target: Target | None
    results: tuple[Result, ...]
    already: int
    unresolved: tuple[Result, ...] = ()
    missed: tuple[Missed, ...] = ()

    def of(self, state: str) -> list[Result]:
        """The pieces of which this came."""
        return [result for result in self.results if result.state == state]

    @property
    def changes_nothing(self) -> bool:
        """Whether the branch of the integration would stay as it is, with nothing to record."""
        done = self.of(MERGED) or self.of(CONFLICT)
        return not done and self.before in (None, self.tip)

    @property
    def needs_check(self) -> bool:
        """Whether something would get somewhere where it has not been."""
        behind = self.target is not None and self.tip != self.target.commit
        return bool(self.of(MERGED)) or (behind and self.before is not None)


class Work(NamedTuple):
    """What there is: the accepted pieces in order; those that conflicted earlier and are being
    worked on again, older ones of a task first; and attempts at the same tasks that were accepted
    once, of which some may have come in. `ever` are all that were accepted once, of every task,
    and `keys` those of the tasks."""

    pieces: Sequence[Piece]
    in_conflict: Sequence[Result]
    once_accepted: Sequence[Attempt]
    ever: Sequence[Attempt] = ()
    keys: Mapping[str, str] = MappingProxyType({})


def plan(
    repository: Repository, run: Run, work: Work, onto: str | None, within: str | None
) -> Plan:
    """Merge what is not in the integration yet.

    Errors: `not_found` (the branch `onto`), `usage`, those of git.
    """
    branch = integration.branch_of(run)
    before = repository.ref_commit(f"refs/heads/{branch}")
    target = None if onto is None else _target(repository, onto)
    start, target = _start(repository, run, before, target, within)
    heads = [piece.head for piece in work.pieces]
    history = git_integrating.missing_from(repository, start, heads)
    missing = [piece for piece in work.pieces if piece.head in history]
    if missing:
        # They may have been written over since they were judged.
        require_genuine(repository.path, [piece.head for piece in missing], start)
    at = git_integrating.commit_time(repository, start) if missing else 0
    merging = _Merging(repository, run, missing, history, start, at)
    in_conflict = _still_open(repository, start, work) if work.in_conflict else []
    for earlier in in_conflict:
        merging.in_conflict.setdefault(earlier.piece.head, earlier.piece.task.key)
    results = tuple(merging.add(piece) for piece in missing)
    already = len(work.pieces) - len(missing)
    unresolved = _unresolved(repository, merging.tip, in_conflict)
    missed = _missed(repository, merging, work, results)
    return Plan(branch, before, start, merging.tip, target, results, already, unresolved, missed)


def _missed(
    repository: Repository, merging: "_Merging", work: Work, results: Sequence[Result]
) -> tuple[Missed, ...]:
    """What git confirms of it."""
    coming = {r.piece.attempt.id: r.piece for r in results if r.state == MERGED}
    heads = {piece.task.id: piece for piece in work.pieces}

    def is_so(missed: Missed) -> bool:
        earlier = str(missed.earlier.head_commit)
        if missed.reason == NOT_RESOLVED:
            return not _is_in(repository, merging.tip, earlier)
        piece, now = coming.get(missed.attempt.id), heads.get(missed.earlier.task_id)
        if piece is None or earlier not in merging.within(piece):
            return False
        return now is None or not _is_in(repository, now.head, earlier)

    return tuple(m for m in integration.missed(work.pieces, work.ever, work.keys) if is_so(m))


def _unresolved(
    repository: Repository, tip: str, in_conflict: Sequence[Result]
) -> tuple[Result, ...]:
    """The newest conflict of each task, unless its work has come in by another way."""
    newest = {result.piece.task.id: result for result in in_conflict}
    return tuple(r for r in newest.values() if not _is_in(repository, tip, r.piece.head))


def _still_open(repository: Repository, tip: str, work: Work) -> list[Result]:
    """Without what a later attempt at the same task has resolved that came in."""
    resolved: dict[str, int] = {}
    for attempt in work.once_accepted:
        if _is_in(repository, tip, str(attempt.head_commit)):
            resolved[attempt.task_id] = max(attempt.number, resolved.get(attempt.task_id, 0))
    return [
        result
        for result in work.in_conflict
        if result.piece.attempt.number > resolved.get(result.piece.task.id, 0)
    ]


def _is_in(repository: Repository, tip: str, commit: str) -> bool:
    there = repository.ref_commit(f"{commit}^{{commit}}") is not None
    return there and repository.contains(tip, commit)


class _Merging:
    """The merges of one plan, one after the other."""

    def __init__(
        self,
        repository: Repository,
        run: Run,
        pieces: Sequence[Piece],
        history: dict[str, Commit],
        start: str,
        at: int,
    ) -> None:
        self.tip = start
        self.in_conflict: dict[str, str] = {}
        self._repository, self._run, self._history = repository, run, history
        self._pieces, self._at = pieces, at
        self._merged: set[str] = set()

    def add(self, piece: Piece) -> Result:
        """Merge one piece more, unless it builds on work that does not merge."""
        if piece.head in self._merged:
            return Result(piece, MERGED, self.tip)
        because = self._because_of(piece)
        if because:
            return Result(piece, HELD_BACK, because=because)
        paths = self._merge(piece)
        if paths is None or self._comes_with_another(piece):
            return Result(piece, MERGED, self.tip)
        self.in_conflict[piece.head] = piece.task.key
        return Result(piece, CONFLICT, paths=paths)

    def _because_of(self, piece: Piece) -> tuple[str, ...]:
        """The tasks whose conflicting work a piece builds on."""
        if not self.in_conflict:
            return ()
        builds_on = self.within(piece)
        blocking = (key for head, key in self.in_conflict.items() if head in builds_on)
        return tuple(dict.fromkeys(blocking))

    def _merge(self, piece: Piece) -> tuple[str, ...] | None:
        """Merge a piece into the tip; the paths in which that cannot be done."""
        # A date of the work itself, and not the time of the call: who merges the same again gets
        # the same commit, and two who do it at once do not disagree.
        at = max(self._at, self._history[piece.head].at)
        message = integration.merge_message(self._run, piece)
        merged = self._repository.merge((self.tip, piece.head), message, at=at)
        if merged.commit is None:
            return merged.conflicts
        self.tip, self._at = merged.commit, at
        self._merged |= self.within(piece)
        return None

    def _comes_with_another(self, piece: Piece) -> bool:
        """Whether work that builds on a piece merges where the piece by itself does not:
        that conflict has been resolved already, as when a base was merged by hand."""
        return any(
            piece.head in self.within(other)
            and not self._because_of(other)
            and self._merge(other) is None
            for other in self._pieces
            if other.head != piece.head
        )

    def within(self, piece: Piece) -> set[str]:
        """The commits that a piece would bring, its own included."""
        return git_integrating.reached(self._history, piece.head)


def _target(repository: Repository, name: str) -> Target:
    named = name.removeprefix("refs/heads/")
    branch = repository.branch_at(named)
    if (branch or named).startswith("orch/"):
        raise usage(
            f"{name[:100]!r} is a branch of orch's own", hint="--onto names one of yours, as main"
        )
    commit = None if branch is None else repository.ref_commit(f"refs/heads/{branch}")
    if branch is None or commit is None:
        raise not_found("branch", name[:100], hint="--onto takes a local branch; `git branch`")
    return Target(branch, commit)


def _start(
    repository: Repository,
    run: Run,
    before: str | None,
    target: Target | None,
    within: str | None,
) -> tuple[str, Target | None]:
    """Where merging begins: with what the target has in it, so that it can come forward."""
    if before is None:
        if target is not None:
            return target.commit, target
        return run.base_commit or repository.commit_of("HEAD", no_worktree_of(run, within)), None
    if target is None or repository.contains(before, target.commit):
        return before, target
    if repository.contains(target.commit, before):
        return target.commit, target
    at = max(git_integrating.commit_time(repository, c) for c in (before, target.commit))
    message = f"Bring in {target.branch}\n\nRun {run.name}."
    merged = repository.merge((before, target.commit), message, at=at)
    if merged.commit is None:
        return before, target._replace(paths=merged.conflicts)
    return merged.commit, target


def as_json(target: Target, moved: git_integrating.Moved | None, tip: str) -> dict[str, Any]:
    """What became of the target; `moved` None when it was not tried."""
    state = "conflict" if target.paths else "not_tried"
    shape: dict[str, Any] = {
        "branch": target.branch,
        "before": target.commit,
        "commit": target.commit,
        "state": state,
        "worktree": None,
        "command": None,
        "reason": None,
        "paths": list(target.paths),
    }
    if moved is not None:
        shape |= moved._asdict()
        shape["commit"] = tip if moved.state == "fast_forwarded" else target.commit
    return shape
