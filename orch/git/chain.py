"""The chain of an attempt's snapshots: commits behind one ref, each with the one before, HEAD and
what the index had as its parents. Its message says what it is.

Makes objects, and moves that ref by compare and swap; touches nothing else.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from . import raw_index, raw_trees, salvage, tree_ids
from .commands import git, output_of
from .condition import Condition, begun
from .failures import shown
from .own_refs import Names, names
from .raw_index import Seen
from .repository import COMMITTER, Repository
from .stale import forget_lock
from .standing import branch_of, own_directory

_REFS = "refs/orch/attempts/"
_SIDES = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD")
"""Commits that something begun has to do with; a branch that has them may go."""


class Snapshot(NamedTuple):
    """One of a chain. `tree` is the raw tree of the files, `head` the commit of HEAD (None when
    there is none yet), `index_tree` what the index had, without what was unmerged."""

    commit: str
    tree: str
    head: str | None
    index_tree: str


class State(NamedTuple):
    """What a snapshot says of itself: `branch` is the ref that HEAD named, None when it was
    detached; `doing` what was begun in the worktree, `ref` that of the chain; `previous` is the one
    before it, None at the beginning of the chain. `only_commits`: it is of no worktree, and keeps
    commits alone."""

    snapshot: Snapshot
    branch: str | None
    doing: str | None
    ref: str
    staged: bool
    previous: str | None = None
    only_commits: bool = False


class Kept(NamedTuple):
    """A snapshot of a chain: what it says, the line that says what it is, and when it was made, in
    seconds since 1970."""

    state: State
    title: str
    made_at: int


class Place(NamedTuple):
    """Where snapshots are made of what: `locks` are shared with git."""

    repository: Repository
    worktree: str
    known: Sequence[str]
    ref: str
    locks: Sequence[int]


def ref_of(attempt_id: str) -> str:
    """Where the chain of an attempt is."""
    return f"{_REFS}{attempt_id}"


def is_elsewhere(repository: Repository, commit: str, target: str, base: str) -> bool:
    """Whether all that a chain has kept is in the history of another commit, from `base` on: each
    tree of it is one of those. Error `git_failed`."""

    def trees(*words: str) -> set[str]:
        form = ("rev-list", "--no-commit-header", "--format=%T")
        return set(output_of(repository.path, *form, *words, "--").split())

    own = trees(commit, "--not", target)
    return own <= trees(target, "--not", f"{base}^@") if own else True


def with_one(repository: Repository) -> set[str]:
    """The ids of the attempts that have a chain. Error `git_failed`."""
    listed = output_of(repository.path, "for-each-ref", "--format=%(refname)", _REFS)
    return {name.removeprefix(_REFS) for name in listed.split()}


def history(repository: Repository, ref: str, base: str | None) -> list[Kept]:
    """The snapshots of a worktree in a chain, oldest first; empty where there is none. `base` is a
    commit that was there before them. Only what the chain itself names is of it, whatever the
    commit that it was made on says. Error `git_failed`."""
    if repository.ref_commit(ref) is None:
        return []
    form = "%H%n%T%n%ct%n%B"
    words = ("log", "-z", "--first-parent", "--no-notes", "--no-show-signature", "--no-mailmap")
    limits = ("--not", base) if base is not None and repository.ref_commit(base) else ()
    asking = (*words, "--encoding=UTF-8", f"--format={form}", ref, *limits, "--")
    _, text = git(repository.path, *asking, reads=True)
    found: list[Kept] = []
    following: str | None = ref  # the commit that the next one has to be
    for record in filter(None, text.split("\0")):
        name, tree, made_at, message = record.split("\n", 3)
        if following not in (name, ref):
            break
        state = _state(name, tree, name, message)
        following = state.previous
        if not state.only_commits:
            found.append(Kept(state, message.strip().split("\n", 1)[0], int(made_at)))
    return found[::-1]


# -- making one ------------------------------------------------------------------------------


class Known(NamedTuple):
    """What has been asked for just now: the ref that HEAD names, None when it is detached; and the
    tree of what was seen, None where it is still to be made."""

    branch: str | None
    tree: str | None = None


def made(
    place: Place,
    seen: Seen,
    message: str,
    parent: str | None,
    also: Sequence[str] = (),
    known: Known | None = None,
) -> Snapshot:
    """`also` are commits that are to be kept beside HEAD."""
    repository, worktree, ref = place.repository, place.worktree, place.ref
    here = names(worktree, ref)
    previous, at = _end_of_chain(repository, ref, parent, here.at)
    last = _last(repository, previous, here)
    likely = (here.head_tree, None if last is None else last.snapshot.tree)
    tree = None if known is None else known.tree
    tree = tree or raw_trees.tree_of(repository, worktree, seen, likely)
    head, branch = here.head, branch_of(worktree) if known is None else known.branch
    doing = begun(str(own_directory(worktree)), here.pseudo)
    condition = Condition(head, branch, (), (), tuple(seen.unmerged), (), (), (), (), (), "")
    parts, index_tree = _index(place, seen, condition, here.head_tree)
    found = Snapshot("", tree, head, index_tree)
    if last is not None and previous is not None and not doing and not seen.unmerged:
        same = last.snapshot._replace(commit="") == found and last.branch == branch
        if same and not (last.doing or last.staged or last.only_commits or also):
            if at is None:
                _advance(place, previous, None)
            return last.snapshot
    kept = salvage.lone_commits(repository, worktree, condition, {}) if doing else []
    kept += [name for ref_name, name in here.pseudo.items() if doing and ref_name in _SIDES]
    facts = [("Ref", ref), ("Previous", previous), ("On", branch), ("Head", head)]
    facts.append(("Index-tree", index_tree))
    facts += [("Doing", doing[0] if doing else None), *parts.items()]
    facts += [("Kept", commit) for commit in dict.fromkeys((*also, *kept))]
    parents = dict.fromkeys(filter(None, (previous, head, *parts.values(), *also, *kept)))
    commit = _commit_of(worktree, tree, list(parents), _text_of(message, facts))
    _advance(place, commit, at)
    return found._replace(commit=commit)


def keep(repository: Repository, ref: str, commits: Sequence[str], message: str) -> None:
    """Keep commits at the end of a chain, the first with its tree, without a look at any worktree;
    what the chain has already is not kept twice. Errors: `git_failed`, those of every write."""
    at = repository.ref_commit(ref)
    missing = [each for each in commits if at is None or not repository.contains(at, each)]
    if not missing:
        return
    tree = output_of(repository.path, "rev-parse", f"{missing[0]}^{{tree}}")
    kept = [("Kept", each) for each in missing]
    facts = [("Ref", ref), ("Previous", at), ("Only", "commits"), ("Head", missing[0])]
    text = _text_of(message, [*facts, ("Index-tree", tree), *kept])
    parents = dict.fromkeys(filter(None, (at, *missing)))
    commit = _commit_of(repository.path, tree, list(parents), text)
    _advance(Place(repository, repository.path, (), ref, ()), commit, at)


def _last(repository: Repository, previous: str | None, here: Names) -> State | None:
    """What the chain ends with."""
    if previous is None:
        return None
    if previous != here.at:
        return state_of(repository, previous)
    header, _, message = here.content.decode("utf-8", "surrogateescape").partition("\n\n")
    facts = dict(line.split(" ", 1) for line in header.split("\n") if " " in line.strip())
    if "encoding" in facts or "tree" not in facts:
        return state_of(repository, previous)
    return _state(previous, facts["tree"], previous, message)


def _index(
    place: Place, seen: Seen, condition: Condition, head_tree: str | None
) -> tuple[dict[str, str], str]:
    """Commits of what only the index has, and its tree."""
    own = str(own_directory(place.worktree))
    simple = seen.entries is not None and raw_index.is_simple(own)
    if head_tree is not None and simple and tree_ids.tree_id(seen.entries or {}) == head_tree:
        return {}, head_tree
    parts = salvage.index_parts(place.worktree, condition)
    return parts, _index_tree(place.repository, parts, condition.head)


def _end_of_chain(
    repository: Repository, ref: str, parent: str | None, at: str | None
) -> tuple[str | None, str | None]:
    """(the last commit, what the ref is at)."""
    if not ref.startswith(_REFS):
        raise ValueError(f"{ref} is no ref of snapshots")
    if at is None or parent is None or at == parent or repository.contains(at, parent):
        return at or parent, at
    raise InboxOrchError(
        "git_failed",
        f"{ref} is at {at}, which does not come after {parent}",
        hint="something else has moved it; `git log --first-parent` shows what is there",
        details={"ref": ref, "commit": at},
    )


def head_of(worktree: str) -> tuple[str | None, str | None]:
    words = ("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    status, head = git(worktree, *words, reads=True, accepted=(0, 1, 128))
    return (head.strip() if status == 0 else None), branch_of(worktree)


def _index_tree(repository: Repository, parts: Mapping[str, str], head: str | None) -> str:
    commit = parts.get("Index", head)
    if commit is None:
        return git(repository.path, "mktree", given=b"")[1].strip()
    return output_of(repository.path, "rev-parse", f"{commit}^{{tree}}")


def _text_of(message: str, facts: Sequence[tuple[str, str | None]]) -> str:
    lines = [f"{name}: {value}" for name, value in facts if value is not None]
    return "\n".join([message.strip(), "", *lines])


def _commit_of(worktree: str, tree: str, parents: Sequence[str], text: str) -> str:
    named = [word for parent in parents for word in ("-p", parent)]
    words = ("-c", "i18n.commitEncoding=UTF-8", "commit-tree", tree, *named, "-F", "-")
    given = text.encode("utf-8", "surrogateescape")
    return git(worktree, *words, environment=dict(COMMITTER), given=given)[1].strip()


def _advance(place: Place, new: str, old: str | None) -> None:
    """Compare and swap."""
    repository, ref = place.repository, place.ref
    forget_lock(repository.common_directory, ref)
    with repository.marked({ref: new}) as mark:
        git(
            repository.path,
            *("update-ref", "--no-deref", ref, new, old or "0" * len(new)),
            shared_locks=(*place.locks, *mark.descriptors),
        )


def state_of(repository: Repository, commit: str) -> State:
    """What the last lines of a snapshot's message say. Error `git_failed` for another commit."""
    _, text = git(
        repository.path,
        *("show", "--no-patch", "--no-notes", "--encoding=UTF-8", "--format=%T%n%H%n%B"),
        *("--no-show-signature", "--end-of-options", commit),
        reads=True,
    )
    return _state(commit, *text.split("\n", 2))


def _state(commit: str, tree: str, name: str, message: str) -> State:
    lines = [line.partition(": ") for line in message.strip("\n").split("\n\n")[-1].split("\n")]
    said = {key: value for key, _, value in lines}
    if not said.get("Ref", "").startswith(_REFS) or "Index-tree" not in said:
        raise InboxOrchError(
            "git_failed",
            f"{shown(commit)} is no snapshot of a worktree",
            hint=f"`git for-each-ref {_REFS}` shows where those are",
            details={"commit": shown(commit)},
        )
    found = Snapshot(name, tree, said.get("Head"), said["Index-tree"])
    staged = any(key.startswith("Stage-") for key in said)
    only_commits = "Only" in said
    return State(
        *(found, said.get("On"), said.get("Doing"), said["Ref"]),
        *(staged, said.get("Previous"), only_commits),
    )
