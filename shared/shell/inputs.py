"""Text and bytes that a command is given: in an option, in a file, on standard input."""

import os
import re
import select
import sys

from ..errors import usage
from ..ids import printable, quoted
from ..store.live import refuse_live
from .output import Output


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


def given_document(given: str | None, most_bytes: int) -> str | None:
    """The JSON that an option gives: itself, or a file that has it, or `-`. Error `usage`."""
    if given is None or given.lstrip().startswith("{"):
        return given
    content = read_input(given.removeprefix("@"), most_bytes)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise usage(f"{printable(given)} is not UTF-8: byte {error.start}") from error


# What a shell takes for the end of a text is often quoted where the text begins, and then ends up
# in it: `EOF'`, or an indented `EOF`.
_DELIMITER = re.compile(
    r"(?:EOF|EOT|EOM|HEREDOC|[A-Z][A-Z0-9_]{0,30}_(?:EOF|END))[^\w\s]{0,3}"
    r"|[A-Z][A-Z0-9_]{1,30}['\"`\\][^\w\s]{0,2}|['\"\\][A-Z][A-Z0-9_]{1,30}['\"]?"
)


def stray_delimiter(text: str) -> str | None:
    """The last line of a text, if it is nothing but the delimiter of a here-document, which the
    shell did not take for its end; None for any other text."""
    last = text.rstrip().rpartition("\n")[2].strip()
    return last if _DELIMITER.fullmatch(last) and last != text.strip() else None


def warn_of_delimiter(text: str, output: Output) -> None:
    """Tell the author of a text that its here-document did not end where it was meant to."""
    last = stray_delimiter(text)
    if last is not None:
        output.complain(
            f"warning: the body ends with the line {quoted(last)}, which looks like the end of a "
            "here-document; give the delimiter on a line of its own, without quotes or blanks"
        )


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

    Commands read before they open the database: its file does no harm then. A process with
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
