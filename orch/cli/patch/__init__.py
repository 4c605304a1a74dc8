"""`orch patch`: the commands about changes that were handed in."""

import click

from inbox_orch.shared.shell.commandline import Program


@click.command(
    "patch",
    cls=Program,
    commands_in={
        "check": (f"{__name__}.check", "What would be said of a change; stores nothing."),
        "submit": (f"{__name__}.submit", "Hand in a change for a task, without a worker."),
        "list": (f"{__name__}.list", "The patches of a run, and how each stands."),
        "show": (f"{__name__}.show", "One patch: what it changes, and what is against it."),
        "log": (f"{__name__}.log", "All that was said of a patch, by whom and why."),
        "approve": (f"{__name__}.approve", "Approve of one that the policy asks about."),
        "refuse": (f"{__name__}.refuse", "Refuse one that the policy asks about."),
        "release": (f"{__name__}.release", "Let a refused one be handed in once more."),
        "drop": (f"{__name__}.drop", "Give one up; it is kept."),
        "export": (f"{__name__}.export", "The text of a patch, as it was handed in."),
        "rollback": (f"{__name__}.rollback", "Undo an accepted one where work comes together."),
    },
)
def command() -> None:
    """Every change that is handed in, as a patch: judged by the policy, and kept."""
