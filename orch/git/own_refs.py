"""The refs that a worktree has for itself, asked of git: in which files they are, and whether in
any of its own, depends on the format of refs (git-init(1), --ref-format).

Reads only.
"""

from collections.abc import Iterator
from typing import NamedTuple

from .commands import git

# Those that git keeps outside of `refs/` (gitglossary(7), "pseudoref"), without FETCH_HEAD: what
# was only fetched is not work.
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


class Names(NamedTuple):
    """What names of a worktree are at, None where there is nothing: `head` a commit, `head_tree`
    its tree, `at` what was asked for, `content` the bytes of that, and `pseudo` as `pseudo_refs`
    gives them."""

    pseudo: dict[str, str]
    head_tree: str | None
    at: str | None
    content: bytes

    @property
    def head(self) -> str | None:
        return self.pseudo.get("HEAD")


def names(worktree: str, ref: str) -> Names:
    """All of that in one call. Error `git_failed`."""
    asked = [*_PSEUDO, "HEAD^{tree}"]
    lines = [*(f"info {name}\n" for name in asked), f"contents {ref}\n"]
    words = ("cat-file", "--batch-command")
    _, text = git(worktree, *words, reads=True, given="".join(lines).encode())
    *told, last = text.split("\n", len(asked))
    ids = {name: _id_of(line) for name, line in zip(asked, told, strict=True)}
    head_tree = ids.pop("HEAD^{tree}")
    first, _, content = last.encode("utf-8", "surrogateescape").partition(b"\n")
    at = _id_of(first.decode("utf-8", "surrogateescape"))
    return Names(
        {name: each for name, each in ids.items() if each is not None},
        head_tree,
        at,
        b"" if at is None else content[: int(first.split(b" ")[2])],
    )


def _id_of(line: str) -> str | None:
    return None if line.endswith(" missing") else line.split(" ", 1)[0]


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
