"""The tables of states, held against the CHECK constraints of the database."""

from typing import Any

import pytest

from inbox_orch.orch.runs import readiness, states
from inbox_orch.orch.runs.planning import POLICIES
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.engine import Engine
from support.runs import Site

STATES = {
    "run": states.RUN_STATES,
    "task": states.TASK_STATES,
    "attempt": states.ATTEMPT_STATES,
}


class Undone(Exception):
    """Raised to take back what was only tried."""


@pytest.fixture
def database(site: Site) -> Engine:
    """A database with a run, two tasks, an attempt and a dependency, to try columns on."""
    run = site.open_run()
    site.add(run, "first", worktree=False)
    site.add(run, "second", worktree=False, depends_on=["first"])
    site.dispatch(run)
    return site.scheduler.database


def accepts(database: Engine, table: str, changes: dict[str, Any]) -> bool:
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    try:
        with database.transaction() as tx:
            assert tx.run(f"UPDATE {table} SET {assignments}", changes)
            raise Undone
    except InboxOrchError:
        return False
    except Undone:
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
def test_the_database_takes_every_state_of_the_table_and_no_other(database, table: str):
    for state in STATES[table]:
        assert accepts(database, table, consistent(table, state)), state
    for state in ("", "Pending", "done", "unreachable", "ready", "waiting"):
        assert not accepts(database, table, consistent(table, state)), state


@pytest.mark.parametrize("table", STATES)
def test_the_states_in_the_constraint_are_those_of_the_table(engine, database, table: str):
    assert engine.states(database, table) == set(STATES[table])


@pytest.mark.parametrize("table", STATES)
def test_every_transition_leads_between_states_of_its_table(table: str):
    for transition in states.TABLES[table]:
        assert transition.source is None or transition.source in STATES[table]
        assert transition.target in STATES[table]


def test_nothing_leads_out_of_an_ended_attempt():
    assert not [t for t in states.ATTEMPT_TRANSITIONS if t.source in states.ATTEMPT_ENDED]
    assert set(states.ATTEMPT_LIVE) == set(states.ATTEMPT_STATES) - set(states.ATTEMPT_ENDED)


def test_an_attempt_has_ended_exactly_when_it_says_so(database):
    assert not accepts(database, "attempt", {"state": "failed"})
    assert not accepts(database, "attempt", {"ended_at": 1})
    assert not accepts(database, "attempt", {"state": "ending"})


def test_the_database_refuses_a_second_live_attempt_of_a_task(engine, database):
    changed = {
        "id": "'01ARZ3NDEKTSV4RRFFQ69G5FAV'",
        "number": "2",
        "thread_id": "NULL",
        "state": "'allocating'",
    }
    columns = engine.columns(database, "attempt")
    copied = ", ".join(changed.get(name, name) for name in columns)

    with pytest.raises(InboxOrchError, match="UNIQUE"), database.transaction() as tx:
        tx.run(f"INSERT INTO attempt SELECT {copied} FROM attempt")


def test_conditions_and_policies_are_those_of_the_constraints(database):
    for condition in readiness.CONDITIONS:
        assert accepts(database, "dependency", {"condition": condition})
    assert not accepts(database, "dependency", {"condition": "any"})
    for policy in POLICIES:
        assert accepts(database, "run", {"on_failure": policy})
    assert not accepts(database, "run", {"on_failure": "ignore"})
