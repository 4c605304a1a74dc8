"""Work that gives its caller a turn now and then: a generator, whose value is the result.

Knows nothing of what is worked on.
"""

from collections.abc import Generator
from typing import TypeVar

Result = TypeVar("Result")


def finished(steps: Generator[None, None, Result]) -> Result:
    """What the work comes to, for a caller that has nothing else to do meanwhile."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result


class Slice:
    """For how many milliseconds a command is watched before its caller gets a turn."""

    WHOLE_MS = 500

    def __init__(self) -> None:
        self.ms = self.WHOLE_MS

    def share(self, number: int) -> None:
        """So many are watched in turn."""
        self.ms = max(20, self.WHOLE_MS // max(1, number) // 4) if number > 1 else self.WHOLE_MS


SLICE = Slice()
"""That of this process, in which one thread watches all commands."""
