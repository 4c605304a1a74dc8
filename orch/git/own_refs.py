"""The refs that a worktree has for itself, asked of git: in which files they are, and whether in
any of its own, depends on the format of refs (git-init(1), --ref-format).

Reads only.
"""

from collections.abc import Iterator

from .commands import git

# Those that git keeps outside of `refs/` (gitglossary(7), "pseudoref"), without FETCH_HEAD: what
# was only fetched is nobody's work.
_PSEUDO = (
    *("HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD"),
    *("BISECT_HEAD", "AUTO_MERGE", "MERGE_AUTOSTASH"),
)
# Those that each worktree has for itself (git-worktree(1), "Refs").
_NAMESPACES = ("refs/bisect", "refs/worktree", "refs/rewritten")


def pseudo_refs(worktree: str) -> dict[str, str]:
    """The object ids of the pseudo refs that there are, by their names. Error `git_failed`."""
    _, text = git(
        worktree,
        *("cat-file", "--batch-check=%(objectname)"),
        reads=True,
        given="".join(f"{name}\n" for name in _PSEUDO).encode(),
    )
    found = zip(_PSEUDO, text.splitlines(), strict=True)
    return {name: line for name, line in found if not line.endswith(" missing")}


def own_ids(worktree: str) -> Iterator[str]:
    """Every object id that a worktree's own refs and their reflogs name, newest first; some may be
    there no more. Error `git_failed`."""
    yield from pseudo_refs(worktree).values()
    form = "--format=%(objectname) %(refname)"
    _, text = git(worktree, "for-each-ref", form, *_NAMESPACES, reads=True)
    refs = [line.split(" ", 1) for line in text.splitlines()]
    yield from (name for name, _ in refs)
    for ref in ("HEAD", *(ref for _, ref in refs)):
        # It ends with an error after what it can read, or where there is nothing.
        _, text = git(
            worktree, "rev-list", "--walk-reflogs", ref, "--", reads=True, accepted=(0, 128, 129)
        )
        yield from text.split()
