"""`orch council start`."""

from typing import Any

import click

from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.ids import printable
from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import PATH, Verb, shell_of

from ...council.ask import Asked, check_asked
from ...leader.scheduler import Scheduler
from ..parts.base import chosen_run, key_option, lead_on, open_scheduler, run_option
from ..parts.council_asked import council_options, names_of, spec_of, spec_on


@click.command(
    "start",
    cls=Verb,
    agent=True,
    examples=(
        "orch council start --brief-file design.md",
        "orch council start --brief-file design.md --reviewers ada,bob,eve",
        "orch council start --brief-file - --decision 'D1=Store?:sqlite|files' < b.md",
        "orch council start --from lexer --reviewers ada,bob,eve",
    ),
)
@click.option("--brief-file", type=PATH, metavar="PATH|-", help="The brief, in markdown.")
@click.option(
    "--from",
    "from_task",
    metavar="TASK",
    help="Instead: what the blueprint of this task asks to be decided, and its answers as choices.",
)
@run_option
@council_options(
    "1 to 7 mailboxes.  [default: architecture-reviewer, implementation-reviewer, risk-reviewer]"
)
@key_option
@click.pass_context
def command(
    context: click.Context,
    /,
    brief_file: str | None,
    from_task: str | None,
    run_name: str | None,
    reviewers: str | None,
    key: str | None,
    **options: Any,
) -> None:
    """Open a council: the same brief goes to every reviewer, in a sealed thread.

    Each reviewer is a mailbox. An agent claims and answers with `inbox done --payload-file`; any
    command becomes a reviewer with `inbox work --agent NAME -- CMD`.

    With --from the council advises on a decision that stays open: `orch council report` shows what
    it says, and `orch answer TASK --decide ANSWER` decides.
    """
    if (brief_file is None) == (from_task is None):
        raise usage("a council has one brief", hint="give either --brief-file PATH or --from TASK")
    seats = names_of(reviewers)
    if brief_file is not None:
        asked = check_asked(spec_of(brief_file, seats, options))
        scheduler = open_scheduler(context)
    else:
        scheduler = open_scheduler(context)
        brief, choices = _open_decision(scheduler, run_name, str(from_task))
        options["decisions"] = (*options["decisions"], choices)
        asked = check_asked(spec_on(brief, seats, options))
    data = scheduler.start_council(asked, key=key).as_json()
    _say(context, asked, data)
    lead_on(context, scheduler, data["council"]["name"])


def _open_decision(scheduler: Scheduler, run_name: str | None, task: str) -> tuple[str, str]:
    """What is asked about a task, as a brief, and what may be answered, as a decision with its
    choices. Error `invalid_state`."""
    run = chosen_run(scheduler, run_name)
    with scheduler.database.snapshot() as snapshot:
        task_id = scheduler.desk.task(snapshot, run, task).id
    for question in scheduler.questions(run):
        if question.task.id == task_id and question.decision is not None:
            key, decision = question.task.key, question.decision
            brief = f"# Decide about {key}\n\n{question.message.body}"
            return brief, f"answer=What is to become of {key}?:{'|'.join(decision.answers)}"
    raise InboxOrchError(
        "invalid_state",
        f"task {printable(task)} waits for no decision",
        hint="`orch blocked` lists what is open",
    )


def _say(context: click.Context, asked: Asked, data: dict[str, object]) -> None:
    output = shell_of(context).output
    for warning in asked.warnings:
        output.notice(f"warning: {warning}")
    council = data["council"]
    assert isinstance(council, dict)
    text = f"Opened council {council['name']}: asked {', '.join(asked.reviewers)}"
    output.result(data, Sentence(text, (council["name"], council["id"], asked.reviewers)))
