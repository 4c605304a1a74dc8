"""The engines that the store can be run on, and what a test may ask of each.

The conformance suite (tests/store) knows an engine by this alone: what it cannot say with a
session or a service, it asks the kind. A new engine gets a line in `ENGINES`, and has to pass.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import pytest

from inbox_orch.shared.clock import Clock
from inbox_orch.shared.store.engine import Engine, Session


class Kind(Protocol):
    """What a test may ask of an engine; see `sqlite.kind` for each."""

    name: str
    scratch: str
    """Makes the table `scratch`: number (counted by the engine), name (of one row each), whole
    (64 bits), raw (bytes)."""

    def make(self, folder: Path, clock: Clock | None = None) -> str: ...

    def open(self, address: str, **options: Any) -> Engine: ...

    def looking(self, engine: Engine) -> Session: ...

    def by_hand(self, address: str, sql: str, parameters: tuple[Any, ...] = ()) -> None: ...

    def statements(self, engine: Engine) -> AbstractContextManager[list[str]]: ...

    def steps(self, engine: Engine) -> AbstractContextManager[list[int]]: ...

    def scans(self, engine: Engine, statements: list[str]) -> set[tuple[str, str]]: ...

    def changes(self, engine: Engine) -> int: ...

    def columns(self, engine: Engine, table: str) -> list[str]: ...

    def states(self, engine: Engine, table: str) -> set[str]: ...

    def rung(self, patch: pytest.MonkeyPatch) -> set[str]: ...

    def only_written_with_the_lock(
        self, patch: pytest.MonkeyPatch
    ) -> AbstractContextManager[None]: ...


def _sqlite() -> Kind:
    from sqlite.kind import Sqlite

    return Sqlite()


ENGINES: dict[str, Callable[[], Kind]] = {"sqlite": _sqlite}
DEFAULT = "sqlite"

_chosen: list[Kind] = []


def chosen() -> Kind:
    """What the tests run on at this moment."""
    return _chosen[-1] if _chosen else ENGINES[DEFAULT]()


@contextlib.contextmanager
def using(name: str) -> Iterator[Kind]:
    """Run what follows on the engine of that name."""
    _chosen.append(ENGINES[name]())
    try:
        yield _chosen[-1]
    finally:
        _chosen.pop()


def looking(engine: Engine) -> Session:
    """A session that sees, at each look, what has been committed by then."""
    return chosen().looking(engine)
