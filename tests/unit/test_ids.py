"""Ids that are made without the library for them: the library reads them as its own."""

import re
import threading
import time
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ulid import ULID

from inbox_orch.shared import ids

MILLISECOND = st.integers(1, 2**48 - 2)
CHANCE = st.binary(min_size=10, max_size=10)


def made(*makings: tuple[int, bytes]) -> list[str]:
    """The ids that one process makes at these milliseconds, with these bytes of chance."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ids, "_last_number", 0)
        for at_ms, chance in makings:
            clock = SimpleNamespace(time_ns=lambda at_ms=at_ms: at_ms * 1_000_000 + 999_999)
            lots = SimpleNamespace(urandom=lambda length, chance=chance: chance[:length])
            patch.setattr(ids, "time", clock)
            patch.setattr(ids, "os", lots)
            found.append(ids.new_thread_id())
    return found


@given(at_ms=MILLISECOND, chance=CHANCE)
@example(at_ms=2**48 - 1, chance=b"\xff" * 10)
def test_the_library_reads_the_time_and_the_chance_of_an_id_as_they_were(at_ms, chance):
    (found,) = made((at_ms, chance))

    assert re.fullmatch(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", found)
    assert ULID.from_str(found).bytes == at_ms.to_bytes(6) + chance
    assert found == str(ULID.from_str(found)) == ids.check_id(found, "thread")


@given(MILLISECOND, st.lists(CHANCE, min_size=2))
@example(7, [b"\xfe" + b"\xff" * 9, bytes(10), bytes(10)])
def test_ids_of_one_millisecond_sort_in_the_order_of_their_making(at_ms, chances):
    found = made(*((at_ms, chance) for chance in chances))

    assert found == sorted(set(found))


def test_ids_that_the_library_makes_sort_in_the_order_of_their_making():
    found = [ids.new_id() for _ in range(2000)]

    assert found == sorted(set(found))


def test_an_id_tells_the_time_of_its_making():
    before_ms = time.time_ns() // 1_000_000
    found = ULID.from_str(ids.new_thread_id())

    assert before_ms <= found.milliseconds <= time.time_ns() // 1_000_000


def test_threads_never_make_the_same_id():
    found: list[str] = []

    def make() -> None:
        found.extend([ids.new_thread_id() for _ in range(2000)])

    workers = [threading.Thread(target=make) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert len(set(found)) == 8000


def test_processes_forked_in_the_same_millisecond_make_different_ids(monkeypatch):
    now_ns = time.time_ns()
    monkeypatch.setattr(ids, "time", SimpleNamespace(time_ns=lambda: now_ns))
    ids.new_thread_id()
    before_the_fork = ids._last_number

    def of_a_child() -> str:
        monkeypatch.setattr(ids, "_last_number", before_the_fork)
        return ids.new_thread_id()

    assert len({of_a_child() for _ in range(200)}) == 200


@pytest.mark.parametrize(
    "number, said",
    [(0, "0 seats are"), (1, "1 seat is"), (2, "2 seats are"), (1200, "1,200 seats are")],
)
def test_one_of_a_thing_is_not_told_as_several(number: int, said: str):
    assert ids.counted(number, "seat is", "seats are") == said
    assert ids.counted(number, "seat") == said.rpartition(" ")[0]
