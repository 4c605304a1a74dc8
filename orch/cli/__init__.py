"""The command line `orch`: options to one call of the scheduler, its result to the output.

A command has no SQL, no rule and no print in it.
"""

import click

from inbox_orch.shared.shell.commandline import Program, Words

from .words import GROUPS, MEANT

_HERE = "inbox_orch.orch.cli"

COMMANDS = {
    "do": (f"{_HERE}.do", "From a wish to an integrated branch."),
    "run": (f"{_HERE}.run", "Open, look at, pause, cancel and close runs."),
    "task": (f"{_HERE}.task", "Add a task to a run; look at one."),
    "dep": (f"{_HERE}.dep", "Let one task wait for another."),
    "plan": (f"{_HERE}.plan", "Take in and write out whole graphs of tasks."),
    "blueprint": (f"{_HERE}.blueprint", "Stages of work inside an attempt, with loops that mend."),
    "ready": (f"{_HERE}.ready", "The tasks that can be dispatched."),
    "drive": (f"{_HERE}.drive", "Dispatch and wait until the run ends."),
    "worker": (f"{_HERE}.worker", "Serve the roles that a run's config describes."),
    "dispatch": (f"{_HERE}.dispatch", "Open an attempt for each ready task."),
    "status": (f"{_HERE}.status", "How every task stands."),
    "show": (f"{_HERE}.show", "A run, task, attempt or thread, by whatever names it."),
    "diff": (f"{_HERE}.diff", "What a task's work changes, as git prints it."),
    "logs": (f"{_HERE}.logs", "What workers and checks have printed and said."),
    "events": (f"{_HERE}.events", "What has happened in a run, as it happens."),
    "board": (f"{_HERE}.board", "Watch a run on the whole terminal."),
    "wait": (f"{_HERE}.wait", "Block until something has happened."),
    "blocked": (f"{_HERE}.blocked", "The open questions of workers."),
    "answer": (f"{_HERE}.answer", "Answer a worker's question."),
    "integrate": (f"{_HERE}.integrate", "Merge accepted work, in memory, onto a branch."),
    "conflicts": (f"{_HERE}.conflicts", "Which attempts will not merge, before they finish."),
    "adopt": (f"{_HERE}.adopt", "Take an ended attempt's commits as accepted work."),
    "cleanup": (f"{_HERE}.cleanup", "Take away worktrees, and never lose work."),
    "purge": (f"{_HERE}.purge", "Take a secret out of all that is stored."),
    "attempt": (f"{_HERE}.attempt", "Look at attempts; bring back what was salvaged."),
    "checkpoint": (f"{_HERE}.checkpoint", "Keep states of a worktree; go back to one."),
    "patch": (f"{_HERE}.patch", "What was handed in: judged, and kept."),
    "gate": (f"{_HERE}.gate", "The gates that work has to pass; run them."),
    "policy": (f"{_HERE}.policy", "What changes have to satisfy; show it, try it."),
    "retry": (f"{_HERE}.retry", "Try failed or cancelled tasks again."),
    "reassign": (f"{_HERE}.reassign", "Let other workers do tasks."),
    "cancel": (f"{_HERE}.cancel", "Cancel tasks, even while they are worked on."),
    "skip": (f"{_HERE}.skip", "Do without tasks that have not started."),
    "reconcile": (f"{_HERE}.reconcile", "Carry over what workers did; finish what was begun."),
    "graph": (f"{_HERE}.graph", "Draw what waits for what."),
    "critical-path": (f"{_HERE}.critical_path", "The longest chain of dependent tasks."),
    "timeline": (f"{_HERE}.timeline", "Draw the attempts over time."),
    "trace": (f"{_HERE}.trace", "Export a run to an OpenTelemetry collector."),
    "report": (f"{_HERE}.report", "What became of a run, as text or as a page."),
    "council": (f"{_HERE}.council", "Ask independent reviewers, and count what they say."),
    "doctor": (f"{_HERE}.doctor", "Whether runs, git and the events agree."),
    "schema": (f"{_HERE}.schema", "The JSON Schema of a command's output."),
    "prime": (f"{_HERE}.prime", "What an agent that leads must know, in 2,000 bytes."),
    "skill": (f"{_HERE}.skill", "The manual for agents; print or install it."),
    "mcp": (f"{_HERE}.mcp", "Serve the scheduler as tools to an agent's client."),
    "help": (f"{_HERE}.help", "About exit codes, the environment, JSON, or a command."),
    "completion": (f"{_HERE}.completion", "Code that makes a shell complete commands."),
    "demo": (f"{_HERE}.demo", "The main job from start to end, offline."),
}


@click.command(
    "orch",
    cls=Program,
    commands_in=COMMANDS,
    names_in=f"{_HERE}.parts.names",
    version=True,
    words=Words(GROUPS, MEANT),
    invoke_without_command=True,
    subcommand_metavar="[COMMAND] [ARGS]...",  # click 8.4 says that there has to be one
    examples=(
        "orch do 'Fix the parser' --check 'make test' -- ./agent.sh",
        "orch run init --title 'Fix the parser'",
        "orch task add --task lexer --title 'Rewrite the lexer' --body-file lexer.md",
        "orch task add --task parser --title 'Use it' --depends-on lexer",
        "orch dispatch && orch wait --until run",
    ),
)
@click.pass_context
def program(context: click.Context) -> None:
    """Runs of dependent tasks, each tried by a worker in its own git worktree.

    A leader builds a run, dispatches, waits, answers. Workers need only `inbox`.
    Without a command: what waits, and what needs somebody.
    """
    if context.invoked_subcommand is None:
        from .parts.overview import show

        show(context)
