"""`orch blueprint show`."""

import click

from inbox_orch.shared.shell.blocks import Block, Body, Facts, Table
from inbox_orch.shared.shell.commandline import NAME, Verb, shell_of

from ...stages.model import Blueprint
from ..parts.blueprints import as_json, named


@click.command(
    "show",
    cls=Verb,
    examples=("orch blueprint show quick_fix", "orch blueprint show ./mine.yaml --json"),
)
@click.argument("name", type=NAME, metavar="ID|FILE")
@click.pass_context
def command(context: click.Context, name: str) -> None:
    """Print a blueprint: its stages, where each leads, and what agents are told.

    What has a slash or ends in .yaml or .yml is a file. With --json every route of a stage is
    named, those that it does not name itself, too. Needs no database.
    """
    blueprint = named(shell_of(context), name)
    shell_of(context).output.result({"blueprint": as_json(blueprint)}, *_blocks(blueprint))


def _blocks(blueprint: Blueprint) -> list[Block]:
    from ...pictures.blueprints import arrows_of, bound_of, words_of

    facts = (
        ("blueprint", blueprint.id),
        ("title", blueprint.title),
        ("visits", bound_of(blueprint)),
    )
    rows = tuple(
        (
            stage.id,
            words_of(stage),
            ", ".join(f"{'/'.join(a.routes)} -> {a.target}" for a in arrows_of(stage)),
        )
        for stage in blueprint.stages
    )
    texts = [(s.id, s.goal or s.run) for s in blueprint.stages]
    return [
        Facts(tuple((label, value) for label, value in facts if value)),
        Table(("STAGE", "WHAT", "THEN"), rows, fixed=(0,), folded=(1, 2)),
        *(Body((stage_id,), text) for stage_id, text in texts if text is not None),
    ]
