"""`orch cleanup` and `orch attempt restore` as a shell sees them."""

from pathlib import Path

from support.orch_matrix import Enterprise, orch_cells_cleanup, the_run

ended = orch_cells_cleanup.ended


def worktree_of(project: Enterprise) -> Path:
    with project.scheduler() as scheduler:
        (listed,) = scheduler.attempt_list(the_run(scheduler))
    return Path(str(listed.attempt.worktree_path))


def test_what_is_kept_is_no_failure_unless_it_was_named(tmp_path: Path):
    project = Enterprise(tmp_path / "project")
    ended(project)

    unnamed = project.orch("cleanup")
    assert (unnamed.code, unnamed.text) == (0, "a/1\tkept\t\tuntracked: left.txt\n")

    named = project.orch("cleanup", "a", "--json")
    assert named.code == 9
    error = named.value["error"]
    assert (error["code"], error["details"]["reasons"]) == ("dirty_repository", ["untracked"])
    assert error["details"]["items"][0]["reasons"][0]["items"] == ["left.txt"]
    assert "--force" in error["hint"]
    assert (worktree_of(project) / "left.txt").exists()


def test_a_worktree_is_not_removed_from_inside_of_it(tmp_path: Path):
    project = Enterprise(tmp_path / "project")
    ended(project)
    worktree = worktree_of(project)

    done = project.orch("cleanup", "--force", "--json", folder=worktree)

    (item,) = done.data["items"]
    assert (item["action"], item["reasons"][0]["code"]) == ("kept", "own_directory")
    assert (worktree / "left.txt").exists()


def test_what_was_removed_comes_back_where_it_is_wanted(tmp_path: Path):
    project = Enterprise(tmp_path / "project")
    ended(project)

    done = project.orch("cleanup", "a", "--force", "--json")
    (item,) = done.data["items"]
    assert item["salvage_ref"] == f"refs/orch/salvage/{item['attempt']}"
    assert not worktree_of(project).exists()

    back = project.orch("attempt", "restore", "a/1", "--into", "back")
    assert back.text == f"a/1\t{project.folder / 'back'}\t2\t1\n"
    assert (project.folder / "back" / "left.txt").read_text() == "left\n"
    assert project.orch("attempt", "restore", "a/1", "--into", "back", "--json").code == 9
    assert project.orch("cleanup", "a", "--force", "--json").data["items"] == []
