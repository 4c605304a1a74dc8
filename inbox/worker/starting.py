"""The start of a thread's command: the files in its private folder, and its process."""

import os
from collections.abc import Mapping, Sequence

from inbox_orch.shared.processes.children import Child
from inbox_orch.shared.processes.kept import Kept

from ..bus import Bus
from ..domain.model import Thread
from .task import Terms, clear_away, write_task


def prepare(bus: Bus, thread: Thread, folder: str) -> int:
    """Write the task file anew, and clear away what an earlier run has left; the id of the last
    message in it. Raises OSError."""
    for name in ("task", "result", "usage"):
        clear_away(os.path.join(folder, name))
    return write_task(bus, thread, os.path.join(folder, "task"))


def start(
    command: Sequence[str], terms: Terms, environment: Mapping[str, str], folder: str
) -> Child:
    """The process of the command, with the task file of `folder` as its input. Raises OSError."""
    with open(os.path.join(folder, "task"), "rb") as task:
        return Child.start(
            command,
            folder=terms.folder,
            environment=environment,
            stdin=task.fileno(),
            stdout=Kept("stdout", "inbox work"),
            stderr=Kept("stderr", "inbox work"),
        )
