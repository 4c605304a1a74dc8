"""`orch council`: the commands about councils."""

import click

from inbox_orch.shared.shell.commandline import Program

_HERE = "inbox_orch.orch.cli"


@click.command(
    "council",
    cls=Program,
    commands_in={
        "start": (f"{_HERE}.council_start", "Ask reviewers about a brief."),
        "wait": (f"{_HERE}.council_wait", "Block until the round is closed."),
        "tally": (f"{_HERE}.council_tally", "What the replies come to."),
        "report": (f"{_HERE}.council_report", "The report, stored as an artifact."),
        "ballot": (f"{_HERE}.council_ballot", "A second round: vote on what others raised."),
        "group": (f"{_HERE}.council_group", "Settle what the tally could not know."),
        "suggest": (f"{_HERE}.council_suggest", "Pairs that may be one recommendation."),
        "apply": (f"{_HERE}.council_apply", "Settle many pairs from a file."),
        "show": (f"{_HERE}.council_show", "One council and its seats."),
        "list": (f"{_HERE}.council_list", "Every council."),
        "template": (f"{_HERE}.council_template", "What reviewers are sent and must answer."),
        "demo": (f"{_HERE}.council_demo", "A council from start to end, offline."),
    },
)
def command() -> None:
    """Ask independent reviewers about a design, and count what they say.

    Reviewers are mailboxes: agents, or any command run by `inbox work`. They cannot see each
    other before the round closes. No model runs in here: the tally is computed from the stored
    replies, and comes to the same bytes every time.
    """
