"""Whether an agent can be run here: its program, its release, and whether it is logged in.

Asks the agent's own program, and nothing else; nothing goes over the network for it.
"""

import shutil
import subprocess
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from inbox_orch.shared.ids import printable
from inbox_orch.shared.store.checks import OK, PROBLEM, WARNING, Check

from .commands import agent_named
from .facts import Agent

_SECONDS = 10.0


class _Said(NamedTuple):
    """What a call of the agent has said; `status` is None when it did not end in time."""

    status: int | None
    line: str


def probe(names: Iterable[str]) -> tuple[Check, ...]:
    """A check for each agent. Error `usage` for a name that is not known."""
    found = [agent_named(name) for name in dict.fromkeys(names)]
    return tuple(_probed(agent) for agent in found)


def _probed(agent: Agent) -> Check:
    name, program = f"agent {agent.name}", shutil.which(agent.program)
    if program is None:
        return Check(name, PROBLEM, f"{agent.title} is not installed: no {agent.program} on PATH")
    said = _asked(program, agent.version)
    if said.status != 0:
        return Check(name, WARNING, f"{program} does not say its version: {said.line}")
    if agent.log_in:
        logged_in = _asked(program, agent.log_in).status
        if logged_in == 1:
            return Check(name, PROBLEM, f"{said.line}; not logged in: {agent.log_in_by}")
        if logged_in != 0:
            return Check(name, WARNING, f"{said.line}; it does not say whether it is logged in")
        return Check(name, OK, f"{said.line}; logged in")
    return Check(name, OK, f"{said.line}; whether it is logged in is seen when it is used")


def _asked(program: str, arguments: Sequence[str]) -> _Said:
    try:
        ended = subprocess.run(
            (program, *arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return _Said(None, f"no answer within {_SECONDS:.0f} s")
    except OSError as error:
        return _Said(None, str(error.strerror))
    lines = ended.stdout.decode(errors="replace").split("\n")
    said = next((line.strip() for line in lines if line.strip()), "nothing")
    return _Said(ended.returncode, printable(said, 120))
