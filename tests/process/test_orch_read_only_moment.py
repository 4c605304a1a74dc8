"""A disk that cannot be written from any moment of a leader's work on: what it was about is refused
by name and finished afterwards, and no work is rejected for it. KILL_EVERY=1 tries every moment."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from inbox_orch.orch.git import worktrees
from inbox_orch.orch.runs.desk import place_of
from inbox_orch.shared.errors import InboxOrchError
from support.buses import refused
from support.disks import small_disk
from support.killing import KILL_EVERY
from support.runs import Site

STEPPED = ("open", "close", "write", "fsync", "rename", "link", "unlink", "mkdir", "rmdir", "chmod")
EVERY = KILL_EVERY * 2 if KILL_EVERY > 1 else 1
NAMED = ("read_only", "git_failed", "io_error")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Any]:
    with small_disk(tmp_path / "disk") as made:
        yield made


def dispatch(site: Site, run: Any) -> None:
    site.scheduler.dispatch(run)


def verify(site: Site, run: Any) -> None:
    site.scheduler.reconcile(run)


def clean_up(site: Site, run: Any) -> None:
    site.scheduler.cleanup(run, force=True)


def prepared(folder: Path, act: Callable[[Site, Any], None]) -> tuple[Site, Any]:
    """A run in which there is something for the leader to do."""
    site = Site(folder)
    run = site.open_run()
    site.add(run, "a")
    if act is not dispatch:
        site.deliver(site.dispatch(run)["a"], "file")
    if act is clean_up:
        site.scheduler.reconcile(run)
    return site, run


@pytest.mark.parametrize("act", [dispatch, verify, clean_up])
def test_whatever_a_leader_cannot_write_now_is_finished_later(act, disk):
    step, met = 1, True
    while met:
        site, run = prepared(disk.path / str(step), act)
        met = moment(disk, step, lambda site=site, run=run: act(site, run))

        age_locks(site.repository / ".git" / "refs" / "orch")
        act(site, run)
        if site.states(run) == {"a": "backing_off"}:  # it was the machine's fault
            site.clock.advance(3600)
            act(site, run)
        site.scheduler.reconcile(run)

        wanted = "active" if act is dispatch else "succeeded"
        assert site.states(run) == {"a": wanted}, f"not writable from step {step} on"
        found = site.scheduler.doctor(verify=True).checks
        assert [c for c in found if c.status == "problem"] == [], f"from step {step} on"
        site.close()
        step += EVERY


def age_locks(folder: Path) -> None:
    """An hour later, for the locks that a git could not remove."""
    for lock in folder.rglob("*.lock"):
        os.utime(lock, (lock.stat().st_mtime - 3600,) * 2)


def moment(disk: Any, step: int, act: Callable[[], None]) -> bool:
    """Act, on a disk that cannot be written from a step on; whether that step came."""
    count = 0
    with contextlib.ExitStack() as stack, pytest.MonkeyPatch.context() as patch:

        def stepping(call: Callable[..., Any]) -> Callable[..., Any]:
            def stepped(*given: Any, **named: Any) -> Any:
                nonlocal count
                count += 1
                if count == step:
                    stack.enter_context(disk.read_only())
                return call(*given, **named)

            return stepped

        for name in STEPPED:
            patch.setattr(os, name, stepping(getattr(os, name)))
        try:
            act()
        except InboxOrchError as error:
            assert error.code in NAMED, error  # noqa: PT017 - or it has come to its end before
    return count >= step


def test_an_error_is_not_hidden_by_a_lock_that_cannot_be_removed(disk):
    site, run = prepared(disk.path / "site", clean_up)
    repository = site.scheduler.desk.repository(run)
    place = place_of(site.scheduler.desk, site.attempts(run, "a")[0])

    with (
        contextlib.ExitStack() as stack,
        refused("busy"),
        worktrees.alone(repository, place),
    ):
        stack.enter_context(disk.read_only())
        worktrees.forget_locks(repository, run.name)
        raise InboxOrchError("busy", "what went wrong")
    with worktrees.alone(repository, place):
        pass
    site.close()
