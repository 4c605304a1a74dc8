"""`orch policy show`."""

import json
from typing import Any

import click

from inbox_orch.shared.shell.blocks import Table
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...runs.policies import RULES
from ...views.policies import said
from ..parts.base import run_option
from ..parts.policies import file_option, force_of


@click.command(
    "show",
    cls=Verb,
    agent=True,
    examples=("orch policy show", "orch policy show parser", "orch policy show --policy mine.yaml"),
)
@run_option
@file_option
@click.argument("task", required=False, metavar="[TASK]")
@click.pass_context
def command(
    context: click.Context, run_name: str | None, policy_file: str | None, task: str | None
) -> None:
    """Show the policy of a run, or of a task: each rule with what it says and the layer that says
    so. Layers stand from the outermost; all of them count, and of numbers and words the strictest.

    Without a policy only the floor is held, which nothing loosens.
    """
    found = force_of(context, run_name, task, policy_file)
    rules = said(found)
    data = {
        **found.about,
        "layers": [layer.as_json() for layer in (*found.policy.layers, *found.stages)],
        "items": [{**each.as_json(), "meaning": RULES[each.rule].meaning} for each in rules],
        "truncated": False,
        "next_cursor": None,
    }
    rows = tuple((each.rule, _shown(each.value), each.layer) for each in rules)
    empty = "no policy: only the floor is held (`policy:` in the config of a run gives one)"
    table = Table(("RULE", "SAYS", "LAYER"), rows, empty, (0, 2), (1,))
    shell_of(context).output.result(data, table)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(value) or "(nothing)"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
