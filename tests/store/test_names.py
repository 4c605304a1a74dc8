"""Names by their beginning: what is found, what stays hidden, and that it takes no longer in a
large database."""

from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.inbox.services import naming
from support.commands import Project
from support.engines import Kind

QUERIES = {
    "threads": lambda names: naming.threads_beginning(
        names.desk, "", states=("blocked",), limit=50
    ),
    "mailboxes": lambda names: naming.mailboxes_beginning(names.desk, "w", 50),
    "agents": lambda names: naming.agents_beginning(names.desk, "l", 50),
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def named(project: Project, agent: str | None = None) -> Bus:
    return Bus.open(project.path, agent=agent)


def test_the_newest_threads_come_first_and_only_those_that_begin_so(project: Project):
    first, second = project.send("one"), project.send("two")

    with named(project) as names:
        found = naming.threads_beginning(names.desk, first[:5].lower(), limit=50)
        assert found == [(second, "pending: two"), (first, "pending: one")]
        assert naming.threads_beginning(names.desk, first, limit=50) == [(first, "pending: one")]
        assert naming.threads_beginning(names.desk, "Z", limit=50) == []
        assert len(naming.threads_beginning(names.desk, "", limit=1)) == 1


def test_a_sealed_thread_is_named_to_those_alone_who_may_see_it(project: Project):
    thread = project.send(sealed=True)

    for agent, mailboxes, seen in (
        (None, (), False),
        ("w1", (), False),
        ("w1", ("workers",), True),
        ("leader", (), True),
    ):
        with named(project, agent) as names:
            found = naming.threads_beginning(names.desk, "", mailboxes=mailboxes, limit=50)
        assert [each for each, _ in found] == ([thread] if seen else [])


def test_mailboxes_and_agents_are_found_by_what_they_did(project: Project):
    project.send()
    with project.bus("w1") as bus:
        bus.fetch(mailboxes=["pool"])

    with named(project) as names:
        assert naming.mailboxes_beginning(names.desk, "", 50) == ["pool", "w1", "workers"]
        assert naming.mailboxes_beginning(names.desk, "w", 50) == ["w1", "workers"]
        assert naming.agents_beginning(names.desk, "", 50) == ["leader", "w1"]
        assert naming.agents_beginning(names.desk, "lea", 50) == ["leader"]


def test_an_agent_that_is_started_again_and_again_is_one(project: Project):
    for number in range(20):
        held = project.claim(project.send(), agent="w1")
        with project.bus("w1") as bus:
            bus.fetch()
            if number % 2:
                bus.done(held.thread, held.token)

    with named(project) as names:
        assert naming.agents_beginning(names.desk, "", 50) == ["leader", "w1"]


@pytest.mark.parametrize("query", QUERIES)
def test_looking_for_names_takes_no_more_steps_among_many_threads(
    engine: Kind, project: Project, query: str
):
    """Steps of the engine's own, which no load of the machine changes."""

    def steps() -> int:
        with named(project) as names, engine.steps(names.database) as counted:
            QUERIES[query](names)
        return len(counted)

    def fill(number: int) -> None:
        with project.bus("leader") as bus, bus.transaction():
            for _ in range(number):
                bus.send(to="workers", subject="s", body="b")

    fill(2_500)  # more than are ever looked at
    before = steps()
    fill(2_500)
    assert steps() <= before * 1.1 + 2
