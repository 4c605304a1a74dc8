"""Text that is damaged on the disk is called that by every command that meets it, and nothing else
suffers from it."""

import pytest

from support.buses import Office, refused

MARKS = ("ONE-MARK", "TWO-MARK", "THREE-MARK")


@pytest.fixture
def damaged(tmp_path):
    """A database with a thread whose subject is no UTF-8, between two that are whole."""
    office = Office(tmp_path)
    leader = office.bus("leader")
    office.threads = [leader.send(to="workers", subject=m, body="x").thread.id for m in MARKS]
    office.close()
    content = office.path.read_bytes()  # nobody has it open
    assert content.count(b"TWO-MARK") == 1
    office.path.write_bytes(content.replace(b"TWO-MARK", b"TWO\xff\xfeARK"))
    yield office
    office.close()


@pytest.mark.parametrize("verb", ["list", "fetch"])
def test_damaged_text_is_corrupt(damaged, verb):
    with refused("corrupt"):
        getattr(damaged.bus("workers"), verb)()


def test_what_is_damaged_is_never_given_out_and_the_rest_is(damaged):
    bus = damaged.bus("workers")
    first, broken, last = damaged.threads
    assert bus.claim().thread.id == first
    with refused("corrupt"):
        bus.claim()
    with refused("corrupt"):
        bus.claim(broken)

    assert bus.claim(last).thread.subject == "THREE-MARK"
    assert bus.show(last).thread.state == "claimed"


def test_the_doctor_names_what_is_damaged(damaged):
    checks = {check.name: check for check in damaged.bus().doctor(verify=True).checks}

    assert checks["rows"].items == ("thread 2: a text is not UTF-8",)
    assert checks["rows"].status == "problem"
