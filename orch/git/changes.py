"""What a change is, as values. Pure; `facts` reads them."""

from typing import NamedTuple


class Change(NamedTuple):
    """One path in which two trees differ; bytes of it that are not UTF-8 as surrogates.

    `status` is `A`, `D`, `M`, or `T` where a file became a link or the like; a rename is one that
    goes and one that comes, so that `old_path` is always None. Modes are as git writes them
    ("100644", "100755", "120000" a link, "160000" a submodule), None where there is no such file;
    of a submodule the blob is its commit. `size` is that of the new content in bytes, 0 without
    one. It is `binary` when a zero byte is in the new content, or git counts no lines of it (there
    is one near the beginning, before or after, or it is larger than 16 MiB): of that all lines
    count, before and after. `link_target` is where a new link leads.
    """

    path: str
    old_path: str | None
    status: str
    old_mode: str | None
    new_mode: str | None
    old_blob: str | None
    new_blob: str | None
    size: int
    binary: bool
    insertions: int
    deletions: int
    link_target: str | None


class Facts(NamedTuple):
    """The files of a change, in git's order, and the lines of all of them."""

    files: tuple[Change, ...]
    insertions: int
    deletions: int
