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
