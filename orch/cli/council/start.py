"""`orch council start`."""

from typing import Any

import click

from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import PATH, Verb, shell_of

from ...council.ask import Asked, check_asked
from ..parts.base import key_option, lead_on, open_scheduler
from ..parts.council_asked import council_options, names_of, spec_of


@click.command(
    "start",
    cls=Verb,
    agent=True,
    examples=(
        "orch council start --brief-file design.md",
        "orch council start --brief-file design.md --reviewers ada,bob,eve",
        "orch council start --brief-file - --decision 'D1=Store?:sqlite|files' < b.md",
    ),
)
@click.option(
    "--brief-file", required=True, type=PATH, metavar="PATH|-", help="The brief, in markdown."
)
@council_options(
    "1 to 7 mailboxes.  [default: architecture-reviewer, implementation-reviewer, risk-reviewer]"
)
@key_option
@click.pass_context
def command(
    context: click.Context,
    /,
    brief_file: str,
    reviewers: str | None,
    key: str | None,
    **options: Any,
) -> None:
    """Open a council: the same brief goes to every reviewer, in a sealed thread.

    Each reviewer is a mailbox. An agent claims and answers with `inbox done --payload-file`; any
    command becomes a reviewer with `inbox work --agent NAME -- CMD`.
    """
    asked = check_asked(spec_of(brief_file, names_of(reviewers), options))
    scheduler = open_scheduler(context)
    data = scheduler.start_council(asked, key=key).as_json()
    _say(context, asked, data)
    lead_on(context, scheduler, data["council"]["name"])


def _say(context: click.Context, asked: Asked, data: dict[str, object]) -> None:
    output = shell_of(context).output
    for warning in asked.warnings:
        output.notice(f"warning: {warning}")
    council = data["council"]
    assert isinstance(council, dict)
    text = f"Opened council {council['name']}: asked {', '.join(asked.reviewers)}"
    output.result(data, Sentence(text, (council["name"], council["id"], asked.reviewers)))
