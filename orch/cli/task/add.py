"""`orch task add`."""

from collections.abc import Callable
from typing import Any

import click

from inbox_orch.inbox.domain.limits import MAX_SCHEMA_BYTES
from inbox_orch.shared.errors import usage
from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import DOCUMENT, PATH, TEXT, Number, Verb, shell_of
from inbox_orch.shared.shell.inputs import given_document

from ...runs import limits
from ...runs.model import Limits
from ...runs.plan import Link, TaskSpec
from ..parts.base import (
    Command,
    chosen_run,
    harvest_option,
    key_option,
    lead_on,
    open_scheduler,
    read_body,
    run_option,
)
from ..parts.giving_policies import policy_of, policy_options
from ..parts.naming_blueprints import blueprint_option, folder_of, with_blueprint

CLOCK = Number(1, limits.MAX_CLOCK_SECONDS, seconds=True)
HANDED_IN = ("text",)
ATTEMPTS = Number(1, limits.MOST_ATTEMPTS, whole=True)


def clock_option(name: str, when: str) -> Callable[[Command], Command]:
    """A time limit of an attempt."""
    return click.option(name, type=CLOCK, metavar="SECONDS", help=f"End an attempt when {when}.")


@click.command(
    "add",
    cls=Verb,
    agent=True,
    examples=(
        "orch task add --task lexer --title 'Rewrite the lexer' --body-file lexer.md",
        "orch task add --task report --title Report --depends-on lexer --no-worktree",
    ),
)
@run_option
@click.option("--task", "key_name", required=True, metavar="KEY", help="Its short name.")
@click.option("--title", type=TEXT, required=True, metavar="TEXT", help="One line.")
@click.option(
    "--body-file", type=PATH, metavar="PATH|-", help="Read the text from a file or stdin."
)
@click.option("--body", type=TEXT, metavar="TEXT", help="The text itself.")
@click.option(
    "--schema",
    type=DOCUMENT,
    metavar="FILE|JSON",
    help="A JSON Schema; `inbox done` refuses a result that it does not accept.",
)
@click.option("--to", metavar="MAILBOX", help="Who does it.  [default: workers]")
@click.option("--kind", default="code", show_default=True, metavar="WORD", help="For sorting.")
@click.option(
    "--depends-on", multiple=True, metavar="TASK", help="Must have succeeded; repeatable."
)
@click.option(
    "--priority",
    type=Number(limits.MIN_PRIORITY, limits.MAX_PRIORITY, whole=True),
    default=0,
    show_default=True,
    metavar="N",
    help="Higher is dispatched first.",
)
@click.option(
    "--max-attempts",
    type=ATTEMPTS,
    metavar="N",
    help="Tries that fail or are rejected.  [default: the run's, else 3]",
)
@click.option(
    "--max-infra-attempts",
    type=ATTEMPTS,
    metavar="N",
    help="Tries that are lost or cannot be provisioned.  [default: the run's, else 3]",
)
@click.option(
    "--check",
    "checks",
    multiple=True,
    metavar="CMD",
    help="Must succeed in the worktree before the work is accepted; repeatable.",
)
@click.option("--no-checks", is_flag=True, help="Without the checks of the run's config.")
@clock_option("--timeout", "it has been worked on so long, less the time blocked")
@clock_option("--queue-timeout", "no worker has claimed it for so long")
@clock_option("--silent-timeout", "its worker has renewed and said nothing for so long")
@clock_option("--block-timeout", "its question is open for so long")
@click.option(
    "--check-timeout",
    type=CLOCK,
    metavar="SECONDS",
    help=f"At most so long for each check.  [default: {limits.DEFAULT_CHECK_SECONDS:g}]",
)
@click.option("--no-worktree", is_flag=True, help="It changes no code.")
@click.option("--allow-empty", is_flag=True, help="Accept it without a commit.")
@blueprint_option("Go through its stages; `orch blueprint list` lists those that are known.")
@harvest_option(
    "Commit for its workers what they leave uncommitted.  [default: as the dispatch says]"
)
@policy_options()
@click.option(
    "--hands-in",
    type=click.Choice(HANDED_IN),
    metavar="text",
    help="Its workers have no files: a diff, or edits, in the result is brought in for them.",
)
@key_option
@click.pass_context
def command(
    context: click.Context,
    /,
    run_name: str | None,
    key_name: str,
    title: str,
    body_file: str | None,
    body: str | None,
    schema: str | None,
    to: str | None,
    kind: str,
    depends_on: tuple[str, ...],
    priority: int,
    max_attempts: int | None,
    max_infra_attempts: int | None,
    checks: tuple[str, ...],
    no_checks: bool,
    timeout: float | None,
    queue_timeout: float | None,
    silent_timeout: float | None,
    block_timeout: float | None,
    check_timeout: float | None,
    no_worktree: bool,
    allow_empty: bool,
    blueprint: str | None,
    harvest: bool | None,
    hands_in: str | None,
    key: str | None,
    **policy: Any,
) -> None:
    """Add a task to a run. What is not given is as the run's config says."""
    if checks and no_checks:
        raise usage("give either --check or --no-checks, not both")
    scheduler = open_scheduler(context)
    run = chosen_run(scheduler, run_name)
    spec = TaskSpec(
        key=key_name,
        title=title,
        body=read_body(body, body_file) or "",
        mailbox=to,
        kind=kind,
        depends_on=tuple(Link(name) for name in depends_on),
        priority=priority,
        max_attempts=max_attempts,
        max_infra_attempts=max_infra_attempts,
        worktree=not no_worktree,
        allow_empty=allow_empty,
        checks=checks if checks or no_checks else None,
        limits=Limits(queue_timeout, timeout, silent_timeout, block_timeout, check_timeout),
        result_schema=given_document(schema, MAX_SCHEMA_BYTES),
        harvest=harvest,
        policy=policy_of(shell_of(context), policy),
        hands_in=hands_in,
    )
    spec = with_blueprint(shell_of(context), spec, blueprint, folder_of(run))
    answer = scheduler.add_task(run, spec, key=key)
    shell_of(context).output.result(answer.as_json(), _added(answer.data["task"]))
    lead_on(context, scheduler, run)


def _added(task: dict[str, Any]) -> Sentence:
    return Sentence(f"Added task {task['key']}", (task["key"], task["id"]))
