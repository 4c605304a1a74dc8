"""When no run is open, who looks gets the last one and is told so; who changes something is not
given a run that was not named."""

import pytest

from support.orch_matrix import Enterprise

LOOKING = (
    "status",
    "report",
    "timeline",
    "graph",
    "ready",
    "blocked",
    "critical-path",
    "conflicts",
    "plan export",
    "run show",
    "task show a",
    "attempt list",
    "gate list",
    "checkpoint list",
    "policy show",
    "policy explain a.py",
    "patch list",
)
CHANGING = (
    "dispatch",
    "dispatch --dry-run",
    "drive",
    "worker",
    "wait",
    "reconcile",
    "integrate --onto main",
    "integrate --dry-run",
    "cleanup",
    "cleanup --dry-run",
    "cancel a",
    "skip a",
    "retry a",
    "reassign a --to others",
    "adopt a",
    "answer a --body b",
    "attempt restore a/1",
    "checkpoint make a/1",
    "checkpoint restore a/1/1",
    "patch rollback a/1/1",
    "task add --task b --title B",
    "dep add a --on b",
    "dep remove a --on b",
    "plan import plan.yaml",
    "run pause",
    "run resume",
    "run close",
    "run cancel",
)


@pytest.fixture
def project(tmp_path) -> Enterprise:
    """A project with two closed runs, the older one of which was closed last."""
    enterprise = Enterprise(tmp_path / "project")
    names = [opened(enterprise, title) for title in ("Last", "Other")]
    for name in names:
        enterprise.orch("task", "add", "--task", "a", "--title", "A", "--run", name)
    for name in reversed(names):
        assert enterprise.orch("run", "close", "--run", name).code == 0
    (enterprise.folder / "plan.yaml").write_text("tasks: [{task: b, title: B}]\n")
    return enterprise


def opened(project: Enterprise, title: str) -> str:
    return project.orch("run", "init", "--title", title).text.split("\t")[0]


def closed_last(project: Enterprise) -> str:
    items = project.orch("run", "list", "--all", "--json").data["items"]
    return str(max(items, key=lambda run: run["closed_at"])["name"])


@pytest.mark.parametrize("line", LOOKING)
def test_who_looks_gets_the_last_run_and_is_told(project: Enterprise, line: str):
    name = closed_last(project)
    assert name.startswith("last-")

    ended = project.orch(*line.split())
    named = project.orch(*line.split(), "--run", name)
    as_json = project.orch(*line.split(), "--json")

    assert (ended.code, ended.stdout) == (0, named.stdout)
    told = f"no run is open: this is {name}, the last; --run names another\n"
    assert (ended.stderr.decode(), named.stderr) == (told, b"")
    assert (as_json.data["last_run"], as_json.stderr) == (name, b"")
    assert "last_run" not in project.orch(*line.split(), "--json", "--run", name).data


@pytest.mark.parametrize("line", CHANGING)
def test_who_changes_something_is_given_no_run_that_was_not_named(project: Enterprise, line: str):
    before = project.contents()

    error = project.orch(*line.split(), "--json").error

    assert (error["code"], error["message"]) == ("not_found", "there is no open run")
    assert error["hint"] == (
        f"--run {closed_last(project)} names the last one, which is closed; "
        "`orch run init --title T` opens one"
    )
    assert project.contents() == before


def test_where_all_runs_are_closed_a_wrong_name_leads_to_their_list(tmp_path):
    project = Enterprise(tmp_path / "project")
    name = project.open_run()
    assert project.orch("status", "--run", "xyz", "--json").error["hint"] == f"open runs: {name}"

    project.orch("run", "close")

    hint = project.orch("status", "--run", "xyz", "--json").error["hint"]
    assert hint == "`orch run list --all` lists those that are closed"


def test_an_open_run_is_taken_before_any_that_is_closed(project: Enterprise):
    name = opened(project, "Open")

    assert project.orch("status", "--json").data["run"]["name"] == name
    assert project.orch("status").stderr == b""
    opened(project, "Another")
    assert project.orch("status", "--json").error["code"] == "usage"


def test_without_any_run_there_is_nothing_to_show(tmp_path):
    empty = Enterprise(tmp_path / "project")
    empty.run("init")

    error = empty.orch("status", "--json").error

    assert (error["code"], error["hint"]) == ("not_found", "`orch run init --title T` opens one")


def test_a_council_is_not_taken_for_the_last_run(project: Enterprise):
    brief = project.folder / "brief.md"
    brief.write_text("# A brief\n\nWhat now?\n")
    started = project.orch("council", "start", "--brief-file", str(brief), "--json")
    council = started.data["council"]["name"]
    assert project.orch("run", "cancel", council).code == 0

    assert project.orch("status", "--json").data["last_run"] == closed_last_work(project)
    shown = project.orch("council", "show")
    assert f"no council is open: this is {council}, the last" in shown.stderr.decode()
    assert project.orch("council", "show", "--json").data["last_run"] == council
    refused = project.orch("council", "ballot", "--json").error
    assert refused["message"] == "there is no open council"
    assert f"--council {council} names the last one" in refused["hint"]


def closed_last_work(project: Enterprise) -> str:
    items = project.orch("run", "list", "--all", "--json").data["items"]
    return next(str(run["name"]) for run in items if run["name"].startswith("last-"))


@pytest.mark.parametrize(
    "line",
    [
        *("run close", "run show", "run pause", "run resume", "run reopen", "run cancel"),
        *("status", "report", "timeline", "graph", "ready", "blocked", "critical-path"),
        *("conflicts", "plan export", "drive", "wait", "reconcile"),
    ],
)
def test_a_run_may_be_named_without_an_option(project: Enterprise, line: str):
    name = closed_last(project)

    by_word = project.orch(*line.split(), name, "--json")
    twice = project.orch(*line.split(), name, "--run", name, "--json")
    different = project.orch(*line.split(), name, "--run", "other", "--json")
    unknown = project.orch(*line.split(), "no-such-run", "--json")

    assert by_word.code in (0, 4, 11), by_word
    assert "no open run" not in by_word.stdout.decode()
    assert twice.code in (0, 4, 11), twice
    lines = different.stdout.decode()
    assert (different.code, "are not the same" in lines) == (2, True), different
    assert unknown.code == 3


def test_a_run_that_is_named_wins_over_the_variable(project: Enterprise):
    name = closed_last(project)

    for value in ("", "no-such-run"):
        assert project.orch("status", name, ORCH_RUN=value).code == 0
    assert project.orch("status", "--json", ORCH_RUN="").error["message"] == "ORCH_RUN is empty"
    assert project.orch("status", "", "--json").error["message"] == "run is empty"
