"""What is kept of a command's output: its head and its tail, in bounded memory."""

from typing import Protocol

from .endings import CUT_NOTE

HEAD_BYTES = 128 * 1024
TAIL_BYTES = 384 * 1024


class Through(Protocol):
    """What a stream goes through before it is kept, with bytes held back between two chunks."""

    def add(self, chunk: bytes) -> bytes:
        """What may be kept now."""

    def finish(self) -> bytes:
        """What was held back, once the stream has ended."""


class Kept:
    """The head and the tail of one stream; short streams are kept whole."""

    def __init__(self, name: str, by: str, through: Through | None = None) -> None:
        """`by` is the program that says so where bytes are left out."""
        self._through = through
        self.name, self._by = name, by
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        self._keep(chunk if self._through is None else self._through.add(chunk))

    def finish(self) -> None:
        """The stream has ended."""
        if self._through is not None:
            self._keep(self._through.finish())

    def _keep(self, chunk: bytes) -> None:
        self.total += len(chunk)
        room = HEAD_BYTES - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        # Cut only now and then: each cut moves what stays.
        if len(self._tail) > 2 * TAIL_BYTES:
            del self._tail[:-TAIL_BYTES]

    def content(self) -> bytes:
        """The whole stream, or its head and tail with a line between them that says how many
        bytes are left out."""
        if self.total <= HEAD_BYTES + TAIL_BYTES:
            return bytes(self._head + self._tail)
        left_out = self.total - HEAD_BYTES - TAIL_BYTES
        gap = f"\n[{self._by}: {left_out} bytes of {self.name} are left out here]\n"
        return bytes(self._head) + gap.encode() + bytes(self._tail[-TAIL_BYTES:])

    def tail_text(self, most: int) -> str:
        """The last `most` bytes as text that can be a body; says so when that is not all."""
        if self.total <= HEAD_BYTES + TAIL_BYTES:
            whole = bytes(self._head + self._tail)
        else:
            whole = bytes(self._tail)
        text = _start_of_character(whole[-most:]).decode("utf-8", "replace").replace("\0", "\ufffd")
        if self.total > most:
            text = f"{CUT_NOTE}{self.total} bytes; see the artifact {self.name}]\n{text}"
        return text


def _start_of_character(cut: bytes) -> bytes:
    """Without the rest of a UTF-8 character that was cut in two."""
    start = 0
    while start < min(3, len(cut)) and cut[start] & 0xC0 == 0x80:
        start += 1
    return cut[start:]
