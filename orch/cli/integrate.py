"""`orch integrate`."""

import os

import click

from inbox_orch.shared.blocks import Block, Body, Sentence, Table
from inbox_orch.shared.commandline import Verb, shell_of
from inbox_orch.shared.errors import InboxOrchError

from ..domain.integration import Result
from ..services.integrating import Integrated
from ..services.scheduler import Scheduler
from .base import chosen_run, open_group, run_option


@click.command(
    "integrate",
    cls=Verb,
    agent=True,
    examples=(
        "orch integrate --dry-run",
        "orch integrate --onto main --check 'make test'",
    ),
)
@run_option
@click.option("--onto", metavar="BRANCH", help="Then fast-forward this branch to the result.")
@click.option(
    "--check",
    "checks",
    multiple=True,
    metavar="CMD",
    help="Shell command that must succeed in the result before anything is moved; repeatable.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.pass_context
def command(
    context: click.Context,
    run_name: str | None,
    onto: str | None,
    checks: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Merge the accepted work of a run onto its branch orch/RUN/integration, in the order of its
    dependencies and in memory: your checkout is not touched.

    What conflicts goes back to its task, as a new attempt on top of what was integrated; the rest
    goes on. A BRANCH that is checked out is moved in its working tree, if that is clean; else the
    command that does it is printed. Exit 11 when something conflicts, a check fails, or BRANCH was
    not moved.
    """
    scheduler = open_group(context, Scheduler, looks=dry_run)
    run = chosen_run(scheduler, run_name)
    done = scheduler.integrate(run, onto=onto, checks=checks, dry_run=dry_run, within=os.getcwd())
    output = shell_of(context).output
    failure = _failure(done)
    if failure is None:
        output.result(done.as_json(), *_blocks(done))
    else:
        output.outcome(failure, *_blocks(done))


def _failure(done: Integrated) -> InboxOrchError | None:
    """What is not a plain success about it."""
    failed = done.failed_check
    if failed is not None:
        return InboxOrchError(
            "checks_failed",
            f"{failed.sentence}; nothing was moved",
            hint="`orch status` shows whose work it is; `orch retry TASK --force` has it done anew",
            details={"command": failed.command},
            data=done.as_json(),
        )
    said = [f"{r.piece.name} conflicts in {', '.join(r.paths[:5])}" for r in done.conflicts]
    said += [f"{r.piece.name} waits for {', '.join(r.because)}" for r in done.held_back]
    hint = None
    if said:
        hint = "the attempts that resolve it start from what was integrated; then integrate again"
    if done.onto is not None and done.not_forwarded:
        said.append(f"{done.onto['branch']} was not moved: {_why_not(done.onto)}")
        hint = done.onto["command"] or hint
    if not said:
        return None
    return InboxOrchError(
        "degraded",
        "; ".join(said),
        hint=hint,
        details={"tasks": [r.piece.task.key for r in done.conflicts]},
        data=done.as_json(),
    )


def _why_not(onto: dict[str, object]) -> str:
    if onto["state"] == "conflict":
        assert isinstance(onto["paths"], list)
        return f"it conflicts with what was integrated, in {', '.join(onto['paths'][:5])}"
    return str(onto["reason"])


def _blocks(done: Integrated) -> list[Block]:
    rows = tuple((result.piece.name, result.state, _note(result)) for result in done.results)
    headings = ("ATTEMPT", "STATE", "NOTE")
    blocks: list[Block] = [Table(headings, rows, "nothing to integrate", (0, 1), (2,))]
    blocks += [Sentence(t.sentence, ("check", t.passed, t.command)) for t in done.checks]
    failed = done.failed_check
    if failed is not None:
        return [*blocks, Body(("output",), failed.output_tail)]
    if done.tip is not None:
        verb = "would be" if done.dry_run and done.tip != done.plan.before else "is"
        text = f"{done.plan.branch} {verb} at {done.tip}"
        blocks.append(Sentence(text, (done.plan.branch, done.tip)))
    if done.onto is not None:
        blocks.append(_onto_block(done.onto, dry_run=done.dry_run))
    if done.undispatched is not None:
        text = f"No attempt could be opened for {done.undispatched}"
        blocks.append(Sentence(text, ("undispatched", done.undispatched)))
    return blocks


def _note(result: Result) -> str:
    if result.commit is not None:
        return result.commit
    if result.because:
        return f"builds on {', '.join(result.because)}"
    offered = f"; attempt {result.offered} is to resolve it" if result.offered else ""
    return f"in {', '.join(result.paths)}{offered}"


def _onto_block(onto: dict[str, object], *, dry_run: bool) -> Sentence:
    state = str(onto["state"]).replace("_", " ")
    if dry_run:
        state = f"would be {state}"
    return Sentence(f"{onto['branch']}: {state}", (onto["branch"], onto["state"], onto["commit"]))
