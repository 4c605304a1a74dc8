"""`orch task edit`."""

from typing import Any

import click

from inbox_orch.shared.errors import usage
from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import PATH, TEXT, Number, Verb, shell_of

from ...attempts.rework import Edit, edit_task
from ...runs import limits
from ...runs.model import Limits
from ..parts.base import (
    chosen_run,
    harvest_option,
    key_option,
    open_scheduler,
    read_body,
    run_option,
)
from ..parts.giving_policies import policy_of, policy_options
from .add import ATTEMPTS, CLOCK, clock_option

_CLOCKS = ("queue_timeout", "timeout", "silent_timeout", "block_timeout", "check_timeout")


@click.command(
    "edit",
    cls=Verb,
    agent=True,
    examples=(
        "orch task edit lexer --title 'Rewrite the lexer by hand' --body-file lexer.md",
        "orch task edit lexer --priority 5 --check 'make test'",
    ),
)
@run_option
@click.argument("task")
@click.option("--title", type=TEXT, metavar="TEXT", help="One line.")
@click.option(
    "--body-file", type=PATH, metavar="PATH|-", help="Read the text from a file or stdin."
)
@click.option("--body", type=TEXT, metavar="TEXT", help="The text itself.")
@click.option("--kind", metavar="WORD", help="For sorting.")
@click.option(
    "--priority",
    type=Number(limits.MIN_PRIORITY, limits.MAX_PRIORITY, whole=True),
    metavar="N",
    help="Higher is dispatched first.",
)
@click.option("--max-attempts", type=ATTEMPTS, metavar="N", help="Tries that fail.")
@click.option("--max-infra-attempts", type=ATTEMPTS, metavar="N", help="Tries that are lost.")
@click.option(
    "--check",
    "checks",
    multiple=True,
    metavar="CMD",
    help="Instead of the checks that it has; repeatable.",
)
@click.option("--no-checks", is_flag=True, help="Without checks.")
@clock_option("--timeout", "it has been worked on so long, less the time blocked")
@clock_option("--queue-timeout", "no worker has claimed it for so long")
@clock_option("--silent-timeout", "its worker has renewed and said nothing for so long")
@clock_option("--block-timeout", "its question is open for so long")
@click.option(
    "--check-timeout", type=CLOCK, metavar="SECONDS", help="At most so long for each check."
)
@harvest_option("Commit for its workers what they leave uncommitted.")
@policy_options("Instead of these rules: ")
@click.option("--no-policy", is_flag=True, help="Without a policy of its own.")
@key_option
@click.pass_context
def command(
    context: click.Context,
    /,
    run_name: str | None,
    task: str,
    checks: tuple[str, ...],
    no_checks: bool,
    no_policy: bool,
    key: str | None,
    **options: Any,
) -> None:
    """Change a task that is not with a worker: one that was not dispatched yet, or waits to be
    tried again. What is not given stays. `orch reassign` gives it to other workers, `orch dep` lets
    it wait for others.
    """
    if checks and no_checks:
        raise usage("give either --check or --no-checks, not both")
    body = read_body(options.pop("body"), options.pop("body_file"))
    policy = policy_of(shell_of(context), options)
    if policy and no_policy:
        raise usage("give either rules of a policy or --no-policy, not both")
    clocks = Limits(*(options.pop(name) for name in _CLOCKS))
    wanted = Edit(
        body=body,
        checks=checks if checks or no_checks else None,
        limits=clocks,
        policy={} if no_policy else policy,
        **options,
    )
    scheduler = open_scheduler(context)
    answer = edit_task(scheduler.desk, chosen_run(scheduler, run_name), task, wanted, key=key)
    name, changed = answer.data["task"]["key"], answer.data["changed"]
    text = f"Changed the {', '.join(changed)} of {name}".replace("_", " ")
    if not changed:
        text = f"{name} is so already"
    shell_of(context).output.result(answer.as_json(), Sentence(text, (name, tuple(changed))))
