"""`orch blueprint validate`."""

import click

from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import PATH, Verb, shell_of

from ..parts.blueprints import as_json, in_file


@click.command(
    "validate",
    cls=Verb,
    examples=("orch blueprint validate .orch/blueprints/mine.yaml",),
)
@click.argument("path", type=PATH, metavar="FILE|-")
@click.pass_context
def command(context: click.Context, path: str) -> None:
    """Say whether a file is a blueprint that can be gone by, and how often agents are called.

    Every problem of the file is told at once, with its line; then it is exit 2. Needs no database.
    """
    from ...pictures.blueprints import bound_of

    blueprint = in_file(shell_of(context), path)
    data = {"blueprint": as_json(blueprint)}
    stages = len(blueprint.stages)
    text = f"{blueprint.id}: {stages} stage{'s' * (stages > 1)}, {bound_of(blueprint)}"
    values = (blueprint.id, stages, data["blueprint"]["most_visits"])
    shell_of(context).output.result(data, Sentence(text, values))
