"""Who does the stages of a role: a mailbox, and what a worker of it runs."""

from collections.abc import Mapping
from typing import Any, NamedTuple

_MOST_NAME = 64  # characters of a mailbox's name


class Role(NamedTuple):
    """What the config says of a role. `mailbox` is None where the run gives it one of its own.

    A worker of it runs `command`, its words, or the agent `adapter`, by name, with a `toolset` and
    with `model`, by the agent's own name for it; each None where the config says nothing. Without
    command and adapter any process may serve the mailbox.
    """

    mailbox: str | None = None
    command: tuple[str, ...] | None = None
    adapter: str | None = None
    toolset: str | None = None
    model: str | None = None

    @property
    def is_manned(self) -> bool:
        """Whether the config says what its workers run."""
        return self.command is not None or self.adapter is not None

    def as_json(self) -> dict[str, Any]:
        """What is said of it."""
        said = {name: value for name, value in self._asdict().items() if value is not None}
        if self.command is not None:
            said["command"] = list(self.command)
        return said


def role_from(said: Mapping[str, Any]) -> Role:
    """The role of what `Role.as_json` has returned."""
    command = said.get("command")
    return Role(**{**said, **({} if command is None else {"command": tuple(command)})})


def own_mailbox(run_name: str, role: str) -> str:
    """The mailbox that a role has in one run, where the config names none."""
    return f"{run_name[: _MOST_NAME - 1 - len(role)]}-{role}"[:_MOST_NAME]
