"""Files that git does not bring are copied as they are, and nothing else is."""

import os
import socket
import stat
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.git.copying import Copied, copy_untracked
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.layout import layout_of
from support.templates import make_database


@pytest.fixture
def main(tmp_path: Path) -> Path:
    """The main working tree."""
    folder = tmp_path / "main"
    (folder / ".git").mkdir(parents=True)
    return folder


@pytest.fixture
def worktree(tmp_path: Path) -> Path:
    """The new one."""
    folder = tmp_path / "worktree"
    folder.mkdir()
    return folder


def copied(main: Path, worktree: Path, *wanted: str) -> Copied:
    database = layout_of(str(main / ".inbox" / "bus.db"))
    return copy_untracked(str(main), str(worktree), wanted, database.holds)


def reasons(result: Copied) -> dict[str, str]:
    return {entry.path: entry.reason for entry in result.left_out}


def test_a_file_is_copied_byte_for_byte_with_its_mode_and_time(main: Path, worktree: Path):
    content = bytes(range(256)) * 5000 + b"\r\n\xff"
    (main / ".env").write_bytes(content)
    (main / "run.sh").write_text("#!/bin/sh\n")
    (main / ".env").chmod(0o600)
    (main / "run.sh").chmod(0o751)
    os.utime(main / ".env", ns=(10**18, 10**18 + 5))

    result = copied(main, worktree, ".env", "run.sh")

    assert (result.files, result.left_out) == (2, ())
    assert result.size_bytes == len(content) + 10
    assert (worktree / ".env").read_bytes() == content
    assert stat.S_IMODE((worktree / ".env").stat().st_mode) == 0o600
    assert stat.S_IMODE((worktree / "run.sh").stat().st_mode) == 0o751
    assert (worktree / ".env").stat().st_mtime_ns == 10**18 + 5
    (worktree / ".env").write_bytes(b"mine")
    assert (main / ".env").read_bytes() == content


def test_a_folder_comes_with_all_that_is_in_it(main: Path, worktree: Path):
    (main / "cache" / "deep" / "empty").mkdir(parents=True)
    (main / "cache" / "deep" / "x").write_text("x")
    (main / "cache" / "link").symlink_to("deep/x")
    os.mkfifo(main / "cache" / "pipe")
    odd = os.fsencode(main / "cache") + b"/\xff\n odd"
    Path(os.fsdecode(odd)).write_text("odd")
    (main / "cache" / "deep").chmod(0o555)

    result = copied(main, worktree, "cache")

    assert reasons(result) == {"cache/pipe": "neither a file, a folder nor a link"}
    assert (worktree / "cache" / "deep" / "empty").is_dir()
    assert os.readlink(worktree / "cache" / "link") == "deep/x"
    assert Path(os.fsdecode(os.fsencode(worktree) + b"/cache/\xff\n odd")).read_text() == "odd"
    assert stat.S_IMODE((worktree / "cache" / "deep").stat().st_mode) == 0o555


def test_names_may_stand_for_several(main: Path, worktree: Path):
    for name in ("a", "b"):
        (main / "packages" / name).mkdir(parents=True)
        (main / "packages" / name / ".env").write_text(name)
    (main / "[odd]").write_text("a name with brackets is itself first")

    result = copied(main, worktree, "packages/*/.env", "[odd]")

    assert (result.files, result.left_out) == (3, ())
    assert (worktree / "packages" / "b" / ".env").read_text() == "b"
    assert (worktree / "[odd]").exists()


def test_what_is_not_there_is_named_and_the_rest_is_copied(main: Path, worktree: Path):
    (main / ".env").write_text("x")

    result = copied(main, worktree, "missing", "no/*", ".env")

    assert reasons(result) == {"missing": "it is not there", "no/*": "it is not there"}
    assert (worktree / ".env").exists()


@pytest.mark.parametrize("path", ["/etc/hostname", "../outside", ".", "a/../../outside", ""])
def test_a_path_that_is_not_below_the_working_tree_is_left_out(
    main: Path, worktree: Path, path: str
):
    (main.parent / "outside").write_text("outside")

    assert reasons(copied(main, worktree, path)) == {path: "not a path below the working tree"}
    assert list(worktree.iterdir()) == []


def test_no_link_leads_out(main: Path, worktree: Path):
    outside = main.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (main / "absolute").symlink_to(outside / "secret")
    (main / "relative").symlink_to("../outside/secret")
    (main / "folder").symlink_to(outside)
    (main / "hop").symlink_to("folder/secret")

    result = copied(main, worktree, "absolute", "relative", "folder/secret", "folder", "hop")

    out = "it is a link that leads out of the working tree"
    assert reasons(result) == {
        "absolute": out,
        "relative": out,
        "folder/secret": "folder is a link",
        "folder": out,
        "hop": out,
    }
    assert list(worktree.iterdir()) == []


def test_nothing_is_written_through_a_link_of_the_commits(main: Path, worktree: Path):
    outside = main.parent / "outside"
    outside.mkdir()
    (main / "config" / "deep").mkdir(parents=True)
    (main / "config" / "deep" / ".env").write_text("x")
    (worktree / "config").symlink_to(outside)

    result = copied(main, worktree, "config/deep/.env", "config")

    assert reasons(result) == {
        "config/deep/.env": "config is no folder in the worktree",
        "config": "it is no folder in the worktree",
    }
    assert list(outside.iterdir()) == []


def test_what_the_commit_has_is_never_overwritten(main: Path, worktree: Path):
    for folder, text in ((main, "changed"), (worktree, "committed")):
        (folder / "src").mkdir()
        (folder / "src" / "a.txt").write_text(text)
    (main / "src" / "local.txt").write_text("local")

    result = copied(main, worktree, "src", "src/a.txt")

    assert (worktree / "src" / "a.txt").read_text() == "committed"
    assert (worktree / "src" / "local.txt").read_text() == "local"
    assert reasons(result) == {"src/a.txt": "it is in the commit already"}


def test_no_other_working_tree_is_entered(main: Path, worktree: Path):
    for name in ("worktree", "clone"):
        (main / "cache" / name).mkdir(parents=True)
        (main / "cache" / name / "big").write_text("big")
    (main / "cache" / "worktree" / ".git").write_text("gitdir: /somewhere")
    (main / "cache" / "clone" / ".git").mkdir()

    result = copied(main, worktree, "cache", "cache/clone/big", "cache/worktree", ".git")

    assert list((worktree / "cache").iterdir()) == []
    assert set(reasons(result).values()) == {
        "it is another working tree",
        "it is a repository's own folder",
    }
    assert set(reasons(result)) == {"cache/clone", "cache/worktree", ".git"}


def test_the_database_is_never_opened(main: Path, worktree: Path):
    (main / ".inbox").mkdir()
    (main / ".inbox" / "bus.db").write_text("x")
    (main / "own.db").write_text("x")
    named = layout_of(str(main / "own.db"))

    assert reasons(copied(main, worktree, ".inbox", ".inbox/bus.db")) == {
        ".inbox": "it is the database's"
    }
    result = copy_untracked(str(main), str(worktree), ["*.db"], named.holds)
    assert reasons(result) == {"own.db": "it is the database's"}
    assert list(worktree.iterdir()) == []


def test_a_socket_in_the_place_of_a_file_is_left_out(main: Path, worktree: Path, monkeypatch):
    monkeypatch.chdir(main)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s")
        assert reasons(copied(main, worktree, "s")) == {"s": "neither a file, a folder nor a link"}


def test_a_worktree_that_cannot_be_written_is_an_error_with_its_path(main: Path, worktree: Path):
    (main / ".env").write_text("x")
    worktree.rmdir()

    with pytest.raises(InboxOrchError) as refused:
        copied(main, worktree, ".env")
    assert refused.value.code == "io_error"
    assert str(worktree) in refused.value.message


def test_a_bare_repository_has_nothing_to_copy(worktree: Path):
    result = copy_untracked(None, str(worktree), [".env"], lambda path: False)

    assert reasons(result) == {".env": "the repository is bare"}


@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
def test_the_database_is_not_copied_under_another_name_of_its_file(
    main: Path, worktree: Path, end: str
):
    path = main / ".inbox" / "bus.db"
    make_database(path)
    with Bus.open(path, agent="leader") as bus:
        bus.send(to="w1", subject="task")
        os.link(f"{path}{end}", main / "other-name")

        result = copied(main, worktree, "other-name")

    assert reasons(result) == {"other-name": "it is the database's"}
    assert list(worktree.iterdir()) == []
