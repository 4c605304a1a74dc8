"""A watch over git: nothing asks it while a transaction of the same thread holds the write lock."""

import weakref
from _thread import get_ident
from typing import Any

import pytest

from inbox_orch.orch.git import commands
from inbox_orch.shared.store.sqlite.database import Database


def refuse_git_in_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on git fails for a caller who is inside a transaction: every other writer of the
    database would wait for git, which may take minutes and may itself wait for somebody."""
    begun: weakref.WeakKeyDictionary[Database, int] = weakref.WeakKeyDictionary()
    begin, execute = Database._begin, commands._execute

    def begin_known(database: Database, durable: bool) -> Any:
        begun[database] = get_ident()
        return begin(database, durable)

    def execute_outside(call: Any, *arguments: Any) -> Any:
        for database, thread in list(begun.items()):
            if thread == get_ident() and database.in_transaction:
                words = " ".join(call.words[:40])
                raise AssertionError(f"in a transaction, git was asked: {words}")
        return execute(call, *arguments)

    monkeypatch.setattr(Database, "_begin", begin_known)
    monkeypatch.setattr(commands, "_execute", execute_outside)
