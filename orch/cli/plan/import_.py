"""`orch plan import`."""

import os
import shlex
from typing import Any

import click

from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import PATH, Verb, shell_of

from ...leader.scheduler import Scheduler
from ...runs.model import Run
from ...runs.plan import Plan
from ..parts.base import chosen_run, key_option, lead_on, open_scheduler, run_option
from ..parts.documents import faults_told, plan_in
from ..parts.naming_blueprints import folder_of, resolved


@click.command(
    "import",
    cls=Verb,
    agent=True,
    examples=(
        "orch plan import plan.yaml --dry-run",
        "orch plan import plan.yaml --key plan-7",
        "orch plan export --run old | orch plan import - --new-run",
    ),
)
@run_option
@click.argument("path", type=PATH, metavar="FILE|-")
@click.option("--new-run", is_flag=True, help="Open the run that the plan's `run` describes.")
@click.option(
    "--repo", type=PATH, metavar="DIR", help="With --new-run: its repository, if not this one."
)
@click.option("--worktree-root", type=PATH, metavar="DIR", help="With --new-run: as of `run init`.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@key_option
@click.pass_context
def command(
    context: click.Context,
    run_name: str | None,
    path: str,
    new_run: bool,
    repo: str | None,
    worktree_root: str | None,
    dry_run: bool,
    key: str | None,
) -> None:
    """Add every task of a plan (YAML or JSON), and what each waits for: all or nothing.

    Into the chosen run, whatever the plan says under `run`; into a new one with --new-run. Every
    problem of the file is told at once, with its line.
    """
    if (
        new_run
        and context.get_parameter_source("run_name") == click.core.ParameterSource.COMMANDLINE
    ):
        raise usage("give either --run or --new-run, not both")
    if not new_run and (repo is not None or worktree_root is not None):
        raise usage("--repo and --worktree-root go with --new-run")
    scheduler = _open(context, path, new_run, dry_run)
    plan, source = plan_in(shell_of(context), path)
    with faults_told(shell_of(context), source):
        if new_run:
            plan = resolved(shell_of(context), plan, repo or os.getcwd())
            data = _opened(scheduler, plan, repo, worktree_root, dry_run, key)
        else:
            run = chosen_run(scheduler, run_name)
            plan = resolved(shell_of(context), plan, folder_of(run))
            data = _added(scheduler, run, plan, dry_run, key)
    shell_of(context).output.result(data, _said(data))
    if not dry_run:
        lead_on(context, scheduler, data["run"]["name"])


def _open(context: click.Context, path: str, new_run: bool, dry_run: bool) -> Scheduler:
    """The scheduler; where there is no database, the error says what to call to have one."""
    try:
        return open_scheduler(context, looks=dry_run)
    except InboxOrchError as error:
        if error.code == "no_database" and new_run and "inbox init" in (error.hint or ""):
            database = shell_of(context).database
            where = "" if database is None else f" --db {shlex.quote(database)}"
            error.hint = (
                f"run `inbox init{where}`, then the same call again; only `inbox init` and "
                "`orch run init` make a database"
            )
        raise


def _added(
    scheduler: Scheduler, run: Run, plan: Plan, dry_run: bool, key: str | None
) -> dict[str, Any]:
    if dry_run:
        return scheduler.plan_check(run, plan, repository=run.repository is not None)
    return scheduler.plan_import(run, plan, key=key).as_json()


def _opened(
    scheduler: Scheduler,
    plan: Plan,
    repo: str | None,
    worktree_root: str | None,
    dry_run: bool,
    key: str | None,
) -> dict[str, Any]:
    opening = plan.run
    if opening is None:
        raise usage(
            "the plan says nothing of a run",
            hint="write `run: {title: …}` into it, or import it into a run that is open",
        )
    if opening.no_repo and repo is not None:
        raise usage("the plan is for a run without a repository (no_repo)", hint="leave --repo out")
    folder = None if opening.no_repo else (repo or os.getcwd())
    if dry_run:
        scheduler.plan_opening_check(opening, folder, worktree_root)
        return scheduler.plan_check(None, plan, repository=folder is not None)
    return scheduler.plan_open(
        plan, opening, repository=folder, worktree_root=worktree_root, key=key
    ).as_json()


def _said(data: dict[str, Any]) -> Sentence:
    run = data["run"]
    name = "a new run" if run is None else f"run {run['name']}"
    tasks, edges = data["task_count"], data["dependency_count"]
    verb = "Would add" if data["dry_run"] else "Added"
    opened = " (opened now)" if data["run_opened"] and run is not None else ""
    return Sentence(
        f"{verb} {tasks} tasks and {edges} dependencies to {name}{opened}",
        (None if run is None else run["name"], tasks, edges),
    )
