"""Untracked files count as changed exactly when they differ from what was handed out."""

import os
import sys
import time
from pathlib import Path

import pytest

from inbox_orch.orch.git import administration, manifest
from support.runs import Site, commit


@pytest.fixture
def worktree(site: Site) -> Path:
    commit(site.repository, ".gitignore", "*.env\nbuilt/\n")
    run = site.open_run()
    site.add(run, "a")
    return Path(site.dispatch(run)["a"]["worktree"])


def changed(worktree: Path) -> list[str]:
    return sorted(manifest.changed(str(worktree), manifest.untracked_files(str(worktree))))


def test_without_a_manifest_every_such_file_counts_as_changed(worktree: Path):
    (worktree / "a.env").write_text("a")

    assert changed(worktree) == ["a.env"]


def test_what_was_handed_out_is_not_changed_until_it_is(worktree: Path):
    for name in ("a.env", "b.env", "c.env", "d.env"):
        (worktree / name).write_text("text")
    (worktree / "l.env").symlink_to("a.env")
    (worktree / "not-ignored.txt").write_text("text")
    assert manifest.write(str(worktree)) == 6
    assert changed(worktree) == []

    (worktree / "a.env").write_text("test")  # as long as before
    (worktree / "b.env").chmod(0o755)
    (worktree / "c.env").unlink()
    os.utime(worktree / "d.env")  # the same content
    (worktree / "l.env").unlink()
    (worktree / "l.env").symlink_to("b.env")
    (worktree / "new.env").write_text("")

    assert changed(worktree) == ["a.env", "b.env", "l.env", "new.env"]


def test_an_edit_that_sets_size_and_time_back_is_seen(worktree: Path):
    path = worktree / "a.env"
    path.write_text("text")
    manifest.write(str(worktree))
    before = path.stat()

    path.write_text("test")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert changed(worktree) == ["a.env"]


def test_a_large_file_is_changed_when_its_time_is(worktree: Path):
    large = worktree / "large.env"
    large.write_bytes(b"x" * manifest.MAX_HASHED_BYTES)
    manifest.write(str(worktree))
    assert changed(worktree) == []

    os.utime(large, ns=(1, 1))

    assert changed(worktree) == ["large.env"]


@pytest.mark.parametrize(
    "name", [b"new\nline.env", b"not-\xff-utf8.env", '"quoted\\" ü.env'.encode()]
)
def test_odd_names_are_known_again(worktree: Path, name: bytes):
    path = os.fsencode(worktree) + b"/" + name
    with open(path, "w") as file:
        file.write("text")
    manifest.write(str(worktree))
    assert changed(worktree) == []
    with open(path, "w") as file:
        file.write("another text")

    assert changed(worktree) == [os.fsdecode(name)]


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"version": 1}', '{"version": 1, "files": {"a.env": 1}}']
)
def test_a_damaged_manifest_counts_as_none(worktree: Path, content: str):
    (worktree / "a.env").write_text("a")
    manifest.write(str(worktree))
    admin = administration.folder_of(str(worktree))
    assert admin is not None
    Path(admin, "inbox-orch-manifest.json").write_text(content)

    assert changed(worktree) == ["a.env"]


def test_many_files_take_seconds_at_most(worktree: Path):
    built = worktree / "built"
    for folder in range(50):
        (built / str(folder)).mkdir(parents=True)
        for number in range(1000):
            os.close(os.open(built / str(folder) / str(number), os.O_CREAT | os.O_WRONLY))

    began = time.process_time()
    assert manifest.write(str(worktree)) == 50_000
    assert changed(worktree) == []
    assert time.process_time() - began < 10


def test_the_database_under_another_name_is_not_opened(worktree: Path, site: Site):
    own = (site.office.path, Path(f"{site.office.path}-shm"))
    for number, file in enumerate(own):
        os.link(file, worktree / f"{number}.env")
    opened: list[str] = []
    watching = [opened]
    sys.addaudithook(
        lambda name, given: watching[0].append(str(given[0])) if name == "open" else None
    )

    assert manifest.write(str(worktree)) == 2
    assert changed(worktree) == []
    watching[0] = []  # a hook cannot be taken out

    assert [name for name in opened if name.endswith(".env")] == []
