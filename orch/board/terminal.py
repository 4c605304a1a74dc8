"""The board's app on a real terminal: who may have it, signals, and leaving it as it was found.

The descriptors of the terminal are found out and put right here, since textual paints on standard
error, which may be a file.
"""

import asyncio
import contextlib
import os
import select
import signal
import sys
from collections.abc import Iterator

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes.signals import Signalled

from .app import BoardApp
from .readers import Readers

_GONE_SECONDS = 1.0
_TAKEN = (signal.SIGINT, signal.SIGTERM)
# Textual sets these and leaves them set.
_PUT_BACK = (
    *_TAKEN,
    *(signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH, signal.SIGTTIN, signal.SIGTTOU),
)
# A size that a shell has exported would stay when the window is dragged.
_SIZES = ("COLUMNS", "LINES")


def show(readers: Readers, run_id: str) -> None:
    """Show the board of a run until its reader ends it. Raises `Signalled` after Ctrl-C and the
    signals that end a process, and what has kept the run from being read."""
    app = BoardApp(readers, run_id)
    number: int | None = None
    try:
        with _terminal():
            number = asyncio.run(_shown(app))
    finally:
        idle = readers.end()
    if number is not None:
        raise Signalled(number)
    if not idle:
        readers.wait()
    if app.broken is not None:
        raise app.broken
    if app.return_code:
        raise InboxOrchError(
            "internal", "the board ended by a fault of its own", hint="what is above says where"
        )


async def _shown(app: BoardApp) -> int | None:
    """The signal that ended it, if one did."""
    loop = asyncio.get_running_loop()
    came: list[int] = []

    def end(number: int) -> None:
        if came:
            os._exit(128 + number)
        came.append(number)
        app.exit()

    for number in _TAKEN:
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, end, number)
    watching = asyncio.create_task(_watch(app))
    try:
        await app.run_async(mouse=False)
    finally:
        watching.cancel()
        for number in _TAKEN:
            loop.remove_signal_handler(number)
    if app.interrupted:
        came.append(signal.SIGINT)
    return came[0] if came else None


async def _watch(app: BoardApp) -> None:
    """End the board of a terminal that has gone away, where no signal tells of it."""
    while not _gone():
        await asyncio.sleep(_GONE_SECONDS)
    app.exit()


def _gone() -> bool:
    """Whether the terminal has gone away."""
    asked = select.poll()
    asked.register(0, 0)
    return any(flags & (select.POLLHUP | select.POLLERR) for _, flags in asked.poll(0))


@contextlib.contextmanager
def _terminal() -> Iterator[None]:
    """Standard error is the terminal meanwhile; then everything is as it was."""
    before = {number: signal.getsignal(number) for number in _PUT_BACK}
    sizes = {name: os.environ.pop(name) for name in _SIZES if name in os.environ}
    if not os.environ.get("NO_COLOR"):
        os.environ.pop("NO_COLOR", None)  # set to nothing it forbids nothing
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(1, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.environ.update(sizes)
        for number, handler in before.items():
            signal.signal(number, handler)
