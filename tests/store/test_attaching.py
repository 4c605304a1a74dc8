"""Files that an agent keeps on a thread of its own: one call, with the history of three."""

import os

import pytest

from support.buses import Office, refused


@pytest.fixture
def office(tmp_path):
    office = Office(tmp_path)
    yield office
    office.close()


@pytest.fixture
def leader(office):
    return office.bus("leader")


def stored(bus):
    return bus.artifacts.add_bytes("report.md", b"# All is well\n")


def by_hand(bus, *, sealed):
    """What `attach` stands for."""
    sent = bus.send(to="leader", subject="Report", body="report.md of x", sealed=sealed)
    token = bus.claim(sent.thread.id).lease.token
    return bus.done(sent.thread.id, token, body="report.md", files=(stored(bus),))


def attached(bus, **options):
    return bus.attach(
        "Report", (stored(bus),), body="report.md of x", result="report.md", **options
    )


def told(bus, written):
    """All that is to be seen of a thread, without what is different for every thread."""
    thread = written.thread.id
    shape = bus.show(thread, full=True).as_json()
    events = [e.as_json() for e in bus.watch(after="0", thread_id=thread, wait_seconds=0)]
    own = {thread: "THREAD", **{m["id"]: f"M{n}" for n, m in enumerate(shape["messages"])}}
    return [plain(part, own) for part in (written.as_json(), shape, events)]


def plain(value, own):
    if isinstance(value, dict):
        return {k: plain(v, own) for k, v in value.items() if k not in ("id", "seq", "message")}
    if isinstance(value, list):
        return [plain(each, own) for each in value]
    return own.get(value, value) if isinstance(value, str) else value


@pytest.mark.parametrize("sealed", [False, True])
def test_an_attached_file_has_the_history_of_a_thread_sent_claimed_and_done(office, leader, sealed):
    once, thrice = attached(leader, sealed=sealed), by_hand(leader, sealed=sealed)

    assert told(leader, once) == told(leader, thrice)
    _, content = leader.artifact(once.thread.id, "report.md")
    with content:
        assert content.read() == b"# All is well\n"


def test_a_sealed_one_is_not_to_be_seen_by_others(office, leader):
    thread = attached(leader, sealed=True).thread.id

    with refused("not_found"):
        office.bus("w1").show(thread)


def test_nothing_is_left_of_a_thread_whose_file_has_been_cleared_away(leader):
    file = stored(leader)
    before = leader.latest_event()
    folder = leader.database.layout.artifacts
    os.remove(os.path.join(folder, file.sha256[:2], file.sha256[2:]))

    with refused("busy"):
        leader.attach("Report", (file,), body="report.md of x", result="report.md")

    assert leader.latest_event() == before
    assert leader.list().items == ()
