"""`orch do`."""

import contextlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from inbox_orch.inbox.worker.plan import MAX_SLOTS
from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.shell.blocks import Block, Sentence
from inbox_orch.shared.shell.commandline import PATH, TEXT, Number, Shell, Verb, shell_of
from inbox_orch.shared.shell.output import Output

from ..attempts.rows import details_of
from ..integration.integrate import Integrated
from ..integration.shortfall import failure_of
from ..leader.crew import Crew
from ..leader.drive import Drive, Driven
from ..leader.notices import Notifier, end_of
from ..leader.posts import Post, cast
from ..leader.scheduler import Scheduler
from ..leader.tracing import Tracing
from ..leader.wish import Wish, branch_here, bring_in, check_branch, open_wish, plan_of, try_again
from ..runs.config import FINDS, config_of
from ..runs.model import Run
from ..runs.plan import Opening, Plan
from ..runs.planning import check_run
from .parts.base import (
    WAIT,
    gate_slots_option,
    harvest_option,
    notify_option,
    open_scheduler,
    read_body,
)
from .parts.crewing import posts_wanted, with_option
from .parts.database import ensure_database
from .parts.deciding import unanswered_of, unanswered_options
from .parts.documents import faults_told, plan_in
from .parts.giving_policies import policy_of, policy_options
from .parts.integrated import blocks_of
from .parts.naming_blueprints import blueprint_option, resolved, with_blueprint
from .parts.progress import Progress
from .parts.standings import blocks as status_blocks

if TYPE_CHECKING:
    from ..documents.reading import Source

_WHO = "add --with NAME, `-- CMD...` or --worker CMD"
_MOST_ROUNDS = 10
"""How often what conflicts is done anew before it is left to a person."""


@click.command(
    "do",
    cls=Verb,
    agent=True,
    examples=(
        "orch do 'Fix the off-by-one in the lexer' --with claude",
        "orch do 'Fix the off-by-one in the lexer' --with claude --blueprint quick_fix",
        "orch do 'Fix the off-by-one in the lexer' -- ./agent.sh",
        "orch do 'Fix the lexer' --check 'make test' --onto main --worker './agent.sh'",
        "orch do --plan plan.yaml --slots 3 --worker './agent.sh'",
    ),
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[TITLE] [-- CMD...]")
@click.option("--body", type=TEXT, metavar="TEXT", help="What is to be done, in more words.")
@click.option("--body-file", type=PATH, metavar="PATH|-", help="The same, from a file or stdin.")
@blueprint_option("Go through its stages; `orch blueprint list` lists those that are known.")
@click.option("--no-setup", is_flag=True, help="With --blueprint: no set-up that is found.")
@click.option("--no-gates", is_flag=True, help="With --blueprint: no gates that are found.")
@click.option(
    "--check",
    "checks",
    multiple=True,
    metavar="CMD",
    help="Must succeed in the worktree before the work is accepted; repeatable.",
)
@click.option("--plan", "plan_file", type=PATH, metavar="FILE|-", help="Tasks from a plan.")
@click.option(
    "--onto",
    metavar="BRANCH",
    help="Where the result goes; default: the branch that is checked out here.",
)
@click.option(
    "--worker",
    "workers",
    multiple=True,
    metavar="[MAILBOX=]CMD",
    help="Who does it: a command for a shell; repeatable. Instead of `-- CMD`.",
)
@with_option()
@click.option(
    "--slots",
    type=Number(1, MAX_SLOTS, whole=True),
    default=1,
    show_default=True,
    metavar="N",
    help=f"How many tasks each worker does at once, 1 to {MAX_SLOTS}.",
)
@click.option("--wait", type=WAIT, default="inf", metavar="SECONDS", help="For how long.")
@gate_slots_option
@harvest_option(
    "Commit what CMD leaves uncommitted in its name.  [default: as each task of a plan says, else "
    "--harvest]"
)
@policy_options()
@notify_option
@unanswered_options
@click.option("--allow-dirty", is_flag=True, help="Also when HEAD lacks changes of yours.")
@click.pass_context
def command(
    context: click.Context,
    /,
    words: tuple[str, ...],
    plan_file: str | None,
    onto: str | None,
    workers: tuple[str, ...],
    adapters: tuple[str, ...],
    slots: int,
    wait: float,
    gate_slots: int | None,
    allow_dirty: bool,
    harvest: bool | None,
    notify: tuple[str, ...],
    **task: Any,
) -> None:
    """Have something done: a run with one task, or those of a plan, a worker, and the result on
    your branch.

    Makes the database if the project has none. CMD gets the task on its standard input, in a git
    worktree of its own; what it leaves there uncommitted is committed in its name. --worker says
    the same as text for a shell, --with names a coding agent that is known. What is accepted is
    merged, and BRANCH comes forward to it.

    Interrupted, or when something is in the way: the same call again goes on where it was. Exit
    0: done, and on BRANCH. 11: a task failed, a question is open, or BRANCH was not moved; the
    message says what to do.
    """
    shell = shell_of(context)
    unanswered = unanswered_of(task.pop("on_no_answer"), task.pop("decide_within"))
    policy = policy_of(shell, task)
    wanted = _staged(shell, _wanted(shell, words, plan_file, task), task)
    wanted = wanted.with_policy(policy)
    posts = posts_wanted(shell.output, workers, adapters, wanted.command_line)
    if not posts:
        raise usage("it is not said who does it", hint=_WHO)
    folder = os.getcwd()
    branch = branch_here(folder) if onto is None else onto
    check_run(wanted.opening, folder, None)
    check_branch(folder, branch)
    wish = Wish(wanted.plan, wanted.opening, folder, branch)
    drive = Drive(
        within=folder,
        wait_seconds=wait,
        allow_dirty=allow_dirty,
        harvest=harvest,
        unsaid_harvest=True,
        unanswered=unanswered,
        gate_slots=gate_slots,
    )
    created = ensure_database(shell, lambda: None)
    scheduler = open_scheduler(context)
    with contextlib.nullcontext() if wanted.source is None else faults_told(shell, wanted.source):
        run, resumed = open_wish(scheduler.desk, wish)
    run, posts = cast(scheduler.desk, run, posts)
    notifier = Notifier((*config_of(run).notify, *notify), shell.output.notice)
    job = _Job(shell.output, scheduler, run, wish, notifier)
    job.begin(created, resumed)
    with notifier, job.tracing, notifier.told_of_failure(run):
        job.end(job.done(posts, slots, drive), created)


class _Wanted(NamedTuple):
    """The tasks, their run, the words of a command; the document that they come from, if any."""

    plan: Plan
    opening: Opening
    command_line: tuple[str, ...]
    source: "Source | None" = None

    def with_policy(self, rules: dict[str, Any] | None) -> "_Wanted":
        """With these rules in the config of the run, instead of those that it has."""
        if rules is None:
            return self
        config = self.opening.config
        config = config._replace(policy={**(config.policy or {}), **rules})
        return self._replace(opening=self.opening._replace(config=config))


def _wanted(
    shell: Shell, words: tuple[str, ...], plan_file: str | None, task: dict[str, Any]
) -> _Wanted:
    """What the arguments say; error `usage`."""
    checks, texts = task["checks"], (task["body"], task["body_file"])
    if plan_file is None:
        if not words:
            raise usage("it is not said what to do", hint="give a TITLE, or --plan FILE")
        plan = plan_of(words[0], read_body(*texts) or "", checks)
        return _Wanted(plan, Opening(words[0]), words[1:])
    if checks or any(text is not None for text in texts):
        raise usage("--body and --check are for one task; a plan has its own", hint="leave it out")
    plan, source = plan_in(shell, plan_file)
    opening = plan.run or Opening(os.path.splitext(os.path.basename(plan_file))[0] or "plan")
    if opening.no_repo:
        raise usage("the plan is for a run without a repository (no_repo)", hint="`orch drive`")
    return _Wanted(plan, opening, words, source)


def _staged(shell: Shell, wanted: _Wanted, task: dict[str, Any]) -> _Wanted:
    """With blueprints, and with what may be found in the repository for them; error `usage`."""
    folder, name = os.getcwd(), task["blueprint"]
    plan = resolved(shell, wanted.plan, folder)
    if name is not None:
        plan = plan._replace(
            tasks=tuple(
                each
                if each.blueprint or not each.worktree
                else with_blueprint(shell, each, name, folder)
                for each in plan.tasks
            )
        )
    left_out = [what for what in FINDS if task[f"no_{what}"]]
    if left_out and not any(each.blueprint for each in plan.tasks):
        raise usage(f"--no-{left_out[0]} goes with --blueprint", hint="leave it out")
    if not left_out:
        return wanted._replace(plan=plan)
    kept = tuple(what for what in wanted.opening.config.finds if what not in left_out)
    config = wanted.opening.config._replace(finds=kept)
    return wanted._replace(plan=plan, opening=wanted.opening._replace(config=config))


class _Ended(NamedTuple):
    """How it has ended; `integrated` is None if it did not come to that."""

    driven: Driven
    integrated: Integrated | None = None

    @property
    def failure(self) -> InboxOrchError | None:
        """What is not a plain success about it."""
        if self.integrated is None:
            return self.driven.failure
        return failure_of(self.integrated)


class _Job:
    """One call of `do` on its run."""

    def __init__(
        self, output: Output, scheduler: Scheduler, run: Run, wish: Wish, notifier: Notifier
    ) -> None:
        self.output, self.scheduler, self.run, self.wish = output, scheduler, run, wish
        self._notifier = notifier
        self.tracing = Tracing(scheduler.desk, run, output.notice)
        self._progress = Progress(output, scheduler, run)

    def begin(self, created: str | None, resumed: bool) -> None:
        """Say which run it is in."""
        if created is not None:
            self.output.notice(f"made the database {created}")
        again = try_again(self.scheduler.desk, self.run) if resumed else ()
        if self.output.as_json:
            return
        name, verb = self.run.name, "Going on with" if resumed else "Opened"
        self.output.show(Sentence(f"{verb} run {name}", ("run", name)))
        if again:
            self.output.show(Sentence(f"Trying again: {', '.join(again)}", ("again", again)))

    def done(self, posts: Sequence[Post], slots: int, wanted: Drive) -> _Ended:
        """Drive it to its end, and bring the result to its branch; what conflicts there is done
        anew, on top of what has come in."""
        with Crew(self.scheduler.desk, self.run, posts, slots=slots) as crew:
            ended = self._round(crew, wanted)
            for _ in range(_MOST_ROUNDS - 1):
                if ended.integrated is None or not ended.integrated.dispatched:
                    break
                ended = self._round(crew, wanted)
        return ended

    def _round(self, crew: Crew, wanted: Drive) -> _Ended:
        driven = self._driven(crew, wanted)
        if driven.failure is not None:
            return _Ended(driven)
        return _Ended(driven, bring_in(self.scheduler.desk, self.run, self.wish))

    def _driven(self, crew: Crew, wanted: Drive) -> Driven:
        wanted = self.tracing.on(self._notifier.on(crew.on(wanted, self._progress)))
        driven = self._notifier.through(self.scheduler.drive(self.run, wanted))
        with contextlib.closing(self.tracing.through(driven)) as steps:
            for step in steps:
                if not self.output.as_json:
                    self._progress.tell(step._replace(ending=None))
                self._progress.mark(step)
                if step.ending is not None:
                    return step.ending
        raise AssertionError("a drive ends with its ending")

    def end(self, ended: _Ended, created: str | None) -> None:
        """Close the run if all is well, and say how it has ended."""
        failure = ended.failure
        self._notifier.tell(end_of(ended.driven, failure))
        closed = failure is None and self.scheduler.close_run(self.run).run.state == "closed"
        blocks = [] if ended.integrated is None else blocks_of(ended.integrated)
        if failure is not None:
            failure.hint = self._hint(failure)
            failure.data = self._data(ended, created, closed)
            self.output.outcome(failure, *self._standing(), *blocks)
            return
        told = (*blocks, *self._unverified(), *self._next())
        self.output.result(self._data(ended, created, closed), *told)

    def _hint(self, failure: InboxOrchError) -> str | None:
        """What to do next. There may be other runs, so it names this one."""
        name = self.run.name
        deciding = failure.details.get("deciding")
        if failure.code == "needs_decision" and deciding:
            return (
                f"`orch blocked --run {name}` shows why, `orch answer --run {name} {deciding[0]} "
                "--decide ANSWER` decides; then the same call again goes on"
            )
        ways = {
            "run_unsuccessful": f"`orch report --run {name}` shows why; then the same call again "
            "tries once more",
            "needs_decision": f"`orch blocked --run {name}` shows the questions, `orch answer "
            f"--run {name} TASK --body TEXT` answers; then the same call again goes on",
            "timeout": "the same call again goes on; nothing is missed in between",
        }
        return ways.get(failure.code, failure.hint)

    def _standing(self) -> list[Block]:
        return status_blocks(self.scheduler.status(self.run))

    def _unverified(self) -> list[Block]:
        """What came in without having been judged as its blueprint says."""
        found = [
            (row.standing.task.key, details_of(row.attempt).unverified)
            for row in self.scheduler.status(self.run).rows
            if row.attempt is not None and row.standing.state == "succeeded"
        ]
        return [
            Sentence(f"Not verified: {key}: {why}", ("unverified", key, why))
            for key, why in found
            if why is not None
        ]

    def _next(self) -> list[Block]:
        if not self.output.terminal:
            return []
        clean = f"orch cleanup --run {self.run.name}"
        return [Sentence(f"Next: `{clean}` takes the worktrees away; nothing is lost with them")]

    def _data(self, ended: _Ended, created: str | None, closed: bool) -> dict[str, Any]:
        driven, integrated = ended
        return {
            "run": driven.run.as_json(),
            "outcome": driven.outcome,
            "counts": driven.counts,
            "questions": [question.as_json() for question in driven.questions],
            "integrated": None if integrated is None else integrated.as_json(),
            "closed": closed,
            "database_created": created is not None,
        }
