"""Text and bytes that a command is given: in an option, in a file, on standard input."""

import os
import select
import sys

from .errors import usage
from .ids import printable
from .live import refuse_live


def given_text(text: str | None, path: str | None, most_bytes: int) -> str | None:
    """The body from `--body` or from `--body-file`, None when neither is given.

    Of a file at most `most_bytes` + 1 bytes are read, so that the caller sees that it is too
    large. Error `usage`.
    """
    if text is not None and path is not None:
        raise usage("give either --body-file or --body, not both")
    if path is None:
        return text
    return decode_body(read_input(path, most_bytes), most_bytes)


def decode_body(content: bytes, most_bytes: int) -> str:
    """Bytes from outside as text; error `usage` with the offset of the first wrong byte."""
    if len(content) > most_bytes:
        raise usage(
            f"the body has more than {most_bytes} bytes", hint="attach it as a file with --attach"
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise usage(
            f"the body is not UTF-8: byte {error.start} is 0x{content[error.start]:02x}",
            hint="convert it to UTF-8, or attach it as a file with --attach",
            offset=error.start,
        ) from error


def read_input(path: str, most_bytes: int) -> bytes:
    """At most `most_bytes` + 1 bytes of a file or of standard input (`-`); error `usage`.

    Commands read before they open the database: its file harms nobody then. A process with
    several threads has it open while it serves.
    """
    try:
        if path == "-":
            if sys.stdin is None:
                raise usage("standard input is closed", hint="give the text in a file")
            return _read_descriptor(sys.stdin.fileno(), most_bytes + 1)
        refuse_live(path)
        with open(path, "rb") as file:
            return file.read(most_bytes + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise usage(f"cannot read {printable(path)}: {reason}", path=printable(path)) from error


def _read_descriptor(descriptor: int, most: int) -> bytes:
    """At most `most` bytes, up to the end. A caller may have left its end of the pipe
    non-blocking; then nothing there yet is not the end."""
    content = bytearray()
    while len(content) < most:
        try:
            part = os.read(descriptor, min(most - len(content), 1024 * 1024))
        except BlockingIOError:
            select.select([descriptor], [], [])
            continue
        if not part:
            break
        content += part
    return bytes(content)
