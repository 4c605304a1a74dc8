"""Where a number of seconds is taken, units are taken, too: in both commands, in the environment,
in plans and in configs."""

import pytest

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.commandline import Number
from inbox_orch.shared.shell.values import parse_seconds
from support.commands import Project
from support.every_option import EVERY, Taken
from support.orch_matrix import Enterprise

SECONDS = [each for each in EVERY if each.parameter.metavar == "SECONDS"]


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("90", 90),
        (" 90 ", 90),
        ("5m ", 300),
        ("0.5", 0.5),
        ("90s", 90),
        ("5m", 300),
        ("2h", 7200),
        ("1d", 86400),
        ("1h30m", 5400),
        ("1d2h3m4.5s", 93784.5),
        ("1.5h", 5400),
        ("0s", 0),
    ],
)
def test_units_count_as_the_seconds_that_they_are(text: str, seconds: float):
    assert parse_seconds("it", text, 0, 10**6) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *("", "m", "5 m", "5M", "30m1h", "1h1h", "-5m", "1h30", "5min", "1e2s", "inf", "nan"),
        *(".5m", "٣m", "5w", "1:30"),
    ],
)
def test_what_is_no_duration_is_refused_with_the_unit_and_plain_numbers(text: str):
    with pytest.raises(InboxOrchError) as failure:
        parse_seconds("--lease", text, 1, 31622400)
    assert failure.value.message == (
        "--lease must be a number of seconds from 1 to 31622400, or like 90s, 5m, 2h or 1h30m, "
        f"not {text!r}"
    )


@pytest.mark.parametrize("each", SECONDS, ids=str)
def test_every_option_of_seconds_takes_units(each: Taken):
    kind = each.parameter.type
    assert isinstance(kind, Number)

    assert kind.seconds
    assert kind.convert("1h30m", each.parameter, None) == 5400
    with pytest.raises(InboxOrchError) as failure:
        kind.convert("40000h", each.parameter, None)
    assert "number of seconds" in failure.value.message
    assert "e+" not in failure.value.message


def test_only_those_take_units():
    numbers = [each for each in EVERY if isinstance(each.parameter.type, Number)]
    assert {str(e) for e in numbers if e.parameter.type.seconds} == {str(e) for e in SECONDS}


def test_a_worker_leases_and_waits_by_units(tmp_path):
    project = Project(tmp_path / "bus")
    project.send()

    lease = project.json("claim", "--agent", "w1", "--mailbox", "workers", "--lease", "5m").data
    assert lease["lease"]["lease_seconds"] == 300
    assert project.json("fetch", "--agent", "w2", "--wait", "0s").code == 8
    assert project.run("list", INBOX_BUSY_TIMEOUT="1m").code == 0
    error = project.json("list", INBOX_BUSY_TIMEOUT="2d").error
    assert error["message"].startswith("INBOX_BUSY_TIMEOUT must be a number of seconds from 0 to")


def test_a_plan_and_a_config_take_units_and_hand_out_seconds(tmp_path):
    project = Enterprise(tmp_path / "project")
    (project.folder / "run.yaml").write_text(
        "setup: {command: 'true', timeout_seconds: 2m}\n"
        "limits: {run_seconds: 1h30m, queue_seconds: 60}\n"
        "cancel_grace_seconds: 90s\n"
    )
    (project.folder / "plan.yaml").write_text(
        "tasks: [{task: a, title: A, limits: {block_seconds: 1d}}, {task: b, title: B}]\n"
    )
    project.orch("run", "init", "--title", "T", "--config", "run.yaml")
    assert project.orch("plan", "import", "plan.yaml").code == 0

    config = project.orch("run", "show", "--json").data["config"]
    assert (config["limits"]["run_seconds"], config["cancel_grace_seconds"]) == (5400, 90)
    assert (config["limits"]["queue_seconds"], config["setup"]["timeout_seconds"]) == (60, 120)
    plan = project.orch("plan", "export", "--json").data["plan"]
    assert plan["tasks"][0]["limits"]["block_seconds"] == 86400


@pytest.mark.parametrize(
    "text, told",
    [
        ("5 minutes", "must be a number of seconds, or like 90s, 5m, 2h or 1h30m"),
        ("'60'", "must be a number of seconds, or like 90s, 5m, 2h or 1h30m"),
        ("0s", "must be greater than or equal to 1"),
        ("40000h", "must be less than or equal to 31622400"),
        ("true", "must be a number"),
    ],
)
def test_a_wrong_duration_of_a_config_is_told_in_plain_numbers(tmp_path, text: str, told: str):
    project = Enterprise(tmp_path / "project")
    (project.folder / "run.yaml").write_text(f"limits: {{run_seconds: {text}}}\n")

    error = project.orch("run", "init", "--title", "T", "--config", "run.yaml", "--json").error

    assert error["code"] == "usage"
    assert f"limits.run_seconds: {told}" in error["message"]
