"""`orch graph`."""

import click

from inbox_orch.shared.shell.blocks import Lines
from inbox_orch.shared.shell.commandline import Choice, Verb, shell_of

from .parts.base import one_run, open_scheduler, shown_run
from .parts.pictures import hand_out, rows_of, target_option


@click.command(
    "graph",
    cls=Verb,
    agent=True,
    examples=(
        "orch graph",
        "orch graph --format svg --output graph.svg",
        "orch graph --format dot | dot -Tpdf > graph.pdf",
    ),
)
@one_run
@click.option(
    "--format",
    "form",
    type=Choice(("text", "mermaid", "dot", "svg")),
    default="text",
    show_default=True,
)
@target_option
@click.pass_context
def command(context: click.Context, run_name: str | None, form: str, target: str | None) -> None:
    """Draw the tasks of a run and what they wait for, as they stand.

    As text each task stands once, below the last that it waits for; `+key` is what else it waits
    for. With --json: tasks, dependencies, and the picture.
    """
    from ..pictures import drawing, notations, svg, text

    scheduler = open_scheduler(context, looks=True)
    graph = scheduler.graph(shown_run(context, scheduler, run_name))
    drawn = drawing.drawing_of(graph.heading, graph.picture.standings, graph.picture.dependencies)
    picture: str | Lines
    if form == "text":
        picture = Lines(rows_of(text.graph_lines(drawn)))
    else:
        draw = {"mermaid": notations.mermaid, "dot": notations.dot, "svg": svg.graph_svg}
        picture = draw[form](drawn)
    hand_out(scheduler, shell_of(context).output, picture, graph.as_json(), target, form)
