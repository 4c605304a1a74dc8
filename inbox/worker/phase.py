"""Where a job stands."""

from enum import Enum


class Phase(Enum):
    """From the start of its command to the end of its lease."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"  # the command has been told to end
    ENDED = "ended"  # the command has; the thread has not been told
    WAITING = "waiting"  # for the answer to a question
    OVER = "over"
