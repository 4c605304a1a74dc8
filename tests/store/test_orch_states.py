"""The tables of states, held against the CHECK constraints of the database."""

import re
import sqlite3
from typing import Any

import pytest

from inbox_orch.orch.runs import readiness, states
from inbox_orch.orch.runs.planning import POLICIES
from support.runs import Site

STATES = {
    "run": states.RUN_STATES,
    "task": states.TASK_STATES,
    "attempt": states.ATTEMPT_STATES,
}


@pytest.fixture
def connection(site: Site):
    """A database with a run, two tasks, an attempt and a dependency, to try columns on."""
    run = site.open_run()
    site.add(run, "first", worktree=False)
    site.add(run, "second", worktree=False, depends_on=["first"])
    site.dispatch(run)
    site.close()
    opened = sqlite3.connect(site.office.path, isolation_level=None)
    yield opened
    opened.close()


def accepts(connection: sqlite3.Connection, table: str, changes: dict[str, Any]) -> bool:
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    connection.execute("BEGIN")
    try:
        connection.execute(f"UPDATE {table} SET {assignments}", changes)
    except sqlite3.IntegrityError:
        return False
    finally:
        connection.execute("ROLLBACK")
    return True


def consistent(table: str, state: str) -> dict[str, Any]:
    """The state, with the columns that it needs."""
    if table == "run":
        return {"state": state, "closed_at": 1 if state == "closed" else None}
    if table == "task":
        return {"state": state, "not_before": None, "accepted_attempt": None}
    return {
        "state": state,
        "ended_at": 1 if state in states.ATTEMPT_ENDED else None,
        "ending_as": "cancelled" if state == "ending" else None,
    }


@pytest.mark.parametrize("table", STATES)
def test_the_database_takes_every_state_of_the_table_and_no_other(connection, table: str):
    for state in STATES[table]:
        assert accepts(connection, table, consistent(table, state)), state
    for state in ("", "Pending", "done", "unreachable", "ready", "waiting"):
        assert not accepts(connection, table, consistent(table, state)), state


@pytest.mark.parametrize("table", STATES)
def test_the_states_in_the_constraint_are_those_of_the_table(connection, table: str):
    sql = connection.execute(
        "SELECT sql FROM sqlite_schema WHERE name = ? AND type = 'table'", (table,)
    ).fetchone()[0]
    named = re.search(r"state TEXT NOT NULL CHECK \(state IN \(([^)]*)\)", sql)

    assert named is not None
    assert set(re.findall(r"'([a-z_]+)'", named[1])) == set(STATES[table])


@pytest.mark.parametrize("table", STATES)
def test_every_transition_leads_between_states_of_its_table(table: str):
    for transition in states.TABLES[table]:
        assert transition.source is None or transition.source in STATES[table]
        assert transition.target in STATES[table]


def test_nothing_leads_out_of_an_ended_attempt():
    assert not [t for t in states.ATTEMPT_TRANSITIONS if t.source in states.ATTEMPT_ENDED]
    assert set(states.ATTEMPT_LIVE) == set(states.ATTEMPT_STATES) - set(states.ATTEMPT_ENDED)


def test_an_attempt_has_ended_exactly_when_it_says_so(connection):
    assert not accepts(connection, "attempt", {"state": "failed"})
    assert not accepts(connection, "attempt", {"ended_at": 1})
    assert not accepts(connection, "attempt", {"state": "ending"})


def test_the_database_refuses_a_second_live_attempt_of_a_task(connection):
    columns = [row[1] for row in connection.execute("PRAGMA table_info(attempt)")]
    changed = {
        "id": "'01ARZ3NDEKTSV4RRFFQ69G5FAV'",
        "number": "2",
        "thread_id": "NULL",
        "state": "'allocating'",
    }
    copied = ", ".join(changed.get(name, name) for name in columns)

    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(f"INSERT INTO attempt SELECT {copied} FROM attempt")


def test_conditions_and_policies_are_those_of_the_constraints(connection):
    for condition in readiness.CONDITIONS:
        assert accepts(connection, "dependency", {"condition": condition})
    assert not accepts(connection, "dependency", {"condition": "any"})
    for policy in POLICIES:
        assert accepts(connection, "run", {"on_failure": policy})
    assert not accepts(connection, "run", {"on_failure": "ignore"})
