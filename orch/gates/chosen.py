"""Which gates a run has. Pure."""

from ..runs.config import Config
from .definitions import Gate


def gates_of(config: Config) -> tuple[Gate, ...]:
    """The gates that a config says, in their order."""
    return tuple(Gate.from_json(stored) for stored in config.gates)
