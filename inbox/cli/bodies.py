"""One body alone: as it is, or as a file. Loaded only where that is asked for."""

import io
import os
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError, not_found, usage
from inbox_orch.shared.ids import printable
from inbox_orch.shared.shell.blocks import Sentence, harmless
from inbox_orch.shared.shell.output import Output
from inbox_orch.shared.shell.writing import write_file

from ..bus import Bus
from ..domain.model import Message
from ..services.reading import Shown


class Alone(NamedTuple):
    """Which body is to be had alone, and where to."""

    raw: bool
    body_to: str | None
    message_id: str | None

    def checked(self, output: Output) -> "Alone":
        """Itself; error `usage` for what does not go together."""
        if not self.raw and self.body_to is None:
            raise usage("--message goes with --raw or --body-to")
        if self.raw and self.body_to is not None:
            raise usage("--raw and --body-to exclude each other")
        if self.raw and output.as_json:
            raise usage("--raw and --json exclude each other")
        return self

    def of(self, shown: Shown) -> Message:
        """The message that is meant; error `not_found`."""
        if self.message_id is None:
            return shown.messages[0]
        found = (each for each in shown.messages if str(each.id) == self.message_id)
        message = next(found, None)
        if message is None:
            raise not_found(
                "message",
                printable(self.message_id),
                hint=f"`inbox show {shown.thread.id} --full` has them all",
            )
        return message

    def hand_out(self, output: Output, bus: Bus, shown: Shown) -> None:
        """The body, to standard output as it is (made harmless on a terminal), or into the file.
        Errors: `usage`, `not_found`, those of writing."""
        message = self.of(shown)
        if self.body_to is not None:
            check_body_target(bus, self.body_to)
            write_body(message, self.body_to)
            path = os.path.abspath(self.body_to)
            text = f"Wrote {message.body_bytes} bytes to {path}"
            output.result({"message": message.as_json(), "path": path}, Sentence(text, (path,)))
        elif output.on_terminal:
            text = body_bytes(message).decode("utf-8", "replace")
            output.text(harmless(text, lines=True) + "\n")
        else:
            output.raw(body_bytes(message))


def check_body_target(bus: Bus, path: str) -> None:
    """Error `usage` for a file that no body can be written to, before anything is done."""
    folder = os.path.dirname(os.path.abspath(path))
    if bus.database.layout.holds(path):
        raise usage(f"{printable(path)} belongs to a database", hint="name another file")
    if path == "-" or os.path.isdir(path) or not os.access(folder, os.W_OK):
        raise usage(
            f"no body can be written to {printable(path)}",
            hint="name a file in a folder that is there and can be written",
        )


def write_body(message: Message, path: str) -> None:
    """The body of a message as a file, whole or not at all. Errors: those of writing it;
    `not_found` when it was pruned."""
    write_file(os.path.abspath(path), io.BytesIO(body_bytes(message)))


def body_bytes(message: Message) -> bytes:
    """The body alone. Error `not_found` when it was pruned."""
    if message.body is None:
        raise InboxOrchError(
            "not_found",
            f"the body of message {message.id} was pruned",
            hint="a backup may have it still; `inbox show` has what is left of the thread",
        )
    return message.body.encode("utf-8", "surrogateescape")
