"""What every Python does first that is started with this folder on its path: those that live with
another wall clock, and the commands that they run.

libfaketime lets `clock_nanosleep` (2) to a moment that has just passed fail with EINVAL, and that
is what `time.sleep` is made of. A machine whose clock is really wrong does no such thing.
"""

import select
import time


def _sleep(seconds: float) -> None:
    select.select([], [], [], seconds)


time.sleep = _sleep
