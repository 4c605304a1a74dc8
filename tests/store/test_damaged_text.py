"""Text that is damaged on the disk is called that, by every command that meets it."""

import pytest

from support.buses import Office, refused


@pytest.fixture
def damaged(tmp_path):
    """A database whose only thread has a subject that is no UTF-8."""
    office = Office(tmp_path)
    office.bus("leader").send(to="workers", subject="MARKERMARKER", body="x")
    office.close()
    content = office.path.read_bytes()  # nobody has it open
    assert content.count(b"MARKERMARKER") == 1
    office.path.write_bytes(content.replace(b"MARKERMARKER", b"MARKE\xff\xfeARKER"))
    yield office
    office.close()


@pytest.mark.parametrize("verb", ["list", "fetch", "claim"])
def test_damaged_text_is_corrupt(damaged, verb):
    bus = damaged.bus("workers")
    with refused("corrupt"):
        getattr(bus, verb)()
