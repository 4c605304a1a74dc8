"""`doctor`: the state of the database file and of what lies beside it, check by check.

Reads as of one commit and changes nothing, unless it is asked to repair what needs no guessing.
No file of SQLite's is ever opened here: they are looked at by name only.
"""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from inbox_orch.migrations import SCHEMA_VERSION
from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.store import events
from inbox_orch.shared.store.checks import MOST_ITEMS, OK, PROBLEM, WARNING, Check, listed
from inbox_orch.shared.store.engine import Admin, Session
from inbox_orch.shared.store.findings import Tally
from inbox_orch.shared.store.layout import Layout

from ..store import care
from . import verifying
from .beside import files
from .desk import Desk


class Examined(NamedTuple):
    """What the doctor says. `newest_event` tells as of which commit."""

    path: str
    id: str
    verified: bool
    newest_event: int
    checks: tuple[Check, ...]

    @property
    def problems(self) -> int:
        """How many checks found a problem; with none the database is clean."""
        return sum(check.status == PROBLEM for check in self.checks)

    def as_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "id": self.id,
            "verified": self.verified,
            "newest_event": str(self.newest_event),
            "items": [check.as_json() for check in self.checks],
            "truncated": False,
            "next_cursor": None,
            "problems": self.problems,
            "warnings": sum(check.status == WARNING for check in self.checks),
        }


def examine(desk: Desk, *, verify: bool = False, fix: bool = False) -> Examined:
    """Check the database and what lies beside it, as of one commit, in the order that is shown.

    `verify` also checks every index and every text, folds the event log from the start and
    compares it with the tables, and compares bodies and files with their digests. `fix` repairs
    what needs no guessing; nothing else is written. Problems are in the result, not raised.
    Errors: `usage` (`fix` inside a transaction); `corrupt`: the file itself is damaged;
    `details.findings` says how, and the hint how to read out what can be read.
    """
    layout, admin = desk.database.layout, desk.database.admin
    if fix and desk.database.in_transaction:
        raise usage("repairs cannot be made inside a transaction")
    with recovery_hint(layout):
        with desk.database.snapshot(as_it_is=True) as snapshot:
            newest = events.latest(snapshot)
            structure = list(_structure(admin, snapshot, layout, verify))
            checks = [admin.release(), *structure]
            checks += _standing(desk, snapshot)
            if verify:
                readable = all(check.status == OK for check in structure)
                checks += _verification(admin, snapshot, readable)
            stored = list(care.contents(snapshot, desk.database.schema_version))
        checks += files(desk, stored, verify=verify, fix=fix)
    return Examined(layout.database, desk.database.id, verify, newest, tuple(checks))


# -- the file itself -----------------------------------------------------------------------


def _structure(admin: Admin, tx: Session, layout: Layout, whole: bool) -> Iterator[Check]:
    found = admin.integrity(tx, whole=whole)
    if found.damage:
        raise InboxOrchError(
            "corrupt",
            f"{layout.database} is damaged: {found.damage[0]}",
            hint="`inbox export` reads out what it can; `inbox backup` made the copy to go back to",
            details={"path": layout.database, "findings": list(found.damage)},
        )
    extent = "the whole file" if whole else "the file, without comparing indexes with tables"
    yield Check("integrity", OK, f"{found.by} checked {extent}")
    yield _unreadable(admin, tx, found.tables, whole)
    references = admin.broken_references(tx, MOST_ITEMS)
    yield listed("foreign_keys", PROBLEM, references, "every reference leads to a row")
    yield _schema(admin, tx)


def _unreadable(admin: Admin, tx: Session, tables: Iterable[str], whole: bool) -> Check:
    with admin.lenient(tx):
        tallies = [admin.broken_json(tx, care.JSON_COLUMNS, MOST_ITEMS)]
        tallies += [admin.breaking_rules(tx, table, MOST_ITEMS) for table in tables]
        if whole:
            tallies.append(admin.undecodable(tx, MOST_ITEMS))
    items = tuple(item for tally in tallies for item in tally.items)
    found = Tally(items[:MOST_ITEMS], sum(tally.total for tally in tallies))
    fine = "every row keeps the rules" + (
        ", and its text can be read" if whole else "; --verify also reads the text of each"
    )
    return listed("rows", PROBLEM, found, fine)


def _schema(admin: Admin, tx: Session) -> Check:
    """The version, and whether every table, index and trigger is as the steps make it."""
    # Loaded here, since every command of the scheduler loads this module, and none needs it.
    version = admin.schema_version(tx)
    expected, actual = admin.fresh_schema(version), admin.schema_objects(tx)
    differing = [
        f"{kind} {name}: {_how_it_differs(expected.get((kind, name)), actual.get((kind, name)))}"
        for kind, name in sorted(expected.keys() | actual.keys())
        if expected.get((kind, name)) != actual.get((kind, name))
    ]
    found = Tally(tuple(differing[:MOST_ITEMS]), len(differing))
    good = f"version {version}, as this release makes it"
    if version < SCHEMA_VERSION:
        good = (
            f"version {version}, as an older release makes it; the first command that writes "
            f"brings it to {SCHEMA_VERSION}, and `inbox backup FILE` keeps it as it is"
        )
    return listed("schema", PROBLEM, found, good)


def _how_it_differs(expected: str | None, actual: str | None) -> str:
    if actual is None:
        return "is missing"
    return "does not belong here" if expected is None else "is defined differently"


# -- what is unfinished --------------------------------------------------------------------


def _standing(desk: Desk, tx: Session) -> Iterator[Check]:
    now = care.standing(tx, desk.database.now())
    text = f"{now.live_leases} live"
    if now.expired_leases:
        text += (
            f", {now.expired_leases} of them expired and not noticed yet"
            f" ({now.expired_without_renewal} never renewed); the next claim or wait offers"
            " those threads again"
        )
    yield Check("leases", WARNING if now.expired_leases else OK, text, total=now.expired_leases)
    text = f"{now.delayed} threads wait for their time"
    if now.delayed_due:
        text += f"; for {now.delayed_due} it has come, and the next claim takes them in"
    yield Check("delayed", OK, text, total=now.delayed)
    overdue = now.overdue_questions
    text = f"{overdue} past their deadline and not noticed yet" if overdue else "none is overdue"
    yield Check("questions", WARNING if overdue else OK, text, total=overdue)


def _verification(admin: Admin, tx: Session, readable: bool) -> Iterator[Check]:
    with contextlib.nullcontext() if readable else admin.lenient(tx):
        findings = verifying.verify(tx, MOST_ITEMS)
    counted = f"{findings.events} events of {findings.threads} threads"
    good = {
        "events": f"{counted} follow the table of transitions",
        "threads": "state, epoch, deliveries and holder are what the events say",
        "leases": "owner, epoch and end are what the events say",
        "messages": "bodies match their digests and lengths",
        "artifacts": "names, digests and lengths are what the events say",
    }
    for topic in verifying.TOPICS:
        yield listed(f"log_{topic}", PROBLEM, findings.of(topic), good[topic])


# -- when the file is damaged -----------------------------------------------------------------


@contextlib.contextmanager
def recovery_hint(layout: Layout | None) -> Iterator[None]:
    """Say of a damaged file how everything readable is got out of it."""
    try:
        yield
    except InboxOrchError as error:
        if error.code == "corrupt":
            path = layout.database if layout is not None else str(error.details.get("path"))
            error.hint = _how_to_recover(path)
            error.details.setdefault("findings", [error.message])
        raise


def _how_to_recover(path: str) -> str:
    return (
        "nothing was written. Stop what uses it, leave the folder as it is, and read out what"
        f" can be read: sqlite3 '{path}' .recover > recovered.sql (.dump where that sqlite3 has"
        " no .recover); then: sqlite3 recovered.db < recovered.sql; sqlite3 recovered.db"
        " 'PRAGMA journal_mode=WAL'; inbox doctor --verify --db recovered.db. Never copy the"
        " file itself with cp: its newest changes lie in the -wal beside it"
    )
