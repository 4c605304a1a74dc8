"""Running one command as a process: signals, errors, exit codes.

Loaded before anything heavy, so that an interrupt is answered properly from the first moment.
"""

import gc
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from .signals import listen, signal_behind

if TYPE_CHECKING:
    import click

    from .execution import Find


def run(name: str, load: Callable[[], "click.Group"], find: "Find | None" = None) -> NoReturn:
    """Run the command line of the program `name` and end the process with its exit code; `load`
    and `find` are as in `execute`.

    The process ends without the interpreter's own tidying up, which costs more than most
    commands do; everything that matters has been closed and flushed by then.
    """
    try:
        listen()
        _fill_standard_descriptors()
        # Modules make many objects and no garbage; looking for it while they load takes 2 ms.
        # A shell turns the collector on again before a command runs.
        gc.disable()
        from .execution import execute

        # Inside the `try`, so that there is no moment at which a signal is not caught.
        os._exit(execute(name, load, sys.argv[1:], find))
    except BaseException as error:
        signalled = signal_behind(error)
        if signalled is None:
            raise
        os._exit(128 + signalled.number)


def _fill_standard_descriptors() -> None:
    """Put /dev/null where a standard stream is closed, so that no file of ours gets its number.

    `sys.stdout` stays None then, which is how the output knows.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
