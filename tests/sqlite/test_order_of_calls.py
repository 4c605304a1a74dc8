"""What is acknowledged is on the disk first: the order in which files, folders and commits are
synced, as the calls are made.

A power cut cannot be tried here. What a missing fsync would lose is therefore held by the order
of the calls; each of these fails when one of them is left out or comes too late.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.inbox.setup.record import Record, save
from inbox_orch.orch.git import administration, manifest
from inbox_orch.shared.store.sqlite import creating
from support.runs import Site, git


class Recorder:
    """The calls that matter, with the paths that their descriptors stand for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, ...]] = []
        for name in ("rename", "replace", "link", "mkdir"):
            monkeypatch.setattr(os, name, self._noting(name, getattr(os, name)))
        monkeypatch.setattr(os, "fsync", self._syncing(os.fsync))

    def watch(self, bus: Bus) -> None:
        """Note its commits, too."""
        bus.database.connection.set_trace_callback(
            lambda statement: self.calls.append(("commit",)) if statement == "COMMIT" else None
        )

    def at(self, *call: str) -> int:
        """When that call was made; it was made, and once."""
        places = [place for place, made in enumerate(self.calls) if made == call]
        assert places, f"{call} was not made: {self.calls}"
        return places[-1]

    def _noting(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any, **options: Any) -> Any:
            result = call(*arguments, **options)
            self.calls.append((name, *(str(a) for a in arguments if isinstance(a, (str, Path)))))
            return result

        return noted

    def _syncing(self, call: Callable[[int], None]) -> Callable[[int], None]:
        def synced(descriptor: int) -> None:
            self.calls.append(("fsync", os.readlink(f"/proc/self/fd/{descriptor}")))
            call(descriptor)

        return synced


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / ".inbox" / "bus.db"
    creating.create(str(path))
    return path


@pytest.fixture
def bus(path: Path) -> Iterator[Bus]:
    with Bus.open(path, agent="leader") as bus:
        yield bus


def test_an_artifact_is_on_the_disk_before_the_commit_that_names_it(
    bus: Bus, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "file").write_text("content")
    recorder = Recorder(monkeypatch)
    recorder.watch(bus)

    sent = bus.send(to="w1", subject="s", attach=[str(tmp_path / "file")])

    final = bus.artifacts.path(bus.show(sent.thread.id).artifacts[0].sha256)
    (renamed,) = [call for call in recorder.calls if call[0] == "rename"]
    temporary, target = renamed[1:]
    assert target == final
    folder, artifacts = os.path.dirname(final), str(path.parent / "artifacts")
    order = [
        recorder.at("fsync", temporary),
        recorder.at("rename", temporary, final),
        recorder.at("fsync", folder),
        recorder.at("commit"),
    ]
    assert order == sorted(order)
    assert recorder.at("mkdir", folder) < recorder.at("fsync", artifacts) < recorder.at("commit")


@pytest.mark.parametrize("verb", ["done", "update", "reply", "fail"])
def test_so_it_is_with_every_command_that_attaches(
    bus: Bus, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
):
    (tmp_path / "file").write_text(verb)
    attach = [str(tmp_path / "file")]
    with Bus.open(path, agent="w1") as worker:
        thread = bus.send(to="w1", subject="s").thread.id
        held = (thread, str(worker.claim().lease.token))
        recorder = Recorder(monkeypatch)
        recorder.watch(worker)
        if verb == "reply":
            worker.reply(thread, body="b", attach=attach)
        elif verb == "fail":
            worker.fail(*held, body="b", files=[worker.artifacts.add_file(attach[0])])
        else:
            getattr(worker, verb)(*held, body="b", attach=attach)

    kinds = [call[0] for call in recorder.calls]
    last = len(kinds) - 1 - kinds[::-1].index("commit")
    assert kinds[:last].count("fsync") >= 3
    assert "fsync" not in kinds[last:]


def test_a_new_database_is_on_the_disk_with_all_the_folders_on_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    recorder = Recorder(monkeypatch)
    path = tmp_path / "project" / ".inbox" / "bus.db"
    path.parent.parent.mkdir()

    creating.create(str(path))

    renamed = recorder.at("rename", f"{path}.new", str(path))
    assert renamed < recorder.at("fsync", str(path.parent))
    made = recorder.at("mkdir", str(path.parent))
    assert made < recorder.at("fsync", str(path.parent.parent))


def test_the_record_of_a_set_up_is_on_the_disk_with_the_folders_that_come_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    recorder = Recorder(monkeypatch)

    save(str(tmp_path / "state" / "inbox" / "setup" / "one.json"), Record({}))

    (renamed,) = (call for call in recorder.calls if call[-1] == str(tmp_path / "state"))
    assert recorder.at(*renamed) < recorder.at("fsync", str(tmp_path))


def test_what_set_up_has_made_is_written_down_on_the_disk(
    site: Site, monkeypatch: pytest.MonkeyPatch
):
    run = site.open_run()
    site.add(run, "a")
    worktree = site.dispatch(run)["a"]["worktree"]
    admin = administration.folder_of(worktree)
    target = os.path.join(str(admin), "inbox-orch-manifest.json")
    recorder = Recorder(monkeypatch)

    manifest.write(worktree)

    order = [
        recorder.at("fsync", f"{target}.new"),
        recorder.at("replace", f"{target}.new", target),
        recorder.at("fsync", str(admin)),
    ]
    assert order == sorted(order)


def test_a_backup_is_on_the_disk_before_it_has_its_name(
    bus: Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "copies").mkdir()
    target = tmp_path / "copies" / "copy.db"
    recorder = Recorder(monkeypatch)

    bus.backup(target)

    (linked,) = [call for call in recorder.calls if call[0] == "link"]
    assert linked[2] == str(target)
    order = [
        recorder.at("fsync", linked[1]),
        recorder.at(*linked),
        recorder.at("fsync", str(target.parent)),
    ]
    assert order == sorted(order)


def test_the_log_is_synced_by_every_commit_that_others_act_on(bus: Bus, tmp_path: Path):
    """FULL: SQLite syncs the log at each commit (sqlite.org/pragma.html#pragma_synchronous)."""
    bus.send(to="w1", subject="s")
    assert bus.database.connection.execute("PRAGMA synchronous").fetchone()[0] == 2
    assert bus.database.connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


# -- git -----------------------------------------------------------------------------------


def flushed_by(event: dict[str, Any]) -> int:
    """How often something was synced, by one event; newer gits have an event of its own for it."""
    if event["event"] == "counter" and event["category"] == "fsync":
        return int(event["count"]) if event["name"] == "hardware-flush" else 0
    return int(event["value"]) if event.get("key") == "fsync/hardware-flush" else 0


@pytest.fixture
def flushes(site: Site) -> Callable[[], dict[str, int]]:
    """How often each command of git has synced something, by the traces that git writes."""
    folder = site.folder / "traces"
    folder.mkdir()
    git(site.folder, "config", "--global", "trace2.eventTarget", str(folder))

    def counted() -> dict[str, int]:
        found: dict[str, int] = {}
        for file in folder.iterdir():
            events = [json.loads(line) for line in file.read_text().splitlines()]
            verbs = [event["name"] for event in events if event["event"] == "cmd_name"]
            counts = [flushed_by(event) for event in events]
            for verb in verbs:
                found[verb] = found.get(verb, 0) + sum(counts)
        return found

    yield counted
    git(site.folder, "config", "--global", "--unset", "trace2.eventTarget")


def test_salvage_is_on_the_disk_before_a_worktree_goes(site: Site, flushes):
    run = site.open_run()
    site.add(run, "a")
    item = site.dispatch(run, "a")["a"]
    for name in ("one", "two"):
        Path(item["worktree"], name).write_text(name)
    site.fail(item, fatal=True)
    site.scheduler.reconcile(run)

    site.scheduler.cleanup(run, force=True)

    counts = flushes()
    assert counts["hash-object"] >= 2
    assert counts["write-tree"] >= 1
    assert counts["commit-tree"] >= 1
    assert counts["update-ref"] >= 1


def test_what_was_integrated_is_on_the_disk(site: Site, flushes):
    run = site.open_run()
    site.add(run, "a", "b")
    items = site.dispatch(run, "a", "b")
    for key, item in items.items():
        site.deliver(item, f"{key}.txt", key)
    site.scheduler.reconcile(run)
    site.scheduler.integrate(run)

    counts = flushes()
    assert counts["merge-tree"] >= 1
    assert counts["commit-tree"] >= 1
    assert counts["update-ref"] >= 3


def test_what_is_only_tried_is_not_synced(site: Site, flushes):
    run = site.open_run()
    site.add(run, "a", "b")
    for key, item in site.dispatch(run, "a", "b").items():
        site.deliver(item, f"{key}.txt", key)

    site.scheduler.conflicts(run)

    assert flushes()["merge-tree"] == 0
