"""`inbox work`."""

import click

from inbox_orch.shared.errors import usage
from inbox_orch.shared.processes.signals import Signalled
from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.declaring import (
    NAME,
    Choice,
    Context,
    Number,
    argument,
    option,
    shell_of,
    verb,
)
from inbox_orch.shared.shell.output import Output
from inbox_orch.shared.store.temporary import temporary_place

from ..domain import limits
from ..worker.happenings import Happening, Summary
from ..worker.loop import Worker
from ..worker.plan import MAX_SLOTS, Plan, find_command
from .base import DELAY, LEASE, mailbox_option, open_bus

# While it waits for other writers, the worker's loop stands still.
_MOST_BUSY_SECONDS = 2.0


@verb(
    "work",
    agent=True,
    examples=(
        "inbox work --agent w1 --mailbox workers -- ./my-script.sh",
        "inbox work --agent w1 --mailbox workers --slots 4 --timeout 1800 --with claude",
        "inbox work --agent w1 --once --with codex",
    ),
)
@mailbox_option
@option(
    "--lease",
    type=LEASE,
    default=limits.DEFAULT_LEASE_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="The length of each lease; renewed at a third of it.",
)
@option(
    "--slots",
    type=Number(1, MAX_SLOTS, whole=True),
    default=1,
    show_default=True,
    metavar="N",
    help=f"How many threads at once, 1 to {MAX_SLOTS}.",
)
@option("--once", is_flag=True, help="Take one thread, run it to its end, and exit 0.")
@option(
    "--idle-exit",
    type=DELAY,
    metavar="SECONDS",
    help="Exit 0 after so long with nothing to do.",
)
@option(
    "--timeout",
    type=Number(0.001, limits.MAX_DELAY_SECONDS, seconds=True),
    metavar="SECONDS",
    help="The longest that one run of CMD may take; then TERM, and KILL.",
)
@option(
    "--retry-in",
    type=DELAY,
    metavar="SECONDS",
    help="Hand a failed thread back for another try after so long.",
)
@option(
    "--keep-questions",
    is_flag=True,
    help="When told to end, leave open questions open: their threads can be claimed once "
    "they are answered.",
)
@option(
    "--with",
    "adapter",
    metavar="NAME",
    help="Run this coding agent instead of CMD: claude, codex, cursor-agent, gemini or opencode.",
)
@option(
    "--toolset",
    type=Choice(("coding", "readonly")),
    default="coding",
    show_default=True,
    help="What the agent of --with may do: change files, or only read them.",
)
@option(
    "--model",
    type=NAME,
    metavar="NAME",
    help="The model that the agent of --with is to use, by its own name for it.",
)
@argument("command_line", nargs=-1, type=click.UNPROCESSED, metavar="[-- CMD...]")
def command(
    context: Context,
    mailboxes: tuple[str, ...],
    lease: float,
    slots: int,
    once: bool,
    idle_exit: float | None,
    timeout: float | None,
    retry_in: float | None,
    keep_questions: bool,
    adapter: str | None,
    toolset: str,
    model: str | None,
    command_line: tuple[str, ...],
) -> None:
    """Run CMD for each claimed thread; the task is on its stdin and in $INBOX_TASK_FILE.

    Exit 0 of CMD finishes the thread with what it wrote into $INBOX_RESULT, or with the tail of
    its output; exit 75 hands it back for a later try; any other end fails it. A CMD that asks a
    question and ends is run again once there is an answer. The lease is renewed meanwhile.

    --with runs a coding agent with the flags it needs, and reads its result, its cost and its
    failures: at a limit of its use the thread waits, a refusal is a question.
    """
    if once and slots > 1:
        raise usage("--once takes one thread, so it excludes --slots above 1")
    found = _command(shell_of(context).output, adapter, toolset, model, command_line)
    plan = Plan(found, mailboxes, lease, slots, once, idle_exit, timeout, retry_in)._replace(
        keeps_questions=keep_questions, adapter=adapter
    )
    temporary_place()  # before anything is claimed that could not be started here
    bus = open_bus(context, most_busy_seconds=_MOST_BUSY_SECONDS)
    output = shell_of(context).output
    report = _Report(output)
    worker = Worker(
        bus, plan, tell=report.happening, notice=output.notice, listens=lambda: output.listens
    )
    finished = worker.run()
    report.summary(finished.summary)
    if finished.signal is not None:
        raise Signalled(finished.signal)


def _command(
    output: Output,
    adapter: str | None,
    toolset: str,
    model: str | None,
    words: tuple[str, ...],
) -> tuple[str, ...]:
    """What is run for each thread; says so of a CMD with which an agent can change no file."""
    from inbox_orch.shared.adapters import commands

    if adapter is not None:
        if words:
            raise usage("--with NAME stands for a command", hint="leave out `-- CMD`, or --with")
        return commands.command(adapter, toolset, model).words
    if model is not None:
        raise usage("--model is for the agent of --with", hint="leave it out, or name an agent")
    found = find_command(words)
    warning = commands.warning_of(words)
    if warning is not None:
        output.notice(warning)
    return found


class _Report:
    """The worker's stream on standard output: JSON Lines, sentences, or tab-separated values."""

    def __init__(self, output: Output) -> None:
        self.output = output

    def happening(self, happening: Happening) -> None:
        """One line."""
        if self.output.as_json:
            self.output.line(happening.as_json())
            return
        facts = happening.facts
        values = (happening.type, happening.thread, *facts.values())
        text = f"{happening.thread} {_SENTENCES[happening.type].format(**facts)}"
        if happening.type == "finished":
            text += _how(happening)
        self.output.show(Sentence(text, values))

    def summary(self, summary: Summary) -> None:
        """The last line."""
        shape = summary.as_json()
        if self.output.as_json:
            self.output.line({"type": "summary", **shape})
            return
        outcomes = [f"{count} {name}" for name, count in shape["outcomes"].items()]
        text = f"{summary.claimed} claimed: {', '.join(outcomes) or 'nothing done'}"
        values = ("summary", summary.claimed, summary.runs, outcomes)
        self.output.show(Sentence(text, values))


_SENTENCES = {
    "claimed": "claimed: {subject} (delivery {delivery} of {max_deliveries})",
    "started": "run {run} started: process {pid} in {worktree}",
    "waiting": "waits for the answer to question {question}",
    "finished": "{outcome} after {seconds} s",
}


def _how(happening: Happening) -> str:
    facts = happening.facts
    if facts["by_command"]:
        return ", as the command itself said"
    if facts["timed_out"]:
        return ", stopped at its time limit"
    if facts["signal"] is not None:
        return f", killed by signal {facts['signal']}"
    if facts["exit_status"]:
        return f", exit status {facts['exit_status']}"
    return ""
