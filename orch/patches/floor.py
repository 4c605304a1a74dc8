"""What no change may bring in, whatever a policy says. Pure.

Names are judged for all systems at once: a repository that is written here may be checked out
where upper and lower case are one, or where a backslash separates folders.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from .folding import UNSEEN, folded

LINK, MODULE = "120000", "160000"
"""Modes in a tree (git-fast-import(1))."""
MOST_NAME_BYTES, MOST_PATH_BYTES = 255, 4095
_MOST_LINKS_FOLLOWED = 40

RULES = {
    "git_folder": "a path belongs to git itself: it has `.git` in it, or a name that is the same"
    " on some disks",
    "outside": "a path is absolute, or leads upwards",
    "link_outside": "a symbolic link leads out of the repository, or into what is git's own",
    "name_collision": "two names differ in the case of letters alone, and are one file on some"
    " disks",
    "nested_repository": "a repository of its own that `.gitmodules` does not name",
    "name_length": "a name is longer than 255 bytes, or a path than 4095: it could not be checked"
    " out",
}
"""What each of its rules is about, by name."""


_SUSPECT = re.compile(r"git|[\\:]|[^\0-\x7f]|(?:\A|/)\.{0,2}(?:/|\Z)", re.IGNORECASE)


class Breach(NamedTuple):
    """A path that breaks a rule of the floor; `why` in words, without the path."""

    rule: str
    path: str
    why: str


def of_name(path: str) -> Iterator[Breach]:
    """What a path breaks by its name alone."""
    # Nearly every path is harmless, and there may be many.
    if len(path) < MOST_NAME_BYTES // 4 and _SUSPECT.search(path) is None:
        return
    names = path.replace("\\", "/").split("/")
    if any(is_gits(name) for name in names):
        yield Breach("git_folder", path, "belongs to git itself")
    drive = path[:1].isalpha() and path[1:2] == ":" and path[2:3] in ("/", "\\")
    if drive or not all(path.split("/")) or {".", ".."}.intersection(names) or names[0] == "":
        yield Breach("outside", path, "is absolute, or leads upwards")
    if len(path) * 4 > MOST_NAME_BYTES and _too_long(path):
        yield Breach("name_length", path, "is too long to be checked out")


def _too_long(path: str) -> bool:
    encoded = path.encode("utf-8", "surrogateescape")
    return len(encoded) > MOST_PATH_BYTES or any(
        len(name) > MOST_NAME_BYTES for name in encoded.split(b"/")
    )


def is_gits(name: str) -> bool:
    """Whether a name is `.git`, also where disks compare in other ways: without case, without
    what is not seen, as the short name, as a stream or with what Windows leaves out at the end."""
    if not name.isascii():
        name = name.translate(UNSEEN)
    if len(name) < 4 or name[:3].lower() not in (".gi", "git"):
        return False
    plain = name.lower().partition(":")[0].rstrip(" .")
    return plain in (".git", "git~1")


def is_nested(path: str, old_mode: str | None, mode: str | None, declared: Collection[str]) -> bool:
    """Whether a path becomes a repository of its own that is no declared submodule."""
    return mode == MODULE and old_mode != MODULE and path not in declared


# -- names that are one ----------------------------------------------------------------------


def collisions(added: Iterable[str], present: Iterable[str]) -> Iterator[Breach]:
    """The added paths that are one with another path, or whose folder is, where the case of letters
    does not count. `present` are all paths of the new tree, the added ones among them."""
    spelled: dict[str, str] = {}
    others: dict[str, str] = {}
    for way in _ways(present):
        same = spelled.setdefault(folded(way), way)
        if same != way:
            others[same], others[way] = way, same
    if not others:
        return
    for path in added:
        for way in _prefixes(path):
            if way in others:
                why = f"is the same as {others[way]} where the case of letters does not count"
                yield Breach("name_collision", path, why)
                break


def _ways(paths: Iterable[str]) -> set[str]:
    """The paths, and the folders that they lie in."""
    found = set(paths)
    folders = {path.rpartition("/")[0] for path in found}
    while folders := folders - found - {""}:
        found |= folders
        folders = {folder.rpartition("/")[0] for folder in folders}
    return found


def _prefixes(path: str) -> Iterator[str]:
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)
    yield path


# -- where links lead ------------------------------------------------------------------------


def leads_out(path: str, target: str, links: Mapping[str, str] | None = None) -> bool:
    """Whether a link at this path leads out of the repository, or into what is git's own. `links`
    are all links of the tree with their targets: those on the way are followed."""
    return _followed(path, target, links or {})[0]


def led_out(links: Mapping[str, str], changed: Collection[str]) -> Iterator[Breach]:
    """The links of a tree that lead out of it by what was changed: they are new, or
    something on their way is."""
    for path, target in links.items():
        out, way = _followed(path, target, links)
        if out and not way.isdisjoint(changed):
            yield Breach("link_outside", path, f"leads out of the repository, to {target}")


def _followed(path: str, target: str, links: Mapping[str, str]) -> tuple[bool, set[str]]:
    """Whether it leads out, and the paths on the way."""
    at, ahead, met, hops = path.split("/")[:-1], [target], {path}, 0
    if not target or target.startswith(("/", "\\")) or len(target) > MOST_PATH_BYTES:
        return True, met
    while ahead:
        part, _, rest = ahead.pop().partition("/")
        if rest:
            ahead.append(rest)
        if part in ("", "."):
            continue
        if part == "..":
            if not at:
                return True, met
            at.pop()
            continue
        at.append(part)
        here = "/".join(at)
        met.add(here)
        if is_gits(part) or links.get(here, ".").startswith("/") or links.get(here) == "":
            return True, met
        if here in links and (hops := hops + 1) <= _MOST_LINKS_FOLLOWED:
            at.pop()
            ahead.append(links[here])
        elif here in links:
            return False, met  # a circle leads nowhere
    return False, met
