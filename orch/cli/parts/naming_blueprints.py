"""Blueprints that a command names: found only then, every problem told."""

import os
from collections.abc import Callable

import click

from inbox_orch.shared.shell.commandline import Shell

from ...runs.model import Run
from ...runs.plan import Plan, TaskSpec
from .base import Command


def blueprint_option(words: str) -> Callable[[Command], Command]:
    """`--blueprint NAME|FILE`."""
    return click.option("--blueprint", metavar="NAME|FILE", help=words)


def with_blueprint(shell: Shell, spec: TaskSpec, name: str | None, folder: str) -> TaskSpec:
    """The task with the blueprint of this name; error `usage` after every problem has been told,
    `not_found`."""
    drawn = drawn_by(shell, name, folder)
    return spec if drawn is None else spec._replace(blueprint=drawn[0], drawn=drawn[1])


def drawn_by(shell: Shell, name: str | None, folder: str) -> tuple[str, str] | None:
    """The id and the text of the blueprint of this name; None where none is named. Errors as
    above."""
    if name is None:
        return None
    from .blueprints import named  # with all the rules of blueprints

    found = named(shell, name, folder)
    return found.id, found.canonical()


def resolved(shell: Shell, plan: Plan, folder: str) -> Plan:
    """A plan, with the texts of the blueprints that its tasks name. Errors as above."""
    if not any(task.blueprint for task in plan.tasks):
        return plan
    known: dict[str, TaskSpec] = {}
    for task in plan.tasks:
        if task.blueprint and task.blueprint not in known:
            known[task.blueprint] = with_blueprint(shell, task, task.blueprint, folder)
    return plan._replace(
        tasks=tuple(
            task
            if not task.blueprint
            else task._replace(
                blueprint=known[task.blueprint].blueprint, drawn=known[task.blueprint].drawn
            )
            for task in plan.tasks
        )
    )


def folder_of(run: Run | None) -> str:
    """Where the blueprints of a run's repository are looked for."""
    return os.getcwd() if run is None or run.repository is None else run.repository
