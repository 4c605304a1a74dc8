"""What is made is readable by nobody else, and nothing is reached through a planted link."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.runs.config import Config
from inbox_orch.shared.store.sqlite import bells, creating
from support.buses import refused
from support.commands import Project, run
from support.runs import Site

YEAR_NS = 365 * 24 * 3600 * 10**9


def modes_below(*tops: Path) -> dict[Path, int]:
    """The mode of everything at and below some places."""
    found = {}
    for top in tops:
        for path in (top, *top.rglob("*")):
            if not path.is_symlink():
                found[path] = stat.S_IMODE(path.lstat().st_mode)
    return found


def open_to_others(found: dict[Path, int]) -> list[str]:
    """Whatever somebody else may do something with."""
    return [f"{path} {mode:o}" for path, mode in found.items() if mode & 0o077]


# -- modes ---------------------------------------------------------------------------------


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def mask(request):
    """Runs the test under a umask."""
    previous = os.umask(request.param)
    yield request.param
    os.umask(previous)


def test_the_files_of_a_database_are_their_owners_alone(mask, tmp_path: Path):
    attached = tmp_path / "report.txt"
    attached.write_text("a secret")
    path = tmp_path / ".inbox" / "bus.db"
    creating.create(str(path))
    with Bus.open(path, agent="leader") as leader, Bus.open(path, agent="w1") as worker:
        leader.send(to="w1", subject="task", attach=[str(attached)])
        held = worker.claim()
        worker.done(held.thread.id, held.lease.token, body="done", attach=[str(attached)])
        with bells.Bells(str(path.parent / "bells"), ["w1", "_all"]):
            found = modes_below(path.parent)
        (tmp_path / "copies").mkdir()
        leader.backup(tmp_path / "copies" / "copy.db", artifacts=True)

    assert {"bus.db", "bus.db-wal", "bus.db-shm", "gate", "_all"} <= {p.name for p in found}
    assert open_to_others(found) == []
    copies = modes_below(*(tmp_path / "copies").iterdir())
    assert len(copies) >= 4
    assert open_to_others(copies) == []


def test_what_a_worker_is_given_is_its_owners_alone(mask, tmp_path: Path):
    project = Project(tmp_path / "project")
    project.send()
    look = 'd=$(dirname "$INBOX_TASK_FILE"); stat -c "%a %n" "$d" "$d"/*; echo x > "$INBOX_RESULT"'
    worked = project.run(
        *("work", "--agent", "w1", "--mailbox", "workers", "--once", "--", "sh", "-c", look)
    )
    assert worked.code == 0, worked
    thread = project.json("list").data["items"][0]["id"]
    lines = project.run("show", thread, "--artifact", "stdout").text.splitlines()

    assert len(lines) >= 2
    assert [line for line in lines if not line.split()[0].endswith("00")] == []


def test_worktrees_lie_where_nobody_else_can_get_in(mask, site: Site):
    root = site.folder / "state" / "deep" / "worktrees"
    run = site.open_run(worktree_root=str(root), config=Config(setup=None))
    site.add(run, "a", "b")
    items = site.dispatch(run, "a", "b")
    site.deliver(items["a"], "file.txt")
    site.scheduler.reconcile(run)
    site.scheduler.cleanup(run, force=True)

    folders = [site.folder / "state", site.folder / "state" / "deep", root, root / run.name]
    kept = root / ".trash"
    found = {path: stat.S_IMODE(path.stat().st_mode) for path in (*folders, kept)}
    assert open_to_others(found) == []
    admin = site.repository / ".git" / "inbox-orch-trash"
    locks = [p for p in (site.repository / ".git").iterdir() if p.name.endswith(".lock")]
    assert open_to_others(modes_below(*locks)) == []
    assert open_to_others({admin: stat.S_IMODE(admin.stat().st_mode)}) == []


# -- planted links -------------------------------------------------------------------------


@pytest.fixture
def office(tmp_path: Path) -> Path:
    """A project; its database."""
    path = tmp_path / "project" / ".inbox" / "bus.db"
    creating.create(str(path))
    return path


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """Somebody's folder, with files that look old, some as the program's own names do."""
    folder = tmp_path / "precious"
    for name in ("letter.txt", "ab/c", f"ab/{'c' * 62}", "incoming/photo.jpg", "w1/device"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
        os.utime(folder / name, ns=(0, YEAR_NS))
    return folder


def contents(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    "place, target",
    [
        ("artifacts", "."),
        ("bells", "."),
        ("gate", "letter.txt"),
        ("bus.db-wal", "letter.txt"),
        ("bus.db-shm", "letter.txt"),
        ("bus.db-journal", "letter.txt"),
    ],
)
def test_a_link_in_the_place_of_an_own_file_or_folder_is_refused(office, precious, place, target):
    planted = office.parent / place
    if planted.is_dir():
        shutil.rmtree(planted)
    planted.unlink(missing_ok=True)
    planted.symlink_to(precious / target)
    before = contents(precious)

    with refused("unsafe_link") as failure, Bus.open(office, agent="leader") as bus:
        bus.send(to="w1", subject="task")

    assert str(planted) in failure.value.message
    assert failure.value.exit_code == 9
    assert contents(precious) == before


@pytest.mark.parametrize("place", ["artifacts", "bells", "gate"])
def test_no_database_is_made_among_planted_links(tmp_path, precious, place):
    folder = tmp_path / "cloned" / ".inbox"
    folder.mkdir(parents=True)
    (folder / place).symlink_to(precious / ("letter.txt" if place == "gate" else "."))
    before = contents(precious)

    with refused("unsafe_link"):
        creating.create(str(folder / "bus.db"))

    assert contents(precious) == before
    assert not (folder / "bus.db").exists()


@pytest.mark.parametrize("verb", ["prune", "doctor"])
@pytest.mark.parametrize("name", ["ab", "incoming"])
def test_what_lies_behind_a_link_among_the_artifacts_is_never_cleared_away(
    office, precious, name, verb
):
    """`artifacts/ab` leads to somebody's folder: nothing in it is an artifact that nobody needs."""
    (office.parent / "artifacts" / name).symlink_to(precious / name)
    before = contents(precious)
    with Bus.open(office, agent="leader") as bus:
        bus.doctor(verify=True, fix=True) if verb == "doctor" else bus.prune(0)

    assert contents(precious) == before


@pytest.mark.parametrize("verb", ["prune", "doctor"])
def test_of_the_files_among_the_artifacts_only_artifacts_are_cleared_away(office, verb):
    folder = office.parent / "artifacts"
    kept = [folder / "ab" / "notes.txt", folder / "notes" / ("c" * 62), folder / "ab" / "link"]
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.symlink_to("/etc/hostname") if path.name == "link" else path.write_text("mine")
    with Bus.open(office, agent="leader") as bus:
        bus.doctor(fix=True) if verb == "doctor" else bus.prune(0)

    assert all(path.is_symlink() or path.exists() for path in kept)


@pytest.mark.parametrize("place", ["incoming", "prefix", "content"])
def test_no_artifact_is_written_or_read_through_a_link(office, precious, tmp_path, place):
    attached = tmp_path / "report.txt"
    attached.write_text("letter.txt")  # as long, and the same, as what the link leads to
    with Bus.open(office, agent="leader") as bus:
        stored = bus.send(to="w1", subject="s", attach=[str(attached)])
        path = Path(bus.artifacts.path(bus.show(stored.thread.id).artifacts[0].sha256))
        shutil.rmtree(path.parents[1] / "incoming", ignore_errors=True)
        path.unlink()
        if place == "content":
            path.symlink_to(precious / "letter.txt")
        elif place == "prefix":
            path.parent.rmdir()
            path.parent.symlink_to(precious)
        else:
            (path.parents[1] / "incoming").symlink_to(precious)
        before = contents(precious)
        if place == "content":
            with refused("not_found"):
                bus.artifact(stored.thread.id, "report.txt")
            bus.send(to="w1", subject="again", attach=[str(attached)])
            assert path.is_file() and not path.is_symlink()
        else:
            with refused("unsafe_link"):
                bus.send(to="w1", subject="again", attach=[str(attached)])

    assert contents(precious) == before


PLACES = ("content", "prefix", "prefix file", "pipe", "folder", "database")


@pytest.mark.parametrize("place", PLACES)
def test_no_backup_copies_what_is_planted_among_the_artifacts(office, precious, tmp_path, place):
    attached = tmp_path / "report.txt"
    attached.write_text("letter.txt")  # as long, and the same, as what a link leads to
    with Bus.open(office, agent="leader") as bus:
        stored = bus.send(to="w1", subject="s", attach=[str(attached)])
        path = Path(bus.artifacts.path(bus.show(stored.thread.id).artifacts[0].sha256))
        plant(place, path, precious, office)

        made = bus.backup(tmp_path / "copy.db", artifacts=True)

        (found,) = (c for c in bus.doctor().checks if c.name == "artifact_files")
        (again,) = (c for c in bus.doctor(verify=True).checks if c.name == "artifact_files")
        with refused("not_found"):
            bus.artifact(stored.thread.id, "report.txt")
    assert (made.artifacts, made.missing) == (0, 1)
    copies = tmp_path / "copy.db.artifacts"
    assert [p for p in copies.rglob("*") if not p.is_dir()] == []
    for check in (found, again):
        assert (check.status, check.total) == ("problem", 1)
        text = "is missing" if place == "prefix file" else "is no file of its own"
        assert text in check.items[0]


def plant(place: str, path: Path, precious: Path, database: Path) -> None:
    """Put something in the place of an artifact that is not it."""
    path.unlink()
    if place == "content":
        path.symlink_to(precious / "letter.txt")
    elif place == "prefix":
        (precious / path.name).write_text("letter.txt")
        path.parent.rmdir()
        path.parent.symlink_to(precious)
    elif place == "prefix file":
        path.parent.rmdir()
        path.parent.write_text("mine")
    elif place == "pipe":
        os.mkfifo(path)
    elif place == "folder":
        path.mkdir()
    else:
        os.link(database, path)


def test_of_an_artifact_with_another_content_nothing_comes_into_a_backup(office, tmp_path):
    (tmp_path / "report.txt").write_text("report")
    with Bus.open(office, agent="leader") as bus:
        bus.send(to="w1", subject="s", attach=[str(tmp_path / "report.txt")])
        (path,) = office.parent.glob("artifacts/??/*")
        path.write_text("secret")

        made = bus.backup(tmp_path / "copy.db", artifacts=True)

    assert (made.artifacts, made.missing) == (0, 1)
    copies = tmp_path / "copy.db.artifacts"
    assert [p for p in copies.rglob("*") if not p.is_dir()] == []


@pytest.mark.parametrize("place", PLACES)
def test_pruning_takes_nothing_but_what_is_in_an_artifacts_own_place(
    office, precious, tmp_path, place
):
    (tmp_path / "report.txt").write_text("report")
    with Bus.open(office, agent="leader") as bus:
        sent = bus.send(to="w1", subject="s", attach=[str(tmp_path / "report.txt")])
        bus.cancel(sent.thread.id)
        (path,) = office.parent.glob("artifacts/??/*")
        plant(place, path, precious, office)
        before = contents(precious)

        assert bus.prune(0).threads == 1
        assert [thread.pruned for thread in bus.list(limit=10).items] == [True]

    assert contents(precious) == before
    assert office.exists()
    if place in ("prefix file", "folder"):
        assert path.exists() or path.parent.read_text() == "mine"


def test_what_is_no_bell_is_not_rung(office, precious, tmp_path):
    """Opening a device can do something; so nothing but a FIFO in a folder of ours is opened."""
    place = office.parent / "bells"
    (place / "w1").symlink_to(precious)
    (place / "w2").mkdir()
    (place / "w2" / "device").symlink_to(precious / "letter.txt")
    fifo = precious / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    try:
        with Bus.open(office, agent="leader") as bus:
            bus.send(to="w1", subject="s")
            bus.send(to="w2", subject="s")
            bus.doctor(fix=True)
        with pytest.raises(BlockingIOError):
            os.read(reader, 1)
    finally:
        os.close(reader)
    assert fifo.exists()
    assert (precious / "letter.txt").read_text() == "letter.txt"


def test_a_bell_behind_a_link_is_not_hung_up(office, precious):
    place = office.parent / "bells"
    (place / "w1").symlink_to(precious)
    before = sorted(p.name for p in precious.iterdir())
    with bells.Bells(str(place), ["w1"]) as armed:
        assert not armed.armed
    assert sorted(p.name for p in precious.iterdir()) == before


@pytest.mark.parametrize("force", [False, True])
def test_a_backup_is_not_written_through_a_link_into_the_database(office, tmp_path, force):
    target = tmp_path / "copy.db"
    target.symlink_to(office)
    with Bus.open(office, agent="leader") as bus, refused("usage"):
        bus.backup(target, force=force)
    target.unlink()
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "copy.db.artifacts").symlink_to(outside)
    with Bus.open(office, agent="leader") as bus, refused("unsafe_link"):
        bus.backup(target, force=force, artifacts=True)
    assert list(outside.iterdir()) == []


def test_an_output_is_not_written_through_a_link_into_the_database(tmp_path):
    project = Project(tmp_path / "project")
    (tmp_path / "file").write_text("content")
    thread = project.send(attach=[str(tmp_path / "file")])
    link = tmp_path / "link"
    link.symlink_to(project.path)
    before = project.contents()

    ended = project.json("show", thread, "--artifact", "file", "--output", str(link))

    assert ended.error["code"] == "usage"
    assert project.contents() == before


# -- worktrees -----------------------------------------------------------------------------


def test_a_link_at_a_worktrees_place_is_left_alone(site: Site, precious: Path):
    run = site.open_run()
    site.add(run, "a")
    (site.worktrees / run.name).mkdir(parents=True)
    (site.worktrees / run.name / "a-1").symlink_to(precious)
    before = contents(precious)

    (item,) = site.scheduler.dispatch(run, task_names=["a"]).items

    assert item["state"] == "provision_failed"
    assert contents(precious) == before


@pytest.mark.parametrize("place", ["trash", "attempt"])
def test_no_worktree_is_moved_through_a_link_and_none_is_emptied(site: Site, precious, place):
    run = site.open_run()
    site.add(run, "a")
    item = site.dispatch(run, "a")["a"]
    site.deliver(item, "file.txt")
    site.scheduler.reconcile(run)
    trash = site.worktrees / ".trash"
    if place == "trash":
        trash.symlink_to(precious)
    else:
        trash.mkdir()
        (trash / item["id"]).symlink_to(precious)
    (precious / "sub").mkdir(0o500)
    before = contents(precious)

    cleaned = site.scheduler.cleanup(run, task_names=["a"], force=True).as_json()

    assert "symbolic link" in str(cleaned["items"][0]["reasons"])
    assert Path(item["worktree"], "file.txt").exists()
    trash.unlink() if place == "trash" else (trash / item["id"]).unlink()
    site.scheduler.cleanup(run, task_names=["a"], force=True)
    (trash / item["id"]).rename(trash / "moved")
    (trash / item["id"]).symlink_to(precious)
    site.clock.advance(60 * 24 * 3600)
    site.scheduler.cleanup(run, force=True)
    assert contents(precious) == before
    assert stat.S_IMODE((precious / "sub").stat().st_mode) == 0o500


# -- where programs come from --------------------------------------------------------------


@pytest.mark.parametrize("program", ["inbox", "orch"])
def test_no_module_is_taken_from_the_folder_that_one_stands_in(tmp_path, program):
    for name in ("inbox_orch", "click", "sqlite3", "json", "inbox", "shared", "yaml", "git"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("open('/dev/null'); raise SystemExit(99)\n")
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit(99)\n")

    assert run("--version", folder=tmp_path, program=program).code == 0
