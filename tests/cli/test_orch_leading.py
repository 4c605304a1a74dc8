"""What a person at a terminal is told to do next, and nobody else."""

from support.commands import command_path
from support.orch_matrix import Enterprise
from support.terminals import Viewed


def on_a_terminal(project: Enterprise, *words: str, **environment: str) -> str:
    view = Viewed(command_path("orch"), *words, folder=project.folder, **environment)
    try:
        assert view.ended() == 0, view.sent
        return view.sent
    finally:
        view.close()


def led_to(project: Enterprise, *words: str, **environment: str) -> str:
    *_, last = on_a_terminal(project, *words, **environment).splitlines()
    assert last.startswith("next: "), last
    return last.removeprefix("next: ")


def test_each_success_leads_on_to_the_next_call_on_a_terminal_alone(tmp_path):
    project = Enterprise(tmp_path / "project")

    assert led_to(project, "run", "init", "--title", "T").startswith("`orch task add ")
    added = led_to(project, "task", "add", "--task", "a", "--title", "A", "--no-worktree")
    assert added.startswith("`orch dispatch` opens the attempts")
    assert "next:" not in on_a_terminal(project, "dispatch", "--dry-run")
    assert "next:" not in on_a_terminal(project, "run", "resume", "--json")
    piped = project.orch("dispatch", FORCE_COLOR="1")
    assert (piped.code, piped.stderr) == (0, b"")
    assert "next:" not in piped.text
    assert led_to(project, "reconcile").startswith("`inbox work --agent NAME --mailbox ")
    assert led_to(project, "cancel", "a") == "`orch run close` closes the run"


def test_orch_by_itself_shows_each_open_run_and_what_needs_somebody(tmp_path):
    project = Enterprise(tmp_path / "project")
    assert (project.orch().code, project.orch().stdout) == (0, b"")
    assert "no run is open" in on_a_terminal(project)
    name = project.orch("run", "init", "--title", "T").text.split("\t")[0]
    add = ("task", "add", "--no-worktree", "--title", "Do it", "--task")
    for key in ("a", "b", "c"):
        project.orch(*add, key)
    project.orch("dispatch", "b")
    with project.bus("w") as worker:
        claimed = worker.claim(mailboxes=["workers"])
        worker.ask(claimed.thread.id, claimed.lease.token, body="Which one?")

    piped, (item,) = project.orch(), project.orch("--json").data["items"]

    assert (item["run"]["name"], item["outcome"]) == (name, "running")
    assert item["counts"] == {"ready": 2, "blocked": 1}
    need = {"key": "b", "title": "Do it", "standing": "blocked", "why": "its worker asks"}
    assert item["needs"] == [need]
    assert item["next"].startswith("b asks: `orch blocked` shows what")
    assert piped.text.splitlines() == [
        f"run\t{name}\trunning",
        "b\tblocked\tits worker asks\tDo it",
    ]
    assert f"next: {item['next']}"[:60] in on_a_terminal(project).replace("\r\n", " ")
    brief = project.orch("status", "--brief")
    assert brief.text.splitlines()[1] == "b\tblocked\tw\tasks: see `orch blocked`"
    ready = project.orch("status", "--state", "ready", "--brief", "--json").data
    assert [each["key"] for each in ready["items"]] == ["a", "c"]
    assert project.orch("status").text.splitlines()[1].startswith("b\tblocked")
    assert project.orch("status", "--json").data["needs"] == ["b"]
