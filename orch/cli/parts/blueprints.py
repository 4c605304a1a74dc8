"""What the commands about blueprints have in common: finding one, and how it is told."""

import os
from typing import TYPE_CHECKING, Any

from inbox_orch.shared.shell.commandline import Shell

from ...stages.checking import most_visits
from ...stages.loops import routes_of
from ...stages.model import ROUTES, Blueprint, Stage
from .documents import problems_told

if TYPE_CHECKING:
    from ...documents.catalogue import Entry


def named(shell: Shell, name: str, folder: str = os.curdir) -> Blueprint:
    """The blueprint that a path means here, or a name in the repository of a folder; errors
    `not_found`, and `usage` after every problem has been told on stderr."""
    from ...documents.catalogue import find, is_path

    with problems_told(shell):
        return find(name, os.curdir if is_path(name) else folder)


def in_file(shell: Shell, path: str) -> Blueprint:
    """The blueprint in a file, or on standard input; error `usage` as above."""
    from ...documents.blueprint import read_blueprint
    from ...documents.catalogue import NATIVE

    with problems_told(shell):
        return read_blueprint(path, taken=NATIVE)


def as_json(blueprint: Blueprint) -> dict[str, Any]:
    """A blueprint with everything that holds for it, whether it says so or not."""
    return {
        **blueprint.as_json(),
        "stages": [_stage(stage) for stage in blueprint.stages],
        "most_visits": most_visits(blueprint),
    }


def _stage(stage: Stage) -> dict[str, Any]:
    can = routes_of(stage)
    facts = {**stage._asdict(), **{r: stage.target(r) if r in can else None for r in ROUTES}}
    for name in ("hands_in", "policy"):  # only where they are used
        if facts[name] is None:
            del facts[name]
    return {key: list(v) if isinstance(v, tuple) else v for key, v in facts.items()}


def entry_as_json(entry: "Entry") -> dict[str, Any]:
    """A line of a list of blueprints."""
    found = entry.blueprint
    return {
        "id": entry.id,
        "source": entry.source,
        "path": os.path.abspath(entry.path),
        "title": None if found is None else found.title,
        "stage_count": None if found is None else len(found.stages),
        "most_visits": None if found is None else most_visits(found),
        "error": None if entry.error is None else entry.error.message,
    }
