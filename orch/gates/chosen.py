"""Which gates a run has, and the checks of its tasks as gates. Pure."""

from collections.abc import Iterable

from ..runs.config import Config
from ..runs.limits import DEFAULT_CHECK_SECONDS
from ..runs.model import Task
from .definitions import Gate


def gates_of(config: Config) -> tuple[Gate, ...]:
    """The gates that a config says, in their order."""
    return tuple(Gate.from_json(stored) for stored in config.gates)


def also_found(own: tuple[Gate, ...], found: Iterable[Gate]) -> tuple[Gate, ...]:
    """Gates that somebody has named, and after them those that were found under other names."""
    names = {gate.name for gate in own}
    return (*own, *(gate for gate in found if gate.name not in names))


def checks_of(task: Task) -> tuple[Gate, ...]:
    """The checks of a task as gates: whatever the base says, they count."""
    limit = task.limits.check_seconds or DEFAULT_CHECK_SECONDS
    return tuple(
        Gate(f"check-{number}", command, timeout_seconds=limit, strict=True)
        for number, command in enumerate(task.checks, start=1)
    )
