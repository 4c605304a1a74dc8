"""Trees put together of two others, in an index of our own; new objects go to those of the
repository, where nothing refers to them yet."""

from collections.abc import Collection

from .commands import git
from .facts import differences
from .failures import shown
from .repository import Repository
from .sealed import sealed_folder


def taken_back(repository: Repository, base: str, tree: str, changed: Collection[str]) -> str:
    """A tree, but that files that both have are as the other one has them unless their paths (as
    they are shown) are among the changed ones. So what lies in a worktree through filters is no
    change where git sees none. Errors: `git_failed`, `disk_full`, `io_error`."""
    with sealed_folder(repository) as sealed:
        same = [
            (raw.path, raw.old)
            for raw in differences(sealed, base, tree)
            if raw.old is not None and raw.new is not None and shown(raw.path) not in changed
        ]
        if not same:
            return tree
        within = sealed.on(sealed.folder)
        del within["GIT_WORK_TREE"]
        git(sealed.folder, "read-tree", tree, environment=within)
        lines = "".join(f"{mode} {name}\t{path}\0" for path, (mode, name) in same)
        words = ("update-index", "-z", "--index-info")
        given = lines.encode("utf-8", "surrogateescape")
        git(sealed.folder, *words, environment=within, given=given)
        return git(sealed.folder, "write-tree", "--missing-ok", environment=within)[1].strip()
