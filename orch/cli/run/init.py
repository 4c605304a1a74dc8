"""`orch run init`."""

import os

import click

from inbox_orch.shared.errors import usage
from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import PATH, TEXT, Choice, Number, Verb, shell_of

from ...runs import limits
from ...runs.config import Config
from ...runs.plan import Opening
from ...runs.planning import POLICIES, check_run
from ..parts.base import key_option, lead_on, open_scheduler
from ..parts.database import ensure_database
from ..parts.documents import config_in


@click.command(
    "init",
    cls=Verb,
    agent=True,
    examples=(
        "orch run init --title 'Fix the parser'",
        "orch run init --title 'Release 2' --base origin/main --max-parallel 4",
    ),
)
@click.option("--title", type=TEXT, required=True, metavar="TEXT", help="One line.")
@click.option(
    "--repo", type=PATH, metavar="DIR", help="The git repository; default: that of this folder."
)
@click.option("--no-repo", is_flag=True, help="A run without git: its tasks have no worktree.")
@click.option("--base", metavar="REF", help="Where attempts start; default: HEAD at each dispatch.")
@click.option(
    "--on-failure",
    type=Choice(POLICIES),
    default="continue",
    show_default=True,
    help="After a task's last try failed: go on, start nothing more, or cancel the rest.",
)
@click.option(
    "--max-parallel",
    type=Number(1, limits.MOST_PARALLEL, whole=True),
    metavar="N",
    help="At most this many attempts at once.",
)
@click.option(
    "--config",
    "config_file",
    type=PATH,
    metavar="FILE|-",
    help="YAML or JSON: files to copy, set-up, limits, checks, secrets.",
)
@click.option(
    "--worktree-root",
    type=PATH,
    metavar="DIR",
    help="Where worktrees are made; default: inbox-orch/worktrees in XDG_STATE_HOME.",
)
@key_option
@click.pass_context
def command(
    context: click.Context,
    title: str,
    repo: str | None,
    no_repo: bool,
    base: str | None,
    on_failure: str,
    max_parallel: int | None,
    config_file: str | None,
    worktree_root: str | None,
    key: str | None,
) -> None:
    """Open a run. Makes the database if the project has none yet, and says so.

    The agent that opens it is its leader (default: `leader`).
    """
    shell = shell_of(context)
    if no_repo and repo is not None:
        raise usage("give either --repo or --no-repo, not both")
    config = Config() if config_file is None else config_in(shell, config_file)
    folder = None if no_repo else (repo or os.getcwd())
    opening = Opening(title, base, on_failure, max_parallel, folder is None, config)
    created = ensure_database(shell, lambda: check_run(opening, folder, worktree_root))
    scheduler = open_scheduler(context)
    answer = scheduler.run_init(opening, repository=folder, worktree_root=worktree_root, key=key)
    if created is not None:
        shell.output.notice(f"made the database {created}")
    run = answer.data["run"]
    data = answer.as_json() | {"database_created": created is not None}
    shell.output.result(data, Sentence(f"Opened run {run['name']}", (run["name"], run["id"])))
    lead_on(context, scheduler, run["name"])
