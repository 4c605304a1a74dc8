"""A command that opens only one group of the scheduler's services does what the whole would do.

A group that calls a method which some other part of the scheduler overrides would go its own way
without anybody noticing.
"""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

from inbox_orch.orch import cli
from inbox_orch.orch.services.provisioning import Provisioning
from inbox_orch.orch.services.scheduler import Scheduler

OPENED = re.compile(r"open_group\(context, (\w+)\)")


def groups() -> dict[str, list[type]]:
    """Which groups the commands open, by the command's module."""
    found: dict[str, list[type]] = {}
    for info in pkgutil.iter_modules(cli.__path__):
        if info.name == "base":  # it declares it
            continue
        module = importlib.import_module(f"{cli.__name__}.{info.name}")
        names = OPENED.findall(Path(str(module.__file__)).read_text(encoding="utf-8"))
        if names:
            found[info.name] = [getattr(module, name) for name in names]
    return found


def differing(group: type) -> set[str]:
    """The attributes that the group has otherwise than the whole scheduler."""
    names = {name for name in dir(group) if not name.startswith("__")}
    return {name for name in names if getattr(group, name) is not getattr(Scheduler, name)}


@pytest.mark.parametrize("command, opened", sorted(groups().items()))
def test_a_group_that_a_command_opens_behaves_like_the_whole_scheduler(command, opened):
    assert {name for group in opened for name in differing(group)} == set()


def test_the_commands_that_only_look_open_a_group():
    looking = {
        "blocked",
        "conflicts",
        "doctor",
        "graph",
        "ready",
        "run_list",
        "status",
        "task_show",
    }

    assert looking <= set(groups())


def test_the_comparison_sees_a_method_that_another_part_overrides():
    assert differing(Provisioning) >= {"finish_intents"}
