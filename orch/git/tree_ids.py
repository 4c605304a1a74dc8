"""The id of a tree by the entries of an index, worked out without git (gitformat-pack(5) and
git-mktree(1) say what a tree is). Pure.

Only for telling that it is the same as one that git has written: of entries that git would put
otherwise it is another id.
"""

import hashlib
from collections.abc import Mapping

MOST_ENTRIES = 5_000
"""From more on git is quicker."""

_Folder = dict[bytes, "tuple[str, str] | _Folder"]


def tree_id(entries: Mapping[str, tuple[str, str]]) -> str | None:
    """The id of the tree with these (mode, object id) by their paths, bytes that are not UTF-8 as
    surrogates; None where there are none, or so many that git had better be asked."""
    if not 0 < len(entries) <= MOST_ENTRIES:
        return None
    top: _Folder = {}
    for path, entry in entries.items():
        *folders, name = path.encode("utf-8", "surrogateescape").split(b"/")
        inside = top
        for folder in folders:
            below = inside.setdefault(folder, {})
            if not isinstance(below, dict):
                return None  # a file and a folder of one name: no index has that
            inside = below
        if name in inside:
            return None
        inside[name] = entry
    long = len(next(iter(entries.values()))[1]) == 64
    return _hashed(top, long=long).hex()


def _hashed(folder: _Folder, *, long: bool) -> bytes:
    lines = []
    for name, entry in folder.items():
        if isinstance(entry, dict):
            lines.append((name + b"/", b"40000 " + name + b"\0" + _hashed(entry, long=long)))
        else:
            mode, blob = entry
            lines.append((name, mode.encode() + b" " + name + b"\0" + bytes.fromhex(blob)))
    content = b"".join(line for _, line in sorted(lines))
    text = b"tree %d\0" % len(content) + content
    digest = hashlib.sha256(text) if long else hashlib.sha1(text, usedforsecurity=False)
    return digest.digest()
