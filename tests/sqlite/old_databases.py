"""Databases as an earlier release has left them: made by the steps of the schema that it had, with
what it could have written into them.

The content is made by the present program, and then carried over into the tables and columns
that the older schema has; nothing that only a later step knows of is used for it.
"""

import contextlib
import sqlite3
from pathlib import Path

from inbox_orch.migrations.apply import migrate
from inbox_orch.orch.council.ask import CouncilSpec, check_asked
from inbox_orch.orch.runs.model import Run
from support.chambers import BRIEF
from support.runs import Site, commit

BUS, SCHEDULER, WHOLE_SCHEDULER, COUNCIL, TASK_HARVEST = 1, 2, 3, 4, 5


def fill(site: Site, version: int) -> None:
    """Do what a release with this schema could do, so that rows of every kind are there."""
    _talk(site)
    if version >= SCHEDULER:
        run = _begin_run(site)
        if version >= WHOLE_SCHEDULER:
            _use_whole_scheduler(site, run)
    if version >= COUNCIL:
        _hold_council(site)
    if version >= TASK_HARVEST:
        site.add(_opened(site), "harvested", harvest=True)


def _talk(site: Site) -> None:
    """Threads in every state, with messages, artifacts, cursors and keys."""
    leader, worker = site.office.bus("leader"), site.office.bus("w1")
    file = site.folder / "attached.bin"
    file.write_bytes(bytes(range(256)))
    for subject in ("pending", "held", "asked", "answered", "done", "failed", "given back"):
        leader.send(to="w1", subject=subject, body=subject * 9, key=subject, attach=[str(file)])
    worker.mark_read(worker.fetch())
    threads = {t.subject: t.id for t in leader.list().items}

    def held(subject: str) -> tuple[str, str]:
        return threads[subject], str(worker.claim(threads[subject]).lease.token)

    worker.update(*held("held"), body="half", progress=50)
    worker.ask(*held("asked"), body="Which?", options=["a", "b"])
    worker.ask(*held("answered"), body="Which?")
    leader.reply(threads["answered"], body="a")
    worker.done(*held("done"), body="done", payload='{"n": 1}', attach=[str(file)])
    worker.fail(*held("failed"), body="broken", fatal=True)
    worker.release(*held("given back"))
    leader.cancel(leader.send(to="w2", subject="cancelled", sealed=True).thread.id, body="enough")


def _opened(site: Site) -> Run:
    """A run as it was before patches were judged and recorded."""
    run = site.open_run()
    with site.scheduler.database.transaction() as tx:
        tx.run("UPDATE run SET patches = 0 WHERE id = ?", (run.id,))
    return site.scheduler.run(run.name)


def _begin_run(site: Site) -> Run:
    """Tasks that wait, run, have succeeded and have failed."""
    run = _opened(site)
    site.add(run, "a", "b", "c", "d")
    site.add(run, "after", depends_on=["a"])
    items = site.dispatch(run, "a", "b", "c")
    site.deliver(items["a"], "a.txt")
    site.claim(items["b"])
    site.fail(items["c"])
    site.scheduler.reconcile(run)
    return run


def _use_whole_scheduler(site: Site, run: Run) -> None:
    """Integration, clean-up with salvage, a task begun again, a run that was cancelled."""
    site.scheduler.integrate(run)
    (one,) = site.attempts(run, "c")
    Path(str(one.worktree_path), "left.txt").write_text("not committed\n")
    site.scheduler.cleanup(run, force=True)
    other = _opened(site)
    site.add(other, "x")
    site.scheduler.cancel_run(other)
    commit(site.repository, "more.txt", "more\n")


def _hold_council(site: Site) -> None:
    """One with a reply and a tally."""
    asked = check_asked(CouncilSpec(brief=BRIEF, reviewers=("ada", "bob")))
    answer = site.scheduler.start_council(asked)
    ada = site.office.bus("ada")
    claimed = ada.claim()
    ada.done(claimed.thread.id, str(claimed.lease.token), body="I decline.")
    site.scheduler.tally_of(site.scheduler.council(answer.data["council"]["id"]))


def as_of(source: Path, target: Path, version: int) -> None:
    """A database of an older schema at `target`, with what is in the newest one at `source`."""
    with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as old:
        old.execute("PRAGMA journal_mode=WAL").fetchall()
        old.execute("ATTACH ? AS newest", (str(source),))
        old.execute("BEGIN IMMEDIATE")
        migrate(old, stop_before=f"{version + 1:04d}")
        tables = [row[0] for row in old.execute(_TABLES)]
        for table in tables:
            names = ", ".join(_columns(old, "main", table))
            known = _WHAT_IT_KNEW.get((table, version), "")
            old.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM newest.{table} {known}")
        old.execute("DELETE FROM sqlite_sequence")
        old.execute(
            "INSERT INTO sqlite_sequence SELECT * FROM newest.sqlite_sequence"
            " WHERE name IN (SELECT name FROM sqlite_schema)"
        )
        old.execute("COMMIT")
    target.chmod(0o600)


# What a release of that schema could not have written.
_WHAT_IT_KNEW = {("intent", 2): "WHERE kind IN ('dispatch', 'integrate', 'cleanup')"}

_TABLES = (
    "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%'"
    " ESCAPE '\\' AND name NOT LIKE '\\_%' ESCAPE '\\'"
)


def _columns(connection: sqlite3.Connection, schema: str, table: str) -> list[str]:
    rows = connection.execute(f"SELECT name FROM pragma_table_info(?, '{schema}')", (table,))
    return [row[0] for row in rows]
