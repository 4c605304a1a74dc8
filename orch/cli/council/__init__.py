"""`orch council`: the commands about councils."""

import click

from inbox_orch.shared.shell.commandline import Program


@click.command(
    "council",
    cls=Program,
    commands_in={
        "ask": (f"{__name__}.ask", "From a brief to the report: reviewers included."),
        "start": (f"{__name__}.start", "Ask reviewers about a brief."),
        "wait": (f"{__name__}.wait", "Block until the round is closed."),
        "tally": (f"{__name__}.tally", "What the replies come to."),
        "report": (f"{__name__}.report", "The report, stored as an artifact."),
        "ballot": (f"{__name__}.ballot", "A second round: vote on what others raised."),
        "group": (f"{__name__}.group", "Settle what the tally could not know."),
        "suggest": (f"{__name__}.suggest", "Pairs that may be one recommendation."),
        "apply": (f"{__name__}.apply", "Settle many pairs from a file."),
        "show": (f"{__name__}.show", "One council and its seats."),
        "list": (f"{__name__}.list", "Every council."),
        "template": (f"{__name__}.template", "What reviewers are sent and must answer."),
        "demo": (f"{__name__}.demo", "A council from start to end, offline."),
    },
)
def command() -> None:
    """Ask independent reviewers about a design, and count what they say.

    Reviewers are mailboxes: agents, or any command run by `inbox work`. They cannot see each
    other before the round closes. No model runs in here: the tally is computed from the stored
    replies, and comes to the same bytes every time.
    """
