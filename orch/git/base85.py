"""How much the binary contents of a patch come to, told from its text. Pure.

A few hundred bytes of it can stand for a file of gigabytes: git makes it before anybody can ask.
"""

import base64
import zlib
from collections.abc import Sequence

_MOST_HEAD_BYTES = 32
_MOST_SIZE_DIGITS = 15


def sizes_of(lines: Sequence[bytes]) -> tuple[int, int]:
    """The bytes that one block comes to: those that stand in it, and those of the file that it
    makes. `lines` are its head (`literal 12`, `delta 12`) and what follows. Raises `ValueError`,
    with why."""
    kind, _, number = lines[0].partition(b" ")
    if not number.isdigit() or len(number) > _MOST_SIZE_DIGITS:
        raise ValueError("a size in bytes has to stand here")
    size = int(number)
    data = b"".join(_decoded(line) for line in lines[1:])
    try:
        head = zlib.decompressobj().decompress(data, _MOST_HEAD_BYTES)
    except zlib.error as error:
        raise ValueError("the binary content below is damaged") from error
    return size, size if kind == b"literal" else _made_by(head)


def _decoded(line: bytes) -> bytes:
    """A letter that says how many bytes, A to Z for 1 to 26 and a to z for 27 to 52, and these."""
    first = line[:1]
    length = ord(first) - 64 if first.isupper() else ord(first) - 70 if first.islower() else 0
    try:
        content = base64.b85decode(line[1:])
    except ValueError as error:
        raise ValueError("the binary content below is damaged") from error
    if not 0 < length <= len(content):
        raise ValueError("the binary content below is damaged")
    return content[:length]


def _made_by(head: bytes) -> int:
    """The size of what a delta makes: its second number (gitformat-pack(5), "Deltified
    representation")."""
    numbers, value, shift = [], 0, 0
    for byte in head:
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            numbers.append(value)
            value, shift = 0, 0
            if len(numbers) == 2:
                return numbers[1]
    raise ValueError("the binary content below is damaged")
