"""Whether objects are what their names say. Of most that it reads git believes that: one that was
written over would be looked at as one thing, and come in as another. Reads only.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, cast

from inbox_orch.shared.errors import InboxOrchError

from .commands import git, git_bytes

_MOST_NAMED = 5
_MOST_HEADER_BYTES = 4096


def require_genuine(
    folder: str,
    heads: Sequence[str],
    base: str,
    environment: Mapping[str, str] | None = None,
) -> dict[str, int]:
    """Each object that commits (or trees) bring in beside those of a base has the content that its
    name says; returns how many bytes the files among them have. Error `git_failed`, also where one
    is not here."""
    within = None if environment is None else dict(environment)
    words = ("rev-list", "--objects", "--no-object-names", "--stdin")
    asked = "".join(f"{each}\n" for each in (*heads, f"^{base}")).encode()
    _, names = git(folder, *words, reads=True, given=asked, environment=within)
    if not names:
        return {}
    seen = _Seen(hashlib.sha1 if len(base) == 40 else hashlib.sha256)
    git_bytes(
        folder,
        *("cat-file", "--batch", "--buffer"),
        given=names.encode(),
        output=cast(BinaryIO, seen),
        environment=within,
    )
    if seen.wrong:
        more = f" and {len(seen.wrong) - _MOST_NAMED} more" if seen.wrong[_MOST_NAMED:] else ""
        raise InboxOrchError(
            "git_failed",
            f"not what their names say, in git's objects: {', '.join(seen.wrong[:_MOST_NAMED])}"
            f"{more}",
            hint="they are damaged, or somebody has written them over: `git fsck` tells which;"
            " `git fetch` from a clone that has them, after they were moved away, brings them back",
            details={"folder": folder, "objects": seen.wrong[:100]},
        )
    return seen.sizes


class _Seen:
    """Takes what `git cat-file --batch` writes as it comes (git-cat-file(1), BATCH OUTPUT), and
    keeps none of it but the names of what is not there, or is another's, and the sizes of files."""

    def __init__(self, kind: Any) -> None:
        self.wrong: list[str] = []
        self.sizes: dict[str, int] = {}
        self._kind, self._rest, self._left = kind, b"", 0
        self._name, self._digest = "", kind()

    def write(self, content: bytes) -> int:
        rest = self._rest + content if self._rest else content
        at = 0
        while at < len(rest):
            if self._left:
                at = self._read(rest, at)
                continue
            end = rest.find(b"\n", at)
            if end < 0:
                break
            self._begin(rest[at:end].decode("ascii", "replace"))
            at = end + 1
        self._rest = rest[at:]
        assert self._left or len(self._rest) < _MOST_HEADER_BYTES, "git writes lines there"
        return len(content)

    def _begin(self, header: str) -> None:
        name, *facts = header.split(" ")
        if len(facts) != 2:
            self.wrong.append(name)  # "missing"
            return
        size = int(facts[1])
        if facts[0] == "blob":
            self.sizes[name] = size
        self._name, self._left = name, size + 1  # a line's end comes after it
        self._digest = self._kind(f"{facts[0]} {facts[1]}\0".encode())

    def _read(self, content: bytes, at: int) -> int:
        """Go on with the content of the object that was begun, up to where it ends."""
        end = min(len(content), at + self._left)
        self._left -= end - at
        self._digest.update(content[at : end if self._left else end - 1])
        if not self._left and self._digest.hexdigest() != self._name:
            self.wrong.append(self._name)
        return end
