"""A folder of a database that is moved away during a call is not begun anew in its old place."""

import os

import pytest

from inbox_orch.shared import artifacts
from support.buses import refused


@pytest.mark.parametrize("moved", [".inbox", ".inbox/artifacts"])
@pytest.mark.parametrize("moment", ["before", "while it is copied"])
def test_an_attachment_makes_no_folder_for_a_store_that_is_gone(
    office, monkeypatch, tmp_path, moved, moment
):
    file = tmp_path / "file"
    file.write_bytes(b"content")
    top = office.path.parent.parent
    write = artifacts._write

    def move_away():
        os.rename(top / moved, tmp_path / "away")

    def moving(*arguments):
        found = write(*arguments)
        move_away()
        return found

    leader = office.bus("leader")
    if moment == "before":
        move_away()
    else:
        monkeypatch.setattr(artifacts, "_write", moving)
    if moved == ".inbox" or moment != "before":
        with refused("no_database"):
            leader.send(to="w", subject="s", attach=[str(file)])
        assert not (top / moved).exists()
    else:
        assert leader.send(to="w", subject="s", attach=[str(file)]).thread.id


def test_a_hook_makes_no_folder_for_a_store_that_is_gone(office, tmp_path):
    from inbox_orch.inbox.services.announcing import Announcing

    office.bus("leader").send(to="w", subject="s")
    announcing = Announcing(office.bus("w").database, "w")
    news = announcing.news()
    top = office.path.parent
    os.rename(top, tmp_path / "away")
    assert not announcing.announced(news)
    assert not top.exists()
