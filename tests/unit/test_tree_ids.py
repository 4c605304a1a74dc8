"""The id of a tree, worked out without git, is the one that git gives it."""

import subprocess
from pathlib import Path

from inbox_orch.orch.git.tree_ids import MOST_ENTRIES, tree_id

BLOB = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
NAMES = ("a", "a.b", "a/b", "a0", "b/c/d", "b/c.d", "b-", "\u00e9", "z/\udcff")


def written(folder: Path, entries: dict[str, tuple[str, str]]) -> str:
    """What git makes of them."""
    lines = "".join(f"{mode} {name}\t{path}\0" for path, (mode, name) in entries.items())
    given = lines.encode("utf-8", "surrogateescape")

    def git(*words: str, given: bytes = b"") -> str:
        done = subprocess.run(
            ["git", *words], cwd=folder, input=given, stdout=subprocess.PIPE, check=True
        )
        return done.stdout.decode().strip()

    git("init", "--quiet")
    git("update-index", "-z", "--index-info", given=given)
    return git("write-tree", "--missing-ok")


def test_it_is_the_one_that_git_gives(tmp_path: Path):
    entries = {name: ("100644", BLOB) for name in NAMES if name != "a"}
    entries |= {"run": ("100755", BLOB), "link": ("120000", BLOB), "module": ("160000", BLOB)}

    assert tree_id(entries) == written(tmp_path, entries)


def test_what_no_index_has_or_git_does_quicker_has_none():
    entry = ("100644", BLOB)

    assert tree_id({}) is None
    assert tree_id({"a": entry, "a/b": entry}) is None
    assert tree_id({"a/b": entry, "a": entry}) is None
    assert tree_id({str(n): entry for n in range(MOST_ENTRIES + 1)}) is None


def test_longer_ids_give_a_longer_one():
    entries = {"a": ("100644", "0" * 64)}

    assert len(tree_id(entries) or "") == 64
