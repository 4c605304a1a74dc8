"""`orch integrate` and `orch conflicts` as people and scripts see them."""

from pathlib import Path

import pytest

from support.orch_matrix import Enterprise, the_run
from support.runs import add_task, commit


@pytest.fixture
def project(tmp_path: Path) -> Enterprise:
    """Accepted work of `a` and `b`, which do not merge, and of `c`, which builds on `b`."""
    made = Enterprise(tmp_path / "project")
    made.open_run()
    with made.scheduler() as scheduler:
        run = the_run(scheduler)
        for key, upstream in (("a", ()), ("b", ()), ("c", ("b",))):
            add_task(scheduler, run, key_name=key, title=f"Do {key}", depends_on=upstream)
    for name in ("same", "c.txt"):
        with made.scheduler() as scheduler:
            items = scheduler.dispatch(the_run(scheduler)).items
        for item in items:
            commit(item["worktree"], name, f"{item['key']}\n")
            with made.bus("w1") as bus:
                token = bus.claim(item["thread"], mailboxes=["workers"]).lease.token
                bus.done(item["thread"], str(token), body="done")
        with made.scheduler() as scheduler:
            scheduler.reconcile(the_run(scheduler))
    return made


def test_a_pipe_gets_one_line_for_each_piece_and_the_exit_code_says_that_not_all_is_in(
    project: Enterprise,
):
    first = project.orch("integrate")
    again = project.orch("integrate", "--json")

    lines = [line.split("\t") for line in first.stdout.decode().splitlines()]
    assert [line[:2] for line in lines[:3]] == [
        ["a/1", "merged"],
        ["b/1", "conflict"],
        ["c/1", "held_back"],
    ]
    assert lines[3][0].endswith("/integration")
    assert (first.code, again.code) == (11, 11)
    assert again.value["error"]["code"] == "degraded"
    assert "c/1 waits for b" in again.value["error"]["message"]
    assert again.value["data"]["moved"] is False


def test_tables_fit_80_columns(project: Enterprise):
    line = {"COLUMNS": "80", "FORCE_COLOR": "1", "NO_COLOR": "1"}
    for arguments in (("conflicts",), ("integrate", "--dry-run", "--onto", "main"), ("status",)):
        ended = project.orch(*arguments, **line)
        assert max(map(len, ended.stdout.decode().splitlines())) <= 80, ended
