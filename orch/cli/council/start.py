"""`orch council start`."""

import os

import click

from inbox_orch.shared.errors import usage
from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import PATH, TEXT, Number, Verb, shell_of
from inbox_orch.shared.shell.inputs import decode_body, read_input, warn_of_delimiter

from ...council import stored
from ...council.ask import Asked, CouncilSpec, check_asked
from ...runs import limits
from ..parts.base import key_option, lead_on, open_scheduler

SECONDS = Number(1, limits.MAX_CLOCK_SECONDS, seconds=True)
DEADLINE = Number(1, limits.MAX_CLOCK_SECONDS, seconds=True, forever=True)


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
@click.option(
    "--title", type=TEXT, metavar="TEXT", help="One line; default: the brief's first heading."
)
@click.option(
    "--reviewers",
    metavar="A,B,C",
    help="1 to 7 mailboxes.  [default: architecture-reviewer, implementation-reviewer, "
    "risk-reviewer]",
)
@click.option(
    "--lens",
    "lenses",
    multiple=True,
    metavar="REVIEWER=FILE",
    help="What this reviewer is to look at in particular; repeatable.",
)
@click.option(
    "--decision",
    "decisions",
    multiple=True,
    metavar="ID=QUESTION:A|B",
    help="A decision with its choices, counted exactly; repeatable.",
)
@click.option(
    "--deadline",
    type=DEADLINE,
    default=stored.DEFAULT_DEADLINE_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="The round ends then, even if replies are missing; `inf`: never by itself.",
)
@click.option(
    "--seat-timeout",
    type=SECONDS,
    metavar="SECONDS",
    help="How long a reviewer may take once it has claimed; `inbox work` obeys it.",
)
@click.option(
    "--quorum",
    type=Number(1, stored.MOST_SEATS, whole=True),
    metavar="N",
    help="Fewer valid replies are no result.  [default: 2]",
)
@click.option("--at", metavar="REF", help="Give each reviewer a worktree of this commit.")
@key_option
@click.pass_context
def command(
    context: click.Context,
    brief_file: str,
    title: str | None,
    reviewers: str | None,
    lenses: tuple[str, ...],
    decisions: tuple[str, ...],
    deadline: float,
    seat_timeout: float | None,
    quorum: int | None,
    at: str | None,
    key: str | None,
) -> None:
    """Open a council: the same brief goes to every reviewer, in a sealed thread.

    Each reviewer is a mailbox. An agent claims and answers with `inbox done --payload-file`; any
    command becomes a reviewer with `inbox work --agent NAME -- CMD`.
    """
    spec = CouncilSpec(
        brief=_text(brief_file, stored.MAX_BRIEF_BYTES),
        title=title,
        reviewers=() if reviewers is None else _names(reviewers),
        lenses=dict(_lens(each) for each in lenses),
        decisions=decisions,
        quorum=quorum,
        deadline_seconds=None if deadline == float("inf") else deadline,
        seat_seconds=seat_timeout,
        at=at,
        repository=None if at is None else os.getcwd(),
    )
    asked = check_asked(spec)
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


def _names(reviewers: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in reviewers.split(","))


def _lens(given: str) -> tuple[str, str]:
    reviewer, equals, path = given.partition("=")
    if not equals or not path:
        raise usage(f"--lens {given[:60]!r} is not REVIEWER=FILE")
    return reviewer, _text(path, stored.MAX_LENS_BYTES)


def _text(path: str, most_bytes: int) -> str:
    text = decode_body(read_input(path, most_bytes), most_bytes)
    warn_of_delimiter(text, shell_of(click.get_current_context()).output)
    return text
