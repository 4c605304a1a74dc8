"""A result that goes into a file: whole or not at all, with the mode of any new file."""

import io
import os
import stat

import pytest

from inbox_orch.shared.shell.writing import write_file


@pytest.mark.parametrize("mask, mode", [(0o022, 0o644), (0o077, 0o600)])
def test_it_has_the_mode_of_a_new_file(tmp_path, mask, mode):
    previous = os.umask(mask)
    try:
        write_file(str(tmp_path / "file"), io.BytesIO(b"content"))
    finally:
        os.umask(previous)

    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode
    assert (tmp_path / "file").read_bytes() == b"content"


def test_the_mask_which_all_threads_share_is_left_alone(tmp_path, monkeypatch):
    """Of two threads of a server that change it and put it back, one may put back the other's."""

    def fail(mask):
        raise AssertionError("the mask is changed")

    monkeypatch.setattr(os, "umask", fail)

    write_file(str(tmp_path / "file"), io.BytesIO(b"content"))


def test_where_it_cannot_be_written_to_its_end_the_old_one_stays_and_nothing_else(tmp_path):
    class Failing(io.BytesIO):
        def read(self, *size):
            raise InterruptedError

    (tmp_path / "file").write_bytes(b"old")

    with pytest.raises(Exception, match="cannot write"):
        write_file(str(tmp_path / "file"), Failing())

    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"old"]
