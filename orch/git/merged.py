"""Whether the work of a branch is in another one, however it got there. Changes no ref."""

from collections.abc import Sequence
from typing import NamedTuple

from .commands import git, with_settings
from .repository import Repository, branch_first

SNAPSHOTS = "refs/orch/attempts/*"
"""The refs of snapshots, which prove of no work that it is elsewhere."""


class Target(NamedTuple):
    """A ref that stays, and its commit."""

    ref: str
    commit: str


class Proof(NamedTuple):
    """Where the work is: in a target's history (`ancestor`), as the same tree (`same_tree`), or
    in such a way that a merge would add nothing (`adds_nothing`: squashed by hand, say). Or there
    is none, and the commit is kept by another ref (`no_commits`, with no target)."""

    how: str
    target: Target | None


def target_of(repository: Repository, name: str) -> Target | None:
    """The ref that a name means; None when it means none that stays, such as a bare commit id
    or a detached HEAD."""
    status, ref = git(
        repository.path,
        *("rev-parse", "--verify", "--quiet", "--symbolic-full-name", "--end-of-options"),
        branch_first(repository, name),
        reads=True,
        accepted=(0, 1, 128),
    )
    # 2.39 repeats --end-of-options in its output.
    ref = ref.strip().split("\n")[-1]
    if status != 0 or not ref.startswith("refs/"):
        return None
    commit = repository.ref_commit(f"{ref}^{{commit}}")
    return None if commit is None else Target(ref, commit)


def proof_of(repository: Repository, commit: str, targets: Sequence[Target]) -> Proof | None:
    """The strongest proof that the work of a commit is in one of the targets; None if there is
    none. Error `git_failed`."""
    for target in targets:
        if repository.contains(target.commit, commit):
            return Proof("ancestor", target)
    tree = _tree_of(repository, commit)
    for target in targets:
        if _tree_of(repository, target.commit) == tree:
            return Proof("same_tree", target)
    for target in targets:
        if _merge_adds_nothing(repository, commit, target):
            return Proof("adds_nothing", target)
    return None


def kept_elsewhere(repository: Repository, commit: str, but: Sequence[str]) -> bool:
    """Whether any ref besides those named keeps a commit."""
    _, text = git(
        repository.path,
        *("rev-list", "--max-count=1", commit, "--not"),
        *(f"--exclude={ref}" for ref in (*but, SNAPSHOTS)),
        "--glob=refs/*",
        reads=True,
    )
    return not text.strip()


def _tree_of(repository: Repository, commit: str) -> str | None:
    return repository.ref_commit(f"{commit}^{{tree}}")


def _by_content_alone(repository: Repository) -> dict[str, str]:
    """Variables with which a file that is merged in another way than by its text is a conflict:
    by a user's program, which may well say that one side counts for nothing ("ours"), or
    by taking the lines of both ("union"), to which what was deleted adds nothing."""
    _, text = git(
        repository.path,
        *("config", "--null", "--name-only", "--get-regexp", r"^merge\..*\.driver$"),
        reads=True,
        accepted=(0, 1),
    )
    names = ("merge.union.driver", *filter(None, text.split("\0")))
    drivers = dict.fromkeys(names, "false")
    return with_settings({**drivers, "merge.renormalize": "false"}.items())


def _merge_adds_nothing(repository: Repository, commit: str, target: Target) -> bool:
    status, text = git(
        repository.path,
        *("merge-tree", "--write-tree", "-z", "--no-messages", target.commit, commit),
        reads=True,
        # No common history is an error; so is a conflict: neither proves anything.
        accepted=(0, 1, 128),
        environment=_by_content_alone(repository),
    )
    return status == 0 and text.rstrip("\0\n") == _tree_of(repository, target.commit)
