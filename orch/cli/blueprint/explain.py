"""`orch blueprint explain`."""

import click

from inbox_orch.shared.shell.blocks import Block, Facts, Sentence, Table
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...views.explain import Explanation, explain
from ...views.stage_words import entry
from ..parts.base import open_scheduler, run_option, tell_of_last


@click.command(
    "explain",
    cls=Verb,
    examples=("orch blueprint explain parser", "orch blueprint explain parser/1 --json"),
)
@run_option
@click.argument("task", metavar="TASK|ATTEMPT")
@click.pass_context
def command(context: click.Context, run_name: str | None, task: str) -> None:
    """Tell why an attempt went the way it went through the stages of its blueprint: of each visit
    what came of it, the route that its stage took, where that led, and how a loop that mends gets
    on; then what comes next.

    In a pipe each line begins with what it tells: `attempt`, `blueprint`, `visits`, `most visits`;
    `visit` for each visit, with number, stage, which entry of it, kind, what it came to, route,
    target, why; `next`.
    """
    scheduler = open_scheduler(context, looks=True)
    found = explain(scheduler.desk, task, run_name)
    if run_name is None and task.partition("/")[0] == found.course.task.key:
        tell_of_last(context, found.run)
    output = shell_of(context).output
    blocks = (_for_people if output.terminal else _for_a_pipe)(found)
    output.result(found.as_json(), *blocks)


def _for_a_pipe(found: Explanation) -> list[Block]:
    rows = []
    for each in found.items:
        visit = each.visit
        led = (visit.verdict or visit.state, each.route, each.target, each.why)
        rows.append(("visit", visit.number, visit.stage, visit.nth, visit.kind, *led))
    facts = (
        ("attempt", found.name),
        ("blueprint", found.course.blueprint.id),
        ("visits", found.used),
        ("most visits", found.most_visits),
    )
    return [Facts(facts), Table(("",) * 9, tuple(rows)), Facts((("next", found.next),))]


def _for_people(found: Explanation) -> list[Block]:
    from ...pictures.blueprints import bound_of

    blueprint = found.course.blueprint
    bound = f"{bound_of(blueprint)} as long as nobody answers `continue`, {found.used} so far"
    rows = tuple(
        (
            each.visit.number,
            entry(each.visit.stage, each.visit.nth),
            (each.visit.verdict or each.visit.state).replace("_", " "),
            each.route,
            each.target,
            each.why,
        )
        for each in found.items
    )
    headings = ("NO", "VISIT", "CAME TO", "ROUTE", "THEN", "WHY")
    return [
        Sentence(f"{found.name} goes by {blueprint.id}: {bound}"),
        Table(headings, rows, "no visits yet", (0, 1, 2, 3, 4), (5,), sparse=(3, 4, 5)),
        Sentence(f"next: {found.next}"),
    ]
