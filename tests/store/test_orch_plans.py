"""Runs, tasks and dependencies: what is refused, keys, the choice of the run."""

import functools
import os

import pytest

from inbox_orch.orch.attempts import choosing
from support.buses import refused
from support.runs import Site, add_task, git, only_for, run_init


@pytest.fixture
def run(site: Site):
    return site.open_run()


# -- dependencies ----------------------------------------------------------------------------


def test_a_cycle_is_refused_with_its_path_and_changes_nothing(site: Site, run):
    site.add(run, "a")
    site.add(run, "b", depends_on=["a"])
    site.add(run, "c", depends_on=["b"])
    events = site.scheduler.status(run).next_cursor

    with refused("cycle") as failure:
        site.scheduler.add_dependency(run, "a", "c")

    assert failure.value.details["cycle"] == ["a", "c", "b", "a"]
    assert failure.value.exit_code == 4
    assert site.scheduler.status(run).next_cursor == events


def test_a_task_cannot_wait_for_itself(site: Site, run):
    with refused("cycle"):
        site.add(run, "a", depends_on=["a"])
    assert site.states(run) == {}
    site.add(run, "a")
    with refused("cycle"):
        site.scheduler.add_dependency(run, "a", "a")


def test_a_dependency_named_twice_is_one(site: Site, run):
    site.add(run, "a")
    task = site.task(run, "a")

    answer = add_task(
        site.scheduler,
        run,
        key_name="b",
        title="B",
        depends_on=["a", task.id, task.id.lower(), "a"],
    )

    assert answer.data["depends_on"] == ["a"]
    assert site.standing(run, "b").because == ("a",)


def test_an_unknown_dependency_is_refused_with_the_nearest_key_and_nothing_is_added(
    site: Site, run
):
    site.add(run, "lexer")

    with refused("not_found") as failure:
        site.add(run, "parser", depends_on=["lexr"])

    assert failure.value.hint == "did you mean lexer?"
    assert site.states(run) == {"lexer": "ready"}


def test_the_same_edge_again_changes_nothing(site: Site, run):
    site.add(run, "a", "b")
    assert site.scheduler.add_dependency(run, "b", "a")["already"] is False
    assert site.scheduler.add_dependency(run, "b", "a")["already"] is True
    with refused("invalid_state"):
        site.scheduler.add_dependency(run, "b", "a", "finished")


def test_a_task_that_has_started_waits_for_nothing_any_more(site: Site, run):
    site.add(run, "a", "b")
    site.dispatch(run, "b")

    with refused("invalid_state"):
        site.scheduler.add_dependency(run, "b", "a")


# -- what a task is --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"key_name": "a b"},
        {"key_name": ""},
        {"title": " "},
        {"title": "two\nlines"},
        {"title": "x" * 201},
        {"title": "\x1b[2J"},
        {"body": "nul \0"},
        {"body": "x" * (1024 * 1024 + 1)},
        {"mailbox": "not a name"},
        {"kind": ""},
        {"kind": "two words"},
        {"kind": "k" * 65},
    ],
    ids=lambda wrong: f"{next(iter(wrong))}={next(iter(wrong.values()))[:12]!r}",
)
def test_what_makes_no_task_is_refused(site: Site, run, wrong: dict[str, str]):
    with refused("usage"):
        add_task(site.scheduler, run, **{"key_name": "a", "title": "A", **wrong})
    assert site.states(run) == {}


def test_a_key_is_taken_once_in_a_run(site: Site, run):
    other = site.open_run()
    site.add(run, "a")
    with refused("invalid_state"):
        site.add(run, "a")
    site.add(other, "a")


def test_a_task_with_a_long_title_can_be_dispatched(site: Site, run):
    key, title = "k" * 40, "ü" * 100
    add_task(site.scheduler, run, key_name=key, title=title)

    assert site.dispatch(run)[key]["state"] == "offered"


def test_a_run_without_a_repository_takes_only_tasks_without_a_worktree(site: Site):
    answer = run_init(site.scheduler, title="Talk", repository=None)
    run = site.scheduler.run(answer.data["run"]["id"])

    with refused("usage"):
        site.add(run, "a")
    site.add(run, "a", worktree=False)
    assert site.dispatch(run)["a"]["state"] == "offered"
    with refused("usage"):
        run_init(site.scheduler, title="Talk", repository=None, base="main")


# -- where worktrees are made ----------------------------------------------------------------


def test_worktrees_inside_the_repository_are_refused(site: Site):
    inside = site.repository / "worktrees"
    with refused("usage") as failure:
        run_init(
            site.scheduler, title="T", repository=str(site.repository), worktree_root=str(inside)
        )
    assert failure.value.hint is not None
    assert "--worktree-root" in failure.value.hint


def test_worktrees_beside_a_repository_with_a_like_name_are_fine(site: Site):
    beside = site.folder / (site.repository.name + "-worktrees")
    run_init(site.scheduler, title="T", repository=str(site.repository), worktree_root=str(beside))


def test_the_folder_of_the_state_is_used_only_when_it_is_absolute(site: Site, monkeypatch):
    def root() -> str:
        answer = run_init(site.scheduler, title="T", repository=str(site.repository))
        return answer.data["run"]["worktree_root"]

    monkeypatch.setenv("HOME", str(site.folder / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(site.folder / "state"))
    assert root() == str(site.folder / "state" / "inbox-orch" / "worktrees")
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    assert root() == str(site.folder / "home/.local/state/inbox-orch/worktrees")


@pytest.mark.parametrize("name", ["new\nline", b"caf\xe9".decode("utf-8", "surrogateescape")])
def test_a_worktree_folder_that_cannot_be_stored_is_a_wrong_call(site: Site, name: str):
    with refused("usage"):
        run_init(
            site.scheduler,
            title="T",
            repository=str(site.repository),
            worktree_root=str(site.folder / name),
        )


# -- keys ------------------------------------------------------------------------------------


def test_a_repeated_run_init_returns_the_first_run(site: Site):
    options = {"title": "T", "repository": str(site.repository), "key": "k"}
    first = run_init(site.scheduler, **options)
    again = run_init(site.scheduler, **options)

    assert (first.replayed, again.replayed) == (False, True)
    assert first.data == again.data
    with refused("key_conflict"):
        run_init(site.scheduler, **{**options, "title": "Another"})


def test_a_repeated_task_add_returns_the_first_task(site: Site, run):
    options = {"key_name": "a", "title": "A", "key": "k"}
    first = add_task(site.scheduler, run, **options)
    site.dispatch(run)
    again = add_task(site.scheduler, run, **options)

    assert again.as_json() == {**first.data, "replayed": True}
    with refused("key_conflict"):
        add_task(site.scheduler, run, **{**options, "title": "Another"})


def test_a_repeated_answer_returns_the_first_one(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    token = site.claim(item)
    site.worker.ask(item["thread"], token, body="which?")

    first = site.scheduler.answer(run, "a", body="this", key="k")
    again = site.scheduler.answer(run, "a", body="this", key="k")

    assert (first["answered"], first["replayed"], again["replayed"]) == (True, False, True)
    assert first["message"]["id"] == again["message"]["id"]
    with refused("key_conflict"):
        site.scheduler.answer(run, "a", body="that", key="k")
    with refused("invalid_state"):
        site.scheduler.answer(run, "a", body="this")


def test_an_answer_to_a_question_that_the_leader_itself_has_put_is_refused(site: Site, run):
    """A worker that claims under the leader's name is its own asker: a reply answers nothing."""
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    leader = site.office.bus("leader")
    token = leader.claim(item["thread"], mailboxes=["workers"]).lease.token
    leader.ask(item["thread"], str(token), body="which?")

    with refused("invalid_state") as failure:
        site.scheduler.answer(run, "a", body="this", key="k")

    assert f"inbox reply {item['thread']}" in str(failure.value.hint)
    assert [m.kind for m in leader.messages(item["thread"])] == ["task", "question"]
    assert len(site.scheduler.questions(run)) == 1
    site.worker.reply(item["thread"], body="this")
    with refused("invalid_state"):
        site.scheduler.answer(run, "a", body="this", key="k")


def test_an_answer_to_a_question_that_its_worker_withdrew_is_refused(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    token = site.claim(item)
    site.worker.ask(item["thread"], token, body="which?")
    site.scheduler.reconcile(run)
    site.worker.release(item["thread"], token)

    with refused("invalid_state"):
        site.scheduler.answer(run, "a", body="this")
    assert site.scheduler.questions(run) == []


def test_a_repeated_dispatch_chooses_nothing_new(site: Site, run):
    site.add(run, "a")
    first = site.scheduler.dispatch(run, key="k")
    site.add(run, "b")
    again = site.scheduler.dispatch(run, key="k")

    assert (first.replayed, again.replayed) == (False, True)
    assert [i["id"] for i in again.items] == [i["id"] for i in first.items]
    assert site.states(run) == {"a": "active", "b": "ready"}
    with refused("key_conflict"):
        site.scheduler.dispatch(run, key="k", base="main")


def test_a_key_of_a_dispatch_that_found_nothing_stays_with_nothing(site: Site, run):
    assert site.scheduler.dispatch(run, key="k").items == ()
    site.add(run, "a")

    assert site.scheduler.dispatch(run, key="k").items == ()
    assert site.states(run) == {"a": "ready"}


def test_two_leaders_with_one_key_dispatch_once(site: Site, run, monkeypatch):
    site.add(run, "a")
    other = site.leader()
    choose = functools.partial(choosing.choose, other.desk)

    def be_overtaken(*arguments, **options):
        chosen = choose(*arguments, **options)
        site.scheduler.dispatch(run, key="k")
        return chosen

    only_for(monkeypatch, other, choosing, "choose", be_overtaken)
    done = other.dispatch(run, key="k")

    assert done.replayed is True
    assert [item["number"] for item in done.items] == [1]
    assert len(site.attempts(run, "a")) == 1


# -- which run -------------------------------------------------------------------------------


def test_the_only_open_run_needs_no_name(site: Site):
    with refused("not_found") as failure:
        site.scheduler.run(None)
    assert "run init" in str(failure.value.hint)

    run = site.open_run()
    assert site.scheduler.run(None) == run
    assert site.scheduler.run(run.name) == run
    assert site.scheduler.run(run.id.lower()) == run

    other = site.open_run()
    with refused("usage") as failure:
        site.scheduler.run(None)
    assert failure.value.details["runs"] == [run.name, other.name]
    with refused("not_found"):
        site.scheduler.run("no-such-run")


def test_the_caller_is_named_in_the_events_and_must_have_a_name(site: Site, run):
    with refused("usage"):
        site.leader("not a name")
    add_task(site.leader("helper"), run, key_name="a", title="A")
    with site.scheduler.database.snapshot() as snapshot:
        actor = snapshot.one("SELECT actor FROM event WHERE kind = 'task_pending'")
    assert actor[0] == "helper"


# -- repositories of every shape -------------------------------------------------------------


def test_no_run_is_opened_in_a_repository_without_a_commit(site: Site):
    empty = site.folder / "empty"
    empty.mkdir()
    git(empty, "init", "-q")

    with refused("usage") as failure:
        site.open_run(repository=empty)

    assert failure.value.hint == "the repository needs a first commit"
    assert site.scheduler.runs(closed=True) == []
    git(empty, "commit", "-q", "--allow-empty", "-m", "Begin")
    assert site.open_run(repository=empty).state == "open"


def test_an_unborn_head_beside_other_branches_is_told_at_the_dispatch(site: Site):
    git(site.repository, "symbolic-ref", "HEAD", "refs/heads/unborn")
    run = site.open_run()
    site.add(run, "a")

    with refused("usage") as failure:
        site.dispatch(run)
    assert failure.value.hint == "the repository needs a first commit"


def test_a_folder_without_a_repository_is_a_wrong_call(site: Site):
    with refused("usage"):
        site.open_run(repository=site.folder)
    with refused("usage"):
        site.open_run(repository=site.folder / "nowhere")


def test_a_file_in_the_place_of_the_worktrees_is_a_wrong_call(site: Site):
    path = site.folder / "file"
    path.touch()
    for root in (path, path / "below"):
        with refused("usage"):
            site.open_run(worktree_root=str(root))


@pytest.mark.parametrize(
    "root",
    [
        pytest.param("/proc/x", marks=pytest.mark.skipif(not os.path.isdir("/proc"), reason="")),
        "/dev/null/x",
    ],
)
def test_a_place_where_nobody_can_make_a_folder_is_a_wrong_call(site: Site, root: str):
    with refused("usage") as failure:
        site.open_run(worktree_root=root)
    assert f"no worktree can be made below {root}" in failure.value.message
    assert "--worktree-root" in str(failure.value.hint)


def test_looking_whether_worktrees_can_be_made_leaves_nothing(site: Site):
    before = sorted(site.folder.iterdir())
    site.open_run(worktree_root=str(site.folder / "not" / "there" / "yet"))
    assert sorted(site.folder.iterdir()) == before


def test_a_branch_called_orch_leaves_no_room(site: Site):
    git(site.repository, "branch", "orch")
    with refused("invalid_state") as failure:
        site.open_run()
    assert "git branch -m orch" in str(failure.value.hint)
    git(site.repository, "branch", "-m", "orch", "orch-old")
    site.open_run()


def test_a_bare_repository_has_runs_too(site: Site):
    bare = site.folder / "bare.git"
    git(site.folder, "clone", "-q", "--bare", str(site.repository), str(bare))
    run = site.open_run(repository=bare)
    site.add(run, "a")

    item = site.dispatch(run)["a"]
    site.deliver(item, "a.txt")

    assert run.repository == str(bare)
    assert site.states(run) == {"a": "active"}
    site.scheduler.reconcile(run)
    assert site.states(run) == {"a": "succeeded"}


def test_a_submodule_is_a_repository_of_its_own(site: Site):
    library = site.folder / "library"
    git(site.folder, "clone", "-q", str(site.repository), str(library))
    allow = ("-c", "protocol.file.allow=always")
    git(site.repository, *allow, "submodule", "--quiet", "add", str(library), "lib")
    inside = site.repository / "lib"
    run = site.open_run(repository=inside)
    site.add(run, "a")
    (inside / "dirty.txt").write_text("dirty")

    assert run.repository == str(inside)
    with refused("dirty_repository") as failure:
        site.dispatch(run)
    assert failure.value.details["paths"] == ["dirty.txt"]
    site.deliver(site.dispatch(run, allow_dirty=True)["a"], "a.txt")
    site.scheduler.reconcile(run)
    assert site.states(run) == {"a": "succeeded"}


def test_a_git_directory_that_lies_elsewhere_is_found_from_inside(site: Site):
    tree, hidden = site.folder / "tree", site.folder / "hidden.git"
    git(site.folder, "clone", "-q", "--separate-git-dir", str(hidden), site.repository, str(tree))
    run = site.open_run(repository=tree)
    site.add(run, "a")
    (tree / "dirty.txt").write_text("dirty")

    assert run.repository == str(tree)
    with refused("dirty_repository"):
        site.dispatch(run)
    item = site.dispatch(run, allow_dirty=True)["a"]
    with refused("usage"):
        site.open_run(repository=item["worktree"])


def test_a_path_with_spaces_and_letters_of_all_kinds(site: Site):
    odd = site.folder / "ein Büro ☂ [red]'\""
    git(site.folder, "clone", "-q", str(site.repository), str(odd))
    site.worktrees = site.folder / "Arbeits bäume"
    run = site.open_run(repository=odd)
    site.add(run, "a")

    item = site.dispatch(run)["a"]
    site.deliver(item, "a.txt")
    site.scheduler.reconcile(run)

    assert item["worktree"].startswith(str(site.worktrees))
    assert site.states(run) == {"a": "succeeded"}


@pytest.mark.parametrize("name", ["new\nline", b"caf\xe9".decode("utf-8", "surrogateescape")])
def test_a_repository_whose_path_cannot_be_stored_is_a_wrong_call(site: Site, name: str):
    odd = site.folder / name
    os.rename(site.repository, odd)
    with refused("usage"):
        site.open_run(repository=odd)


def test_a_repository_that_has_moved_away_stops_what_needs_it_and_nothing_else(site: Site, run):
    site.add(run, "a", "b")
    item = site.dispatch(run, "a")["a"]
    site.deliver(item, "a.txt")
    away = site.folder / "away"
    away.mkdir()
    moved = site.leader()  # the database lies inside, and is open
    os.rename(site.repository / ".git", away / ".git")

    with refused("git_failed"):
        moved.dispatch(run)
    assert "is not the repository" in str(moved.reconcile(run).obstacle)
    assert site.states(run) == {"a": "active", "b": "ready"}

    os.rename(away / ".git", site.repository / ".git")
    site.scheduler.reconcile(run)
    assert site.states(run) == {"a": "succeeded", "b": "ready"}


def test_another_repository_in_the_place_is_not_taken_for_the_runs(site: Site, run):
    site.add(run, "a")
    os.rename(site.repository / ".git", site.folder / "away")
    git(site.repository, "init", "-q")

    with refused("git_failed"):
        site.dispatch(run)
