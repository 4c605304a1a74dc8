"""An agent as a command: the words that run it for a task, and whether it can be run here."""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from typing import NamedTuple

from inbox_orch.shared.errors import usage
from inbox_orch.shared.ids import quoted

from .facts import CODING, Agent, agents

_MOST = 200  # characters in the name of a model


class Command(NamedTuple):
    """An agent with a toolset; `words` is what is to be run, with the task on standard input."""

    name: str
    title: str
    toolset: str
    words: tuple[str, ...]

    @property
    def line(self) -> str:
        """The words as text for a shell."""
        return shlex.join(self.words)


def agent_named(name: str) -> Agent:
    """What is known of an agent; error `usage`, with all names, for one that is not known."""
    found = agents().get(name)
    if found is None:
        raise usage(
            f"no agent is known as {quoted(name)}",
            hint=f"known are {', '.join(agents())}; `-- CMD` or --worker CMD runs any other",
            known=list(agents()),
        )
    return found


def command(name: str, toolset: str = CODING, model: str | None = None) -> Command:
    """How an agent is run with a toolset, `coding` or `readonly`, and with a model by its own name
    for it. Error `usage` for a name that is not known, and for an agent that is not installed."""
    agent = agent_named(name)
    if model is not None:
        check_model(model)
    program = shutil.which(agent.program)
    if program is None:
        raise usage(
            f"{agent.title} is not installed: there is no {quoted(agent.program)} on PATH",
            hint="nothing was started; install it, or run it your own way: `-- CMD`, --worker CMD",
            program=agent.program,
        )
    runner = (sys.executable, "-P", "-m", "inbox_orch.shared.adapters")
    return Command(
        agent.name,
        agent.title,
        toolset,
        (*runner, name, toolset, os.path.abspath(program), *([] if model is None else [model])),
    )


def check_model(name: str) -> None:
    """Whether it can be the name of a model: an option could be taken for something else. Error
    `usage`."""
    if not name.strip() or not name.isprintable() or name.startswith("-") or len(name) > _MOST:
        raise usage(
            f"{quoted(name[:_MOST])} is not the name of a model",
            hint=f"1 to {_MOST} printable characters, the first not `-`, as the agent names it",
        )


def warning_of(words: Sequence[str]) -> str | None:
    """What is to be said of a command given by hand with which an agent cannot change a file; None
    for every other command."""
    if not words:
        return None
    program, given = os.path.basename(words[0]), {word.split("=")[0] for word in words[1:]}
    for agent in agents().values():
        bare = agent.bare
        if bare is None or agent.program != program or given & set(bare.edits):
            continue
        if all(given & set(each) for each in bare.words):
            shown = " ".join((program, *words[1:2]))
            return (
                f"{agent.title} cannot change files when it is run as {quoted(shown)}; "
                f"--with {agent.name} runs it so that it can"
            )
    return None


def warning_of_line(line: str) -> str | None:
    """What `warning_of` says of a command that is text for a shell."""
    try:
        return warning_of(shlex.split(line, comments=True))
    except ValueError:
        return None
