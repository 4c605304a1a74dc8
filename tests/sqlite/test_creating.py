"""The folder of a new database ignores itself in git, whatever a death has left behind."""

import errno
import os

import pytest

from inbox_orch.shared.store.gate import Gate
from inbox_orch.shared.store.sqlite import creating
from support.buses import refused


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".inbox" / "bus.db"


def test_an_ignore_file_that_stayed_empty_is_written_anew(path):
    path.parent.mkdir()
    (path.parent / ".gitignore").touch()

    creating.create(str(path))

    assert (path.parent / ".gitignore").read_text() == "*\n"
    assert not list(path.parent.glob(".gitignore?*"))


def test_init_of_a_database_that_is_there_repairs_an_empty_ignore_file(path):
    creating.create(str(path))
    os.truncate(path.parent / ".gitignore", 0)

    assert creating.create(str(path)) is False

    assert (path.parent / ".gitignore").read_text() == "*\n"


def test_an_ignore_file_of_the_user_s_own_stays(path):
    path.parent.mkdir()
    (path.parent / ".gitignore").write_text("*\n!notes\n")

    creating.create(str(path))

    assert (path.parent / ".gitignore").read_text() == "*\n!notes\n"


def test_a_death_while_the_ignore_file_is_written_leaves_no_half_of_it(path, monkeypatch):
    def dies(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", dies)
        with pytest.raises(KeyboardInterrupt):
            creating.create(str(path))
    assert not (path.parent / ".gitignore").exists()

    assert creating.create(str(path))
    assert (path.parent / ".gitignore").read_text() == "*\n"
    assert not list(path.parent.glob(".gitignore?*"))


def test_a_file_in_the_place_of_the_folder_is_a_wrong_call(path):
    path.parent.write_text("mine")

    with refused("usage") as failure:
        creating.create(str(path))

    assert "is no folder" in failure.value.message
    assert path.parent.read_text() == "mine"


@pytest.mark.parametrize("known", [False, True])
def test_what_was_made_goes_again_when_the_database_cannot_be_made(tmp_path, monkeypatch, known):
    folder = tmp_path / "above" / "project" / ".inbox"
    if known:
        folder.mkdir(parents=True)
        (folder / "mine").touch()
    before = sorted(tmp_path.rglob("*"))

    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", full)
        with refused("disk_full"):
            creating.create(str(folder / "bus.db"))
    assert sorted(tmp_path.rglob("*")) == before

    with monkeypatch.context() as patched:
        patched.setattr(creating, "_stamp", full)
        with refused("disk_full"):
            creating.create(str(folder / "bus.db"))
    assert sorted(tmp_path.rglob("*")) == before

    assert creating.create(str(folder / "bus.db"))
    assert not list(folder.glob("bus.db.new*"))


def test_a_call_that_fails_leaves_the_gate_of_a_database_that_is_there(path, monkeypatch):
    creating.create(str(path))
    os.unlink(path.parent / "gate")
    os.unlink(path.parent / ".gitignore")

    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", full)
        with refused("disk_full"):
            creating.create(str(path))

    assert (path.parent / "gate").exists()


def test_a_gate_that_was_taken_away_while_one_waited_is_not_the_gate(path, monkeypatch):
    acquire = Gate.acquire
    waited = []

    def late(gate, seconds):
        acquire(gate, seconds)
        if not waited:
            waited.append(gate)
            os.unlink(path.parent / "gate")

    monkeypatch.setattr(Gate, "acquire", late)
    assert creating.create(str(path))
    assert (path.parent / "gate").exists()
