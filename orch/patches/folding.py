"""Names that some disks take for the same. Pure.

Where files are kept decides what counts: upper and lower case are one on most disks of macOS and
Windows, composed and decomposed letters on those of macOS, which also leave out characters that are
not seen; Windows leaves out dots and blanks at the end of a name and takes what follows a colon for
a stream of the file, and has a short name for each one that is long (`CREDEN~1.JSO`).
"""

from typing import NamedTuple

# Characters that HFS+ leaves out of a name when it compares.
UNSEEN = dict.fromkeys(
    (*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF)
)
_MOST_STEM, _MOST_EXTENSION, _MOST_KEPT = 8, 3, 6
_REPLACED = str.maketrans("+,;=[]", "______", " ")
_HEX = frozenset("0123456789abcdef")


def folded(text: str) -> str:
    """A path, or a name, by which those that differ in case, composition or what is not seen are
    the same."""
    if text.isascii():
        return text.lower()
    from unicodedata import normalize

    return normalize("NFC", normalize("NFD", text.translate(UNSEEN)).casefold())


def of_windows(path: str) -> str | None:
    """The path by which Windows would open the same file; None where that is the path itself."""
    if not (path.endswith((".", " ")) or ":" in path or "./" in path or " /" in path):
        return None
    names = [name.partition(":")[0].rstrip(" .") or name for name in path.split("/")]
    found = "/".join(names)
    return None if found == path else found


# -- short names ---------------------------------------------------------------------------------


class Short(NamedTuple):
    """A name of at most eight characters and three, as `CREDEN~1.JSO`, in lower case: what stands
    before the `~`, the number behind it, and the extension."""

    stem: str
    number: str
    extension: str


def short(name: str) -> Short | None:
    """What a name says if it is the short one of another; None where it is not of that form."""
    if "~" not in name or not name.isascii():
        return None
    base, _, extension = name.lower().partition(".")
    stem, _, number = base.rpartition("~")
    fits = len(base) <= _MOST_STEM and len(extension) <= _MOST_EXTENSION and "." not in extension
    return Short(stem, number, extension) if fits and stem and number.isdigit() else None


def is_of(found: Short, name: str) -> bool:
    """Whether a short name may be that of this name, which is folded."""
    if _needs_none(name):
        return False
    base, dot, extension = name.lstrip(".").rpartition(".")
    if _plain(extension if dot else "")[:_MOST_EXTENSION] != found.extension:
        return False
    begins = _plain(base if dot else extension)
    kept = min(_MOST_KEPT, _MOST_STEM - 1 - len(found.number))
    return _is_numbered(found, begins) or found.stem == begins[:kept]


def is_of_some(found: Short, head: str, tail: str) -> bool:
    """Whether a short name may be that of a name that begins and ends so; both are folded."""
    _, dot, extension = tail.rpartition(".")
    if dot and _plain(extension)[:_MOST_EXTENSION] != found.extension:
        return False
    begins = _plain(head)
    return _is_numbered(found, begins) or _agree(found.stem, begins)


def _needs_none(name: str) -> bool:
    """A name that is short by itself has no other."""
    base, _, extension = name.partition(".")
    fits = len(base) <= _MOST_STEM and len(extension) <= _MOST_EXTENSION and "." not in extension
    return bool(base) and fits and name.isascii() and name == name.translate(_REPLACED)


def _plain(part: str) -> str:
    """As it goes into a short name: without dots and blanks."""
    return part.replace(".", "").translate(_REPLACED)


def _is_numbered(found: Short, begins: str) -> bool:
    """Whether nearly any name that begins so may have it: other letters than those of ASCII become
    whatever the system likes; and once a few names begin alike, four digits stand in for most."""
    if not begins[:_MOST_KEPT].isascii():
        return True
    stem = found.stem
    return len(stem) == _MOST_KEPT and set(stem[2:]) <= _HEX and _agree(stem[:2], begins)


def _agree(one: str, other: str) -> bool:
    length = min(len(one), len(other))
    return one[:length] == other[:length]
