"""What `orch show` takes a word for, and `orch task list`, in one project for all tests."""

import pytest

from inbox_orch.orch.runs import readiness
from inbox_orch.orch.schemas import things
from support.orch_matrix import Enterprise, the_run
from support.runs import add_task


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Enterprise:
    """Task `lexer`, which asks, with `parser` after it, and `lint`."""
    enterprise = Enterprise(tmp_path_factory.mktemp("show") / "project").tasks("lexer", "parser")
    with enterprise.scheduler() as scheduler:
        run = the_run(scheduler)
        add_task(scheduler, run, key_name="lint", title="Do lint", worktree=False, priority=3)
        (item,) = scheduler.dispatch(run, task_names=["lexer"]).items
        with enterprise.bus("w1") as bus:
            token = bus.claim(item["thread"], mailboxes=["workers"]).lease.token
            bus.ask(item["thread"], str(token), body="which?")
        scheduler.reconcile(run)
    return enterprise


def same(project: Enterprise, word: str, *line: str, program: str = "orch") -> bool:
    """Whether `orch show WORD` prints what the line prints, as text and as JSON."""
    call = project.orch if program == "orch" else project.run
    plain = project.orch("show", word).stdout == call(*line).stdout
    return plain and project.orch("show", word, "--json").data == call(*line, "--json").data


def beginning_of_its_own(project: Enterprise, task: str) -> str:
    """Those that are made in one millisecond may differ in their last characters alone."""
    with project.scheduler() as scheduler:
        others = {row.standing.task.id for row in scheduler.status(the_run(scheduler)).rows} - {
            task
        }
    lengths = range(20, 27)
    return next(task[:n] for n in lengths if not any(o.startswith(task[:n]) for o in others))


def test_each_kind_is_printed_as_its_own_command_prints_it(project: Enterprise):
    attempt = project.orch("attempt", "show", "lexer", "--json").data["attempt"]
    task = project.orch("task", "show", "lexer", "--json").data["task"]
    run = project.orch("run", "show", "--json").data["run"]
    of_task = beginning_of_its_own(project, task["id"])

    for word in (run["name"], run["name"][:3], run["id"], run["id"][:-1]):
        assert same(project, word, "run", "show"), word
    for word in ("lexer", "lex", task["id"], of_task.lower()):
        assert same(project, word, "task", "show", "lexer"), word
    for word in ("lexer/1", attempt["id"], attempt["id"][:-1]):
        assert same(project, word, "attempt", "show", "lexer"), word
    thread = attempt["thread"]
    for word in (thread, thread[:-1]):
        assert same(project, word, "show", thread, program="inbox"), word


def test_a_beginning_of_several_things_names_them_all(project: Enterprise):
    error = project.orch("show", "l", "--json").error

    assert error["code"] == "usage"
    assert error["message"] == "'l' may be several things: task lexer, task lint"


def test_a_beginning_of_ids_of_every_kind_is_of_several(project: Enterprise):
    run = project.orch("run", "show", "--json").data["run"]

    assert project.orch("show", run["id"][:6], "--json").error["code"] == "usage"


def test_what_nothing_is_called_has_the_nearest_name_as_hint(project: Enterprise):
    error = project.orch("show", "lexr", "--json").error

    assert (error["code"], error["hint"]) == ("not_found", "did you mean lexer?")
    far = project.orch("show", "zzzz", "--json").error
    assert "`orch task list`" in far["hint"]


def test_tasks_are_listed_in_few_words(project: Enterprise):
    listed = project.orch("task", "list", "--json").data

    assert [item["key"] for item in listed["items"]] == ["lexer", "parser", "lint"]
    assert listed["items"][0]["standing"] == "blocked"
    assert listed["items"][1]["because"] == ["lexer"]
    assert project.orch("task", "list").text.splitlines() == [
        "lexer\tblocked\t1\tw1\tDo lexer",
        "parser\twaiting\t0\tworkers\tDo parser",
        "lint\tready\t0\tworkers\tDo lint",
    ]


def test_states_choose_among_them(project: Enterprise):
    words = ("task", "list", "--state", "waiting", "--state", "ready")

    assert project.orch(*words).text == (
        "parser\twaiting\t0\tworkers\tDo parser\nlint\tready\t0\tworkers\tDo lint\n"
    )
    assert project.orch(*words, "--limit", "1", "--json").data["truncated"] is True
    assert project.orch("task", "list", "--state", "pendng", "--json").error["code"] == "usage"


def test_the_states_to_choose_are_those_of_the_models():
    assert set(readiness.STANDINGS) == set(things.StandingState.__args__)
