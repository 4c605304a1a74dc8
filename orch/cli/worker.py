"""`orch worker`."""

import click

from inbox_orch.inbox.worker.plan import MAX_SLOTS
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import Number, Verb, shell_of
from inbox_orch.shared.shell.output import Output

from ..leader.crew import Crew
from ..leader.posts import tell_of_idle
from ..leader.serving import Serving, idle_in, serve, servings
from .parts.base import WAIT, chosen_run, one_run, open_scheduler


@click.command(
    "worker",
    cls=Verb,
    agent=True,
    examples=(
        "orch worker",
        "orch worker --role frontier_reviewer",
        "orch worker --run night --slots 2 --wait 8h --json",
    ),
)
@one_run
@click.option(
    "--role",
    "names",
    multiple=True,
    metavar="ROLE",
    help="Serve this role; repeatable.  [default: all whose workers the config describes]",
)
@click.option(
    "--slots",
    type=Number(1, MAX_SLOTS, whole=True),
    default=1,
    show_default=True,
    metavar="N",
    help=f"How many threads the worker of each role does at once, 1 to {MAX_SLOTS}.",
)
@click.option(
    "--wait",
    "wait_seconds",
    type=WAIT,
    default="inf",
    show_default=True,
    metavar="SECONDS",
    help="For how long at most.",
)
@click.pass_context
def command(
    context: click.Context,
    run_name: str | None,
    names: tuple[str, ...],
    slots: int,
    wait_seconds: float,
) -> None:
    """Serve the roles of a run with the commands and agents that its config names for them.

    Starts an `inbox work` for each role, keeps it up, and ends it when the run is over (exit 0,
    however the run has ended) or the time is (exit 8). What a worker holds then it hands back.
    Stopping it, or a crash, loses nothing. It leads nothing: `orch drive` does, here or elsewhere;
    with workers of its own (--worker, --with) that starts those of the roles, too.

    In a pipe: a line for each role: role, mailbox, what is run; then one with the outcome.
    """
    output, scheduler = shell_of(context).output, open_scheduler(context)
    run = chosen_run(scheduler, run_name)
    wanted = servings(run, names)
    tell_of_idle(scheduler.desk, run, idle_in(scheduler.desk, run, wanted))
    posts = [each.post for each in wanted]
    try:
        with Crew(scheduler.desk, run, posts, slots=slots) as crew:
            for each in wanted:
                _tell(output, each)
            outcome = serve(scheduler.desk, run, crew, wait_seconds=wait_seconds)
    except InboxOrchError as error:
        if not output.as_json or not output.answered:
            raise
        output.last_line(error.data, error)
        return
    if output.as_json:
        output.last_line({"run": run.name, "outcome": outcome}, None)
    else:
        output.show(Sentence(f"Run {run.name} is over: {outcome}.", ("outcome", run.name, outcome)))


def _tell(output: Output, serving: Serving) -> None:
    """That a role is served now."""
    if output.as_json:
        output.line({"type": "serving", **serving.as_json()})
        return
    post = serving.post
    text = f"{serving.role} is served in `{post.mailbox}` by {post.shown}"
    output.show(Sentence(text, (serving.role, post.mailbox, post.shown)))
