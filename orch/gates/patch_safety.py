"""The gate `patch-safety`: what no change may bring in, judged by its files as git has them. Pure.

Who calls feeds it with what git says of the two trees; nothing is run.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ..patches.floor import LINK, MODULE, is_gits, leads_out
from .definitions import Gate
from .readers.reading import Found, Reading

MOST_FILE_BYTES = 50 * 1024 * 1024
_GITS_FILES = frozenset({".gitattributes", ".gitmodules"})
# Where hooks are that are kept in a repository: folders that `core.hooksPath` often names.
_HOOK_FOLDERS = frozenset({".githooks", ".husky", ".hooks"})


class RawChange(NamedTuple):
    """One path that two trees have different. The modes are those of git, `000000` where there is
    no file; `size` in bytes and `target`, of a link, are those of the new one."""

    path: str
    old_mode: str
    mode: str
    size: int = 0
    target: str | None = None

    @property
    def removed(self) -> bool:
        """Whether there is no file any more."""
        return not self.mode.strip("0")


def judged(gate: Gate, changes: Iterable[RawChange], most_bytes: int = MOST_FILE_BYTES) -> Reading:
    """What the gate says of changes; ids are `path:rule`."""
    found = Found()
    for change in changes:
        for rule, text in _broken(change, most_bytes):
            found.add(f"{change.path}:{rule}", f"{change.path}: {text}")
    return found.failed(gate) if found else Reading("passed")


def _broken(change: RawChange, most_bytes: int) -> Iterable[tuple[str, str]]:
    folders = change.path.split("/")
    if any(map(is_gits, folders)):
        yield "git", "it belongs to git itself"
    if folders[-1].lower() in _GITS_FILES:
        yield "git-settings", "it changes how git treats files"
    if _HOOK_FOLDERS.intersection(part.lower() for part in folders[:-1]):
        yield "hook", "it may be run by git, as a hook"
    if MODULE in (change.mode, change.old_mode):
        yield "submodule", "it is a repository of its own, or was one"
    if change.removed:
        return
    if change.mode == LINK and leads_out(change.path, change.target or ""):
        yield "link", f"it leads out of the repository, to {change.target}"
    if change.size > most_bytes:
        yield "size", f"it has {change.size} bytes, and at most {most_bytes} are let in"
