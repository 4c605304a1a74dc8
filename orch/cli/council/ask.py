"""`orch council ask`."""

from typing import Any

import click

from inbox_orch.inbox.domain.states import BLOCKED
from inbox_orch.shared.adapters.facts import READONLY
from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.shell.blocks import Block, Sentence
from inbox_orch.shared.shell.commandline import PATH, Verb, shell_of
from inbox_orch.shared.shell.output import Output

from ...council.ask import Asked, check_asked
from ...council.count import Counted, rendered, shortfall
from ...council.views import CouncilView, SeatView
from ...leader.hearing import Bench, Hearing, benches_of, hear, is_over, open_hearing, reviewers_of
from ...leader.posts import posts_of
from ...leader.scheduler import Scheduler
from ..parts.base import WAIT, open_scheduler
from ..parts.council_asked import council_options, names_of, spec_of
from ..parts.council_report import kept_report, shown_report, tell_report
from ..parts.crewing import with_option
from ..parts.database import ensure_database


@click.command(
    "ask",
    cls=Verb,
    agent=True,
    examples=(
        "orch council ask design.md --worker './reviewer.sh'",
        "orch council ask design.md --with claude --with codex",
        "orch council ask design.md --worker ada=./a.sh --worker bob='./b.sh --careful'",
        "orch council ask - --decision 'D1=Store?:sqlite|files' --worker ./r.sh < b.md",
    ),
)
@click.argument("brief", type=PATH, metavar="BRIEF|-")
@click.option(
    "--worker",
    "workers",
    multiple=True,
    metavar="[REVIEWER=]CMD",
    help="Who reviews: a command for a shell; repeatable. It takes the seat REVIEWER; those "
    "without a name take turns.",
)
@with_option("[REVIEWER=]NAME", "A coding agent that may only read, instead of a command")
@council_options(
    "1 to 7 seats.  [default: those that --worker names, else architecture-reviewer, "
    "implementation-reviewer, risk-reviewer]"
)
@click.option("--wait", type=WAIT, default="inf", metavar="SECONDS", help="For how long.")
@click.pass_context
def command(
    context: click.Context,
    /,
    brief: str,
    workers: tuple[str, ...],
    adapters: tuple[str, ...],
    reviewers: str | None,
    wait: float,
    **options: Any,
) -> None:
    """Put a brief to reviewers, and print the report: a council from start to end.

    Makes the database if the project has none. Each CMD is started, gets the request on its
    standard input, and prints its reply or leaves it in $INBOX_RESULT; it is ended with the round.
    --with does the same with a coding agent. One agent in several seats is one voice, and the
    report says so.

    Interrupted, the same call goes on with the council that it began, and shows its report again
    once that is closed; after `orch run close` or `cancel` it asks anew. Exit codes as for
    `council report`: 0 when every seat has a valid reply, 11 when one is missing, 8 when --wait
    is over.
    """
    shell = shell_of(context)
    posts = posts_of(workers, (), adapters, toolset=READONLY)
    if not posts:
        raise usage("it is not said who reviews", hint="add --with NAME, or --worker CMD")
    seats = reviewers_of(posts, names_of(reviewers))
    asked = check_asked(spec_of(brief, seats, options))
    benches = benches_of(posts, seats)
    created = ensure_database(shell, lambda: None)
    scheduler = open_scheduler(context)
    hearing = open_hearing(scheduler.desk, asked)
    _begin(shell.output, asked, hearing, created)
    _heard(shell.output, scheduler, hearing, benches, wait)
    _end(shell.output, scheduler, hearing, created)


def _begin(output: Output, asked: Asked, hearing: Hearing, created: str | None) -> None:
    """Say which council it is in."""
    if created is not None:
        output.notice(f"made the database {created}")
    for warning in asked.warnings:
        output.notice(f"warning: {warning}")
    if not output.as_json:
        verb = "Going on with" if hearing.resumed else "Opened"
        output.notice(f"{verb} council {hearing.run.name}: {', '.join(asked.reviewers)}")


def _heard(
    output: Output,
    scheduler: Scheduler,
    hearing: Hearing,
    benches: tuple[Bench, ...],
    wait_seconds: float,
) -> None:
    """Let the reviewers answer, unless they have, and tell of each that is done."""
    told: set[tuple[str | None, str | None]] = set()

    def tell(view: CouncilView) -> None:
        for seat in view.seats_of(1):
            said = _standing(seat, view.run.name)
            which = None if seat.thread is None else seat.thread.id
            if said is not None and (which, said) not in told and not output.as_json:
                told.add((which, said))
                output.notice(said)

    if not is_over(scheduler.desk, hearing):
        hear(scheduler.desk, hearing, benches, wait_seconds=wait_seconds, on_look=tell)


def _standing(seat: SeatView, council: str) -> str | None:
    """What is to be told of a seat: that it is done, or that it asks something."""
    name, thread = seat.seat.reviewer, seat.thread
    if seat.stands.final:
        return f"{name}: {seat.stands.state}"
    if thread is not None and thread.state == BLOCKED:
        answer = f"`orch answer --run {council} review-{seat.seat.position} --body TEXT` answers"
        return f"{name} asks something: `orch blocked --run {council}` shows it, {answer}"
    return None


def _end(output: Output, scheduler: Scheduler, hearing: Hearing, created: str | None) -> None:
    """The report, and what to do next."""
    counted = scheduler.tally_of(hearing.run)
    content = rendered(counted, "md")
    artifact = kept_report(scheduler, counted, "md", content)
    data = {
        "council": counted.view.as_json(),
        "format": "md",
        "text": content.decode(),
        "artifact": artifact,
        "path": None,
        "stale": counted.stale,
        "banners": list(counted.tally.banners),
        "resumed": hearing.resumed,
        "database_created": created is not None,
    }
    failure = _failure(counted)
    shown = shown_report("md", content.decode())
    tell_report(output, data, failure, shown, *_next(output, counted, failure))


def _failure(counted: Counted) -> InboxOrchError | None:
    """What is not a plain success about it."""
    failure, name = shortfall(counted), counted.view.run.name
    if failure is not None:
        failure.hint = (
            "the same call again goes on; nothing is missed in between"
            if failure.code == "timeout"
            else f"the result is there; `orch run cancel {name}`, then the same call asks anew"
        )
    return failure


def _next(output: Output, counted: Counted, failure: InboxOrchError | None) -> list[Block]:
    if failure is not None or not output.terminal:
        return []
    name = counted.view.run.name
    text = f"Next: `orch run close {name}` ends it; before that the same call shows this again"
    return [Sentence(text)]
