"""`orch policy explain`."""

import click

from inbox_orch.shared.shell.blocks import Sentence, Table
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...views.policies import of_path, verdict
from ..parts.base import run_option
from ..parts.policies import file_option, force_of, task_option


@click.command(
    "explain",
    cls=Verb,
    agent=True,
    examples=(
        "orch policy explain src/parser.py --task parser",
        "orch policy explain .github/workflows/ci.yml --json",
    ),
)
@run_option
@task_option
@file_option
@click.argument("path")
@click.pass_context
def command(
    context: click.Context,
    run_name: str | None,
    task: str | None,
    policy_file: str | None,
    path: str,
) -> None:
    """Say whether a path may be changed, and which layer says so by which pattern.

    PATH counts from the top of the repository. What rules about sizes and contents say of a change
    in it, `orch policy check` tells.
    """
    found = force_of(context, run_name, task, policy_file)
    spoken = of_path(found, path)
    outcome = verdict(spoken)
    data = {
        **found.about,
        "path": path,
        "outcome": outcome,
        "items": [each.as_json() for each in spoken],
        "truncated": False,
        "next_cursor": None,
    }
    words = {
        "allowed": "may be changed",
        "asked": "may be changed once somebody has approved",
        "denied": "may not be changed",
    }
    rows = tuple((s.layer, s.rule, s.outcome, s.pattern) for s in spoken)
    shell_of(context).output.result(
        data,
        Sentence(f"{path} {words[outcome]}", ("path", path, outcome)),
        Table(("LAYER", "RULE", "SAYS", "PATTERN"), rows, "no rule speaks of it", (0, 1, 2), (3,)),
    )
