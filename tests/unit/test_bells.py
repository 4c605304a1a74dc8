"""Which bells are dead, and what a writer that cannot open one leaves alone."""

import errno
import os

from inbox_orch.shared.store.sqlite import bells
from inbox_orch.shared.store.sqlite.bells import Bells


def test_a_bell_is_dead_once_its_process_has_gone(tmp_path):
    with Bells(str(tmp_path), ["workers"]):
        assert list(bells.dead(str(tmp_path), 0)) == []
    os.mkfifo(tmp_path / "silent")  # not in a topic's folder
    place = tmp_path / "workers"
    place.mkdir()
    os.mkfifo(place / "123-abc")

    assert list(bells.dead(str(tmp_path), 0)) == [str(place / "123-abc")]


def test_a_bell_that_is_being_made_is_dead_only_when_it_is_old(tmp_path):
    place = tmp_path / "workers"
    place.mkdir()
    os.mkfifo(place / ".new-123-abc")
    made_ms = (place / ".new-123-abc").stat().st_mtime_ns // 1_000_000

    assert list(bells.dead(str(tmp_path), made_ms)) == []
    assert list(bells.dead(str(tmp_path), made_ms + 1)) == [str(place / ".new-123-abc")]


def test_a_writer_without_a_free_descriptor_leaves_the_bell_in_place(tmp_path, monkeypatch):
    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    with Bells(str(tmp_path), ["workers"]):
        with monkeypatch.context() as patched:
            patched.setattr(os, "open", refuse)
            bells.ring(str(tmp_path), ["workers"])
        (bell,) = (tmp_path / "workers").iterdir()
        assert bell.is_fifo()
