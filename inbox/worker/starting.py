"""The start of a thread's command: the files in its private folder, and its process."""

import os
from collections.abc import Mapping, Sequence

from inbox_orch.shared.processes.children import Child
from inbox_orch.shared.processes.kept import Kept

from ..bus import Bus
from ..domain.model import Thread
from .task import Terms, clear_away, write_task


def prepare(bus: Bus, thread: Thread, folder: str, asked: str | None = None) -> int:
    """Write the task file anew, and clear away what an earlier run has left; the id of the last
    message in it. What is `asked` of one that has had the task stands at its end. Raises
    OSError."""
    for name in ("task", "result", "usage", "asked"):
        clear_away(os.path.join(folder, name))
    task = os.path.join(folder, "task")
    last = write_task(bus, thread, task)
    if asked is not None:
        with open(task, "ab") as file:
            file.write(f"\n\n---\n\n{asked}".encode())
        with open(os.path.join(folder, "asked"), "xb") as file:
            file.write(asked.encode())
    return last


def start(
    command: Sequence[str], terms: Terms, environment: Mapping[str, str], folder: str
) -> Child:
    """The process of the command. Its input is the task file of `folder`, or what it is asked
    besides. Raises OSError."""
    asked = os.path.join(folder, "asked")
    given = asked if os.path.exists(asked) else os.path.join(folder, "task")
    with open(given, "rb") as task:
        return Child.start(
            command,
            folder=terms.folder,
            environment=environment,
            stdin=task.fileno(),
            stdout=Kept("stdout", "inbox work"),
            stderr=Kept("stderr", "inbox work"),
        )
