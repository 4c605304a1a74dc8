"""A thing may be named by the beginning of its name or id, where only one begins so."""

import pytest

from support.commands import Project
from support.orch_matrix import Enterprise


@pytest.fixture
def bus(tmp_path) -> Project:
    return Project(tmp_path / "bus")


@pytest.fixture
def project(tmp_path) -> Enterprise:
    return Enterprise(tmp_path / "project")


def common(one: str, other: str) -> str:
    """The longest beginning that both have."""
    length = next(n for n, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
    return one[:length]


@pytest.mark.parametrize("length", [4, 10, 25])
def test_a_thread_is_known_by_its_beginning(bus: Project, length: int):
    thread = bus.send()
    beginning = thread[:length]

    claimed = bus.json("claim", beginning, "--agent", "w1", "--mailbox", "workers").data
    assert claimed["thread"]["id"] == thread
    token = ("--token", claimed["lease"]["token"])
    for words in (
        ("show", beginning.lower()),
        ("watch", "--thread", beginning, "--after", "0", "--wait", "0"),
        ("renew", beginning, *token),
        ("update", beginning, *token, "--progress", "5"),
        ("ask", beginning, *token, "--body", "which?"),
        ("reply", beginning, "--agent", "leader", "--body", "this"),
        ("wait-reply", beginning, *token, "--wait", "0"),
        ("done", beginning, *token),
    ):
        assert bus.run(*words, "--json").code == 0, words
    assert bus.json("show", beginning).data["thread"]["state"] == "done"


def test_three_characters_name_no_thread(bus: Project):
    thread = bus.send()

    assert bus.json("show", thread[:3]).error["code"] == "not_found"


@pytest.mark.parametrize("verb", ["show", "claim", "cancel", "reply"])
def test_a_beginning_of_several_threads_names_them_and_changes_nothing(bus: Project, verb: str):
    threads = [bus.send() for _ in range(7)]
    before = bus.contents()
    more = {"reply": ("--body", "b")}.get(verb, ())

    error = bus.json(verb, threads[0][:4], "--agent", "leader", *more).error

    assert (error["code"], bus.contents()) == ("usage", before)
    newest = threads[:1:-1]
    assert error["details"]["threads"] == newest
    assert error["message"] == (
        f"'{threads[0][:4]}' is the beginning of several threads: {', '.join(newest)}, …"
    )
    assert error["hint"] == "give more of the one that is meant"


def test_a_sealed_thread_is_not_found_by_its_beginning_by_others(bus: Project):
    sealed = bus.send(sealed=True)
    assert bus.json("show", sealed[:25], "--agent", "other").error["code"] == "not_found"
    assert bus.json("show", sealed[:25], "--agent", "leader").data["thread"]["id"] == sealed

    open_to_all = bus.send()

    beginning = common(sealed, open_to_all)
    assert bus.json("show", beginning, "--agent", "other").data["thread"]["id"] == open_to_all
    assert bus.json("show", beginning, "--agent", "leader").error["code"] == "usage"


def opened(project: Enterprise, title: str) -> dict[str, str]:
    run = project.orch("run", "init", "--title", title, "--json").data["run"]
    assert isinstance(run, dict)
    return run


def test_a_run_is_known_by_the_beginning_of_its_name_or_id(project: Enterprise):
    one, other = opened(project, "Fix it"), opened(project, "Fix that")

    for beginning in ("fix-i", one["name"][:-1], one["id"][:-1], one["id"][:-1].lower()):
        assert project.orch("run", "show", "--run", beginning, "--json").data["run"] == one
        assert project.orch("run", "show", "--json", ORCH_RUN=beginning).data["run"] == one
    assert project.orch("run", "close", "fix-t").code == 0
    states = {run["name"]: run["state"] for run in listed(project)}
    assert states == {one["name"]: "open", other["name"]: "closed"}


@pytest.mark.parametrize("line", ["run close", "run cancel", "status", "drive", "run pause"])
def test_a_beginning_of_several_runs_names_them_and_changes_nothing(project: Enterprise, line: str):
    names = [opened(project, title)["name"] for title in ("Fix it", "Fix that")]
    assert project.orch("run", "close", names[1]).code == 0
    before = project.contents()

    error = project.orch(*line.split(), "fix", "--json").error

    assert error["code"] == "usage"
    assert error["message"] == f"'fix' is the beginning of several runs: {', '.join(names)}"
    assert (error["details"]["runs"], project.contents()) == (names, before)


def test_a_whole_name_is_itself_and_not_the_beginning_of_another(project: Enterprise):
    one = opened(project, "Fix")
    opened(project, one["name"])

    assert project.orch("run", "show", one["name"], "--json").data["run"] == one


def listed(project: Enterprise) -> list[dict[str, str]]:
    items = project.orch("run", "list", "--all", "--json").data["items"]
    assert isinstance(items, list)
    return items


def test_an_attempt_is_known_by_the_beginning_of_its_id(project: Enterprise):
    project.running()
    attempts = project.orch("attempt", "list", "--json").data["items"]
    attempt = attempts[0]["id"]

    shown = project.orch("attempt", "show", attempt[:20], "--json").data["attempt"]
    assert shown["id"] == attempt
    assert project.orch("attempt", "show", attempt[:3], "--json").error["code"] == "not_found"
    assert project.orch("attempt", "show", "a", "--json").data["attempt"]["id"] == attempt


def test_a_council_is_known_by_the_beginning_of_its_name_and_a_run_is_no_council(
    project: Enterprise,
):
    brief = project.folder / "brief.md"
    brief.write_text("# Which store\n\nOne file or many?\n")
    council = project.orch("council", "start", "--brief-file", str(brief), "--json").data["council"]
    opened(project, "Which way")

    for beginning in ("wh", council["name"][:-2], council["id"][:-1]):
        shown = project.orch("council", "show", beginning, "--json").data["council"]
        assert shown["id"] == council["id"]
    assert project.orch("council", "show", "which-w", "--json").error["code"] == "not_found"
    assert project.orch("status", "which", "--json").error["code"] == "usage"
