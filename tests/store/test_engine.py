"""What every engine has to keep of the seam (`shared/store/engine.py`), said with plain SQL."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.store.engine import Engine, Session
from inbox_orch.shared.store.waits import Look, wait
from support.buses import refused
from support.clocks import FakeClock
from support.engines import Kind, looking
from support.processes import Child, close_all
from support.timing import PATIENCE_SECONDS

INSERT = "INSERT INTO scratch (name, whole) VALUES (?, ?)"
NAMES = "SELECT name FROM scratch ORDER BY number"
BIGGEST, SMALLEST = 2**63 - 1, -(2**63)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def address(engine: Kind, tmp_path: Path, clock: FakeClock) -> str:
    """Of a database with an empty table `scratch`."""
    address = engine.make(tmp_path, clock)
    engine.by_hand(address, engine.scratch)
    return address


@pytest.fixture
def ours(engine: Kind, address: str, clock: FakeClock) -> Iterator[Engine]:
    opened = engine.open(address, clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def others(engine: Kind, address: str, clock: FakeClock) -> Iterator[Engine]:
    """The same database, as another process has it open."""
    opened = engine.open(address, clock=clock)
    yield opened
    opened.close()


def raising(*errors: type[BaseException]) -> Any:
    """For a block that fails by itself, after what it does before."""
    return pytest.raises(errors)


def names(session: Session) -> list[str]:
    return [row[0] for row in session.all(NAMES)]


def write(engine: Engine, *these: str) -> None:
    with engine.transaction() as tx:
        tx.run_many(INSERT, [(name, None) for name in these])


# -- sessions --------------------------------------------------------------------------------


def test_one_is_the_first_row_or_none(ours: Engine):
    write(ours, "a", "b")
    with ours.snapshot() as snapshot:
        first = snapshot.one(NAMES)
        assert first is not None and first[0] == "a"
        assert snapshot.one("SELECT name FROM scratch WHERE name = ?", ("c",)) is None


def test_only_takes_a_row_for_granted(ours: Engine):
    with ours.snapshot() as snapshot:
        assert snapshot.only("SELECT count(*) FROM scratch")[0] == 0
        with pytest.raises(AssertionError):
            snapshot.only(NAMES)


def test_all_are_in_the_order_of_the_query_and_none_is_an_empty_list(ours: Engine):
    with ours.snapshot() as snapshot:
        assert snapshot.all(NAMES) == []
    write(ours, "b", "a", "c")
    with ours.snapshot() as snapshot:
        assert names(snapshot) == ["b", "a", "c"]
        assert [r[0] for r in snapshot.all("SELECT name FROM scratch ORDER BY name")] == [*"abc"]


def test_a_stream_has_the_same_rows_and_may_be_left_early(ours: Engine):
    write(ours, *"abc")
    with ours.snapshot() as snapshot:
        assert [row[0] for row in snapshot.stream(NAMES)] == [*"abc"]
        assert next(iter(snapshot.stream(NAMES)))[0] == "a"
        assert names(snapshot) == [*"abc"]


def test_two_streams_of_one_session_do_not_disturb_each_other(ours: Engine):
    write(ours, *"ab")
    with ours.snapshot() as snapshot:
        pairs = [
            (outer[0], inner[0])
            for outer in snapshot.stream(NAMES)
            for inner in snapshot.all(NAMES)
        ]

    assert pairs == [("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")]


def test_run_tells_how_many_rows_were_changed(ours: Engine):
    write(ours, *"abc")
    with ours.transaction() as tx:
        assert tx.run("UPDATE scratch SET whole = 1 WHERE name IN ('a', 'b')") == 2
        assert tx.run("UPDATE scratch SET whole = 1 WHERE name = 'd'") == 0
        assert tx.run("DELETE FROM scratch") == 3


def test_run_many_runs_in_the_order_of_the_rows_and_none_is_nothing(ours: Engine):
    with ours.transaction() as tx:
        tx.run_many(INSERT, [])
        tx.run_many(INSERT, ((name, None) for name in "cab"))
        assert names(tx) == [*"cab"]


def test_add_returns_the_number_that_the_engine_has_counted(ours: Engine):
    with ours.transaction() as tx:
        numbers = [tx.add(INSERT, (name, None)) for name in "abc"]
        found = [row[0] for row in tx.all("SELECT number FROM scratch ORDER BY name")]

    assert numbers == found
    assert numbers == sorted(set(numbers))


def test_parameters_go_by_position_and_by_name(ours: Engine):
    with ours.transaction() as tx:
        tx.run(
            "INSERT INTO scratch (name, whole) VALUES (:name, :whole)", {"whole": 7, "name": "n"}
        )
        assert tx.only("SELECT whole FROM scratch WHERE name = ?", ("n",))[0] == 7
        assert tx.only("SELECT whole FROM scratch WHERE name = :n", {"n": "n"})[0] == 7


def test_a_row_goes_by_position_by_name_and_as_a_sequence(ours: Engine):
    with ours.transaction() as tx:
        tx.run(INSERT, ("n", 7))
        row = tx.only("SELECT name, whole, whole + 1 AS more FROM scratch")

    assert (row[0], row[-1], row["name"], row["more"]) == ("n", 8, "n", 8)
    assert (tuple(row), len(row), tuple(row[1:])) == (("n", 7, 8), 3, (7, 8))


# -- values ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["", "ä ß 漢字 🦆", "e\u0301 é", "'; DROP TABLE scratch; --", "a\nb\tc\\d%_?:x", "\x01\x7f"],
)
def test_text_comes_back_as_it_was(ours: Engine, others: Engine, text: str):
    with ours.transaction() as tx:
        tx.run(INSERT, (text, None))
    with others.snapshot() as snapshot:
        assert snapshot.only("SELECT name FROM scratch WHERE name = ?", (text,))[0] == text


@pytest.mark.parametrize("number", [0, -1, 2**31, 2**53 + 1, BIGGEST, SMALLEST])
def test_a_whole_number_of_64_bits_comes_back_as_it_was(ours: Engine, others: Engine, number: int):
    with ours.transaction() as tx:
        tx.run(INSERT, ("n", number))
    with others.snapshot() as snapshot:
        found = snapshot.only("SELECT whole FROM scratch WHERE whole = ?", (number,))[0]

    assert (found, type(found)) == (number, int)


@pytest.mark.parametrize("content", [b"", b"\x00", bytes(range(256)), b"x" * 2_000_000])
def test_bytes_come_back_as_they_were(ours: Engine, others: Engine, content: bytes):
    with ours.transaction() as tx:
        tx.run("INSERT INTO scratch (name, raw) VALUES ('n', ?)", (content,))
    with others.snapshot() as snapshot:
        assert bytes(snapshot.only("SELECT raw FROM scratch")[0]) == content


def test_null_is_none_and_equals_nothing(ours: Engine):
    with ours.transaction() as tx:
        tx.run_many(INSERT, [("with", 1), ("without", None)])
        assert tx.only("SELECT whole FROM scratch WHERE name = 'without'")[0] is None
        assert tx.all("SELECT name FROM scratch WHERE whole = ?", (None,)) == []
        (row,) = tx.all("SELECT name FROM scratch WHERE whole IS NULL")
        assert row[0] == "without"


def test_a_boolean_is_stored_as_a_number(ours: Engine):
    with ours.transaction() as tx:
        tx.run_many(INSERT, [("yes", True), ("no", False)])
        assert [r[0] for r in tx.all("SELECT whole FROM scratch ORDER BY number")] == [1, 0]


# -- transactions ----------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, lambda: usage("no")])
def test_a_transaction_that_fails_has_changed_nothing(ours: Engine, others: Engine, error):
    write(ours, "before")
    raised = error()
    with raising(type(raised)), ours.transaction() as tx:
        tx.run(INSERT, ("during", None))
        tx.run("UPDATE scratch SET whole = 1")
        raise raised

    assert not ours.in_transaction
    assert [tuple(r) for r in looking(others).all("SELECT name, whole FROM scratch")] == [
        ("before", None)
    ]


def test_a_statement_that_breaks_a_rule_is_an_error_of_ours_and_undoes_all(ours: Engine):
    write(ours, "a")
    with raising(InboxOrchError), ours.transaction() as tx:
        tx.run(INSERT, ("b", None))
        tx.run(INSERT, ("a", None))

    assert names(looking(ours)) == ["a"]
    write(ours, "c")
    assert names(looking(ours)) == ["a", "c"]


def test_what_is_not_committed_is_seen_by_its_own_transaction_alone(ours: Engine, others: Engine):
    with ours.transaction() as tx:
        tx.run(INSERT, ("a", None))
        assert names(tx) == ["a"]
        with ours.snapshot() as own:
            assert names(own) == ["a"]
        with others.snapshot() as seen:
            assert names(seen) == []
    with others.snapshot() as seen:
        assert names(seen) == ["a"]


@pytest.mark.parametrize("durable", [True, False])
def test_a_transaction_has_one_moment(ours: Engine, clock: FakeClock, durable: bool):
    begun = ours.now()
    with ours.transaction(durable=durable) as tx:
        clock.advance(5)
        assert (tx.now, tx.durable) == (begun, durable)
        with ours.transaction(durable=durable) as joined:
            assert joined.now == begun
    assert ours.now().wall_ms == begun.wall_ms + 5_000


def test_a_transaction_within_one_joins_it(ours: Engine, others: Engine):
    with ours.transaction() as tx:
        tx.run(INSERT, ("outer", None))
        with ours.transaction() as joined:
            joined.run(INSERT, ("inner", None))
        assert names(looking(others)) == []
        assert ours.in_transaction
    assert names(looking(others)) == ["outer", "inner"]


def test_a_part_that_fails_is_undone_and_the_rest_stays(ours: Engine, others: Engine):
    with ours.transaction() as tx:
        tx.run(INSERT, ("before", None))
        with raising(ValueError), ours.transaction() as joined:
            joined.run(INSERT, ("failed", None))
            with ours.transaction() as deeper:
                deeper.run(INSERT, ("deeper", None))
            raise ValueError
        tx.run(INSERT, ("after", None))

    assert names(looking(others)) == ["before", "after"]


def test_a_durable_transaction_cannot_join_one_that_is_not(ours: Engine):
    with ours.transaction(durable=False), pytest.raises(AssertionError), ours.transaction():
        pass


def test_what_is_marked_to_be_kept_survives_a_refusal(ours: Engine, others: Engine):
    with refused("usage"), ours.transaction() as tx:
        tx.run(INSERT, ("kept", None))
        tx.keep()
        tx.run(INSERT, ("refused", None))
        raise usage("no")

    assert names(looking(others)) == ["kept"]


def test_what_is_marked_to_be_kept_does_not_survive_a_fault(ours: Engine, others: Engine):
    with raising(ValueError), ours.transaction() as tx:
        tx.run(INSERT, ("kept", None))
        tx.keep()
        raise ValueError

    assert names(looking(others)) == []


def test_only_what_was_written_before_the_mark_is_kept_of_a_part(ours: Engine, others: Engine):
    with ours.transaction() as tx:
        tx.run(INSERT, ("before", None))
        with refused("usage"), ours.transaction() as joined:
            joined.run(INSERT, ("kept", None))
            joined.keep()
            joined.run(INSERT, ("refused", None))
            raise usage("no")

    assert names(looking(others)) == ["before", "kept"]


# -- bells -----------------------------------------------------------------------------------


def test_a_bell_rings_after_the_commit_and_not_before(ours: Engine, engine: Kind, monkeypatch):
    rung = engine.rung(monkeypatch)
    with ours.transaction() as tx:
        tx.ring("one")
        with ours.transaction() as joined:
            joined.ring("two", "three")
        assert rung == set()

    assert rung == {"one", "two", "three"}


def test_what_was_undone_rings_no_bell(ours: Engine, engine: Kind, monkeypatch):
    rung = engine.rung(monkeypatch)
    with refused("usage"), ours.transaction() as tx:
        tx.run(INSERT, ("a", None))
        tx.ring("undone")
        raise usage("no")

    assert rung == set()


def test_what_is_kept_rings_its_bells_and_the_rest_does_not(ours, engine, monkeypatch):
    rung = engine.rung(monkeypatch)
    with refused("usage"), ours.transaction() as tx:
        tx.run(INSERT, ("a", None))
        tx.ring("kept")
        tx.keep()
        tx.ring("undone")
        raise usage("no")

    assert rung == {"kept"}


def test_a_ring_wakes_those_who_listen_for_its_topic(ours: Engine, others: Engine):
    with others.bells(["wanted"]) as bells:
        with ours.transaction() as tx:
            tx.ring("unwanted")
        assert not bells.sleep(0)
        with ours.transaction() as tx:
            tx.ring("wanted")
        assert bells.sleep(PATIENCE_SECONDS)
        assert not bells.sleep(0)


def test_a_wait_ends_with_what_another_commits(ours: Engine, others: Engine):
    def look() -> Look:
        found = names(looking(ours))
        if not found:
            write(others, "here")
        return Look(found or None)

    assert wait(ours, ["topic"], look, wait_seconds=PATIENCE_SECONDS) == ["here"]


# -- snapshots, versions ---------------------------------------------------------------------


def test_a_snapshot_sees_one_commit_whatever_is_written_meanwhile(ours: Engine, others: Engine):
    write(others, "a")
    with ours.snapshot() as snapshot:
        before = names(snapshot)
        write(others, "b")
        assert names(snapshot) == before == ["a"]
    with ours.snapshot() as snapshot:
        assert names(snapshot) == ["a", "b"]


def test_a_snapshot_is_taken_when_it_begins_and_not_at_the_first_look(ours, others):
    with ours.snapshot() as snapshot:
        write(others, "late")
        assert names(snapshot) == []


def test_the_version_changes_with_a_commit_of_another_and_with_nothing_else(ours, others):
    version = ours.version()
    assert ours.version() == version
    write(ours, "own")
    assert ours.version() == version
    with raising(ValueError), others.transaction() as tx:
        tx.run(INSERT, ("undone", None))
        raise ValueError
    assert ours.version() == version

    write(others, "theirs")
    changed = ours.version()
    assert changed != version
    assert ours.version() == changed


def test_a_wait_inside_a_transaction_is_refused_before_it_looks(ours: Engine):
    looks = []
    with ours.transaction(), refused("usage"):
        wait(ours, ["topic"], lambda: looks.append(1) or Look(None), wait_seconds=60)
    assert looks == []


# -- who and where ---------------------------------------------------------------------------


def test_its_address_leads_another_process_to_the_same_database(engine: Kind, ours: Engine):
    code = (
        "from support.engines import ENGINES\nfrom support.processes import say\n"
        "say(ENGINES[sys.argv[2]]().open(sys.argv[1]).id)"
    )
    child = Child(code, ours.address, engine.name)
    try:
        assert child.hear() == ours.id
    finally:
        child.close()


def test_an_owner_is_there_while_its_process_is(engine: Kind, ours: Engine):
    code = (
        "from support.engines import ENGINES\nfrom support.processes import say\n"
        "say(ENGINES[sys.argv[2]]().open(sys.argv[1]).owner())\nsys.stdin.readline()"
    )
    mine, child = ours.owner(), Child(code, ours.address, engine.name)
    theirs = type(mine)(*child.hear())._replace(boot_id=mine.boot_id)  # of the clock of the test

    assert ours.runs(mine) is True
    assert theirs != mine and ours.runs(theirs) is True
    child.kill()
    child.close()
    assert ours.runs(theirs) is False


def test_an_owner_of_another_boot_is_gone_and_of_another_machine_cannot_be_told(ours: Engine):
    mine = ours.owner()

    assert ours.runs(mine._replace(boot_id="another")) is False
    assert ours.runs(mine._replace(started=mine.started - 500)) is False
    assert ours.runs(mine._replace(namespace=1)) is None


def test_what_was_closed_is_refused_and_may_be_closed_again(engine: Kind, address: str):
    opened = engine.open(address)
    opened.close()
    opened.close()

    with refused("usage"), opened.snapshot():
        pass


# -- writers beside each other ---------------------------------------------------------------

COUNT_UP = """
from support.engines import ENGINES
from support.processes import say
engine = ENGINES[sys.argv[2]]().open(sys.argv[1])
for _ in range(50):
    with engine.transaction(durable=False) as tx:
        (number,) = tx.only("SELECT whole FROM scratch WHERE name = 'n'")
        tx.run("UPDATE scratch SET whole = ? WHERE name = 'n'", (number + 1,))
engine.close()
say("done")
"""


def test_of_writers_beside_each_other_no_change_is_lost(engine: Kind, ours: Engine):
    with ours.transaction() as tx:
        tx.run(INSERT, ("n", 0))
    writers = [Child(COUNT_UP, ours.address, engine.name) for _ in range(3)]
    try:
        assert [writer.hear() for writer in writers] == ["done"] * 3
    finally:
        close_all(writers)

    assert looking(ours).only("SELECT whole FROM scratch")[0] == 150


def test_a_writer_that_is_killed_leaves_nothing_and_holds_nobody_up(engine: Kind, ours: Engine):
    code = (
        "from support.engines import ENGINES\nfrom support.processes import say\n"
        "with ENGINES[sys.argv[2]]().open(sys.argv[1]).transaction() as tx:\n"
        "    tx.run(\"INSERT INTO scratch (name) VALUES ('half')\")\n"
        "    say('written')\n    sys.stdin.readline()"
    )
    child = Child(code, ours.address, engine.name)
    assert child.hear() == "written"
    child.kill()
    child.close()

    write(ours, "next")
    assert names(looking(ours)) == ["next"]
