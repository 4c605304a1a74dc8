"""`orch attempt show`."""

from collections.abc import Iterator, Sequence

import click

from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.shell.blocks import Facts
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...attempts.rows import details_of
from ...cleanup.restore import Listed, Shown
from ...gates.checks import Checked
from ...leader.scheduler import Scheduler
from ...runs import task_rows as tasks
from ...runs.model import Run
from ...views import patches, stages
from ...views.work import Work, as_json, works_of
from ..parts.base import harvested_words, open_scheduler, run_option, tell_of_last
from ..parts.visits import visit_rows


@click.command(
    "show", cls=Verb, agent=True, examples=("orch attempt show lexer/1", "orch attempt show lexer")
)
@run_option
@click.argument("attempt", metavar="ATTEMPT")
@click.pass_context
def command(context: click.Context, run_name: str | None, attempt: str) -> None:
    """Show one attempt, by its id, as KEY/N, or the newest one of a task as KEY, and what there
    is of it: its worktree, what clean-up has salvaged, the trash."""
    scheduler = open_scheduler(context, looks=True)
    run, listed = scheduler.attempt_named(attempt, run_name, shows=True)
    if run_name is None and attempt.partition("/")[0] == listed.key:
        tell_of_last(context, run)
    tell_attempt(context, scheduler, run, listed)


def tell_attempt(context: click.Context, scheduler: Scheduler, run: Run, listed: Listed) -> None:
    """Print an attempt of a run."""
    shown = scheduler.attempt_show(run, listed)
    attempt = listed.attempt
    work = works_of(scheduler.desk, [attempt]).get(attempt.id)
    with scheduler.database.snapshot() as snapshot:
        visits = stages.visits_of(snapshot, [attempt]).get(attempt.id)
        task = tasks.by_id(snapshot, attempt.task_id)
        handed_in = patches.shown_of(snapshot, run, task, [attempt]).get(attempt.id, ())
    data = {**shown.as_json(), "work": as_json(work)}
    data |= {} if visits is None else {"visits": stages.as_json(visits)}
    data |= {"patches": patches.as_json(handed_in)} if handed_in else {}
    rows = (
        *_rows(shown),
        *_work_rows(work),
        *visit_rows(attempt, visits or ()),
        *(("patch", each.line) for each in handed_in),
    )
    shell_of(context).output.result(data, Facts(rows))


def _rows(shown: Shown) -> tuple[tuple[str, object], ...]:
    attempt = shown.listed.attempt
    details = details_of(attempt)
    rows: tuple[tuple[str, object], ...] = (
        ("attempt", shown.listed.name),
        ("id", attempt.id),
        ("state", attempt.state),
        ("reason", attempt.reason),
        ("mailbox", attempt.mailbox),
        ("thread", attempt.thread_id),
        ("branch", attempt.branch),
        ("base", attempt.base_commit),
        ("head", attempt.head_commit),
        ("harvested", harvested_words(details_of(attempt).harvested)),
        ("worktree", attempt.worktree_path if shown.worktree_exists else None),
        ("late", None if details.late is None else details.late.ref),
        ("salvage", shown.salvage_ref),
        ("trash", shown.trash),
        *_check_rows(details.checks or ()),
    )
    return tuple(row for row in rows if row[1] is not None)


def _work_rows(work: Work | None) -> tuple[tuple[str, object], ...]:
    if work is None or work.worker is None:
        return ()
    rows: tuple[tuple[str, object], ...] = (
        ("worker", work.words),
        ("deliveries", work.deliveries),
        ("lost leases", work.lost_leases or None),
        ("said", work.last_words),
        ("since", rfc3339(work.changed_at)),
    )
    return tuple(row for row in rows if row[1] is not None)


def _check_rows(checks: Sequence[Checked]) -> Iterator[tuple[str, object]]:
    for number, check in enumerate(checks, 1):
        yield f"check {number}", f"{check.sentence} ({check.seconds:.1f} s)"
        if check.output_tail:
            yield f"output {number}", check.output_tail.rstrip("\n")
