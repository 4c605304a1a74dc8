"""`orch run show`."""

from collections.abc import Iterator
from typing import Any

import click

from inbox_orch.shared.shell.blocks import Facts
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...runs.config import config_of
from ...runs.model import Run
from ..parts.base import one_run, open_scheduler, shown_run


@click.command("show", cls=Verb, agent=True, examples=("orch run show --json",))
@one_run
@click.pass_context
def command(context: click.Context, run_name: str | None) -> None:
    """Print one run: its repository, base and policy, and its config with the secrets masked."""
    tell_run(context, shown_run(context, open_scheduler(context, looks=True), run_name))


def tell_run(context: click.Context, run: Run) -> None:
    """Print a run."""
    shown, config = run.as_json(), config_of(run).shown()
    rows = [(label.replace("_", " "), value) for label, value in shown.items()]
    rows += [(f"config {name}", value) for name, value in _flat(config)]
    shell_of(context).output.result({"run": shown, "config": config}, Facts(tuple(rows)))


def _flat(values: dict[str, Any], above: str = "") -> Iterator[tuple[str, object]]:
    """Settings by their dotted names; of a mapping in them, each by itself."""
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value if value != {} else None
