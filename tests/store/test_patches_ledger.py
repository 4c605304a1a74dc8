"""The ledger of patches: written once, told by events, and a state that follows."""

import json
from collections.abc import Iterator

import pytest

from inbox_orch.orch.leader import care_rows, event_folding
from inbox_orch.orch.patches import ledger, states
from inbox_orch.orch.patches import rows as patches
from inbox_orch.orch.patches.ledger import New, Word
from inbox_orch.orch.patches.model import Patch, Summary
from inbox_orch.orch.patches.policy import Layer, Policy
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store import events
from support.buses import refused
from support.runs import Site

TREES = [f"{number:040x}" for number in range(1, 9)]
SUMMARY = Summary(1, 2, 3, 40, ("a.py",))


class Book:
    """The ledger of one attempt at task `a`."""

    def __init__(self, site: Site) -> None:
        self.site, self.run = site, site.open_run()
        site.add(self.run, "a")
        site.dispatch(self.run)
        self.attempt = site.attempts(self.run, "a")[-1]

    def hand_in(self, number: int = 1, **options) -> Patch:
        values = {"author": "w1", "by": "w1", **options}
        with self.site.scheduler.database.transaction() as tx:
            return ledger.hand_in(
                tx,
                New(
                    run_id=self.run.id,
                    attempt_id=self.attempt.id,
                    way="commits",
                    base=TREES[0],
                    base_tree=TREES[0],
                    tree=TREES[number],
                    head=TREES[number],
                    summary=SUMMARY,
                    content=TREES[number],
                    **values,
                ),
            )

    def say(self, patch: Patch, *words: str, **options) -> None:
        desk = self.site.scheduler.desk
        with self.site.scheduler.database.transaction() as tx:
            for said in words:
                ledger.say(tx, desk, self.run, patch, Word(*said.split(), **options))

    def state(self, patch: Patch) -> str:
        attempt = self.site.attempts(self.run, "a")[-1]
        with self.site.scheduler.database.snapshot() as snapshot:
            return ledger.state(snapshot, patch, attempt)

    def told(self) -> list[events.Event]:
        with self.site.scheduler.database.snapshot() as snapshot:
            matching = events.Matching(run_id=self.run.id)
            found = events.after(snapshot, 0, limit=1000, matching=matching)
        return [event for event in found if event.kind.startswith("patch_")]

    def disagreements(self) -> list[str]:
        with self.site.scheduler.database.snapshot() as snapshot:
            folded = event_folding.fold(care_rows.facts(snapshot))
            return event_folding.differences(folded, care_rows.stored(snapshot))


@pytest.fixture
def book(site: Site) -> Iterator[Book]:
    book = Book(site)
    yield book
    assert book.disagreements() == []


def test_what_is_handed_in_again_is_the_patch_that_is_there(book: Book):
    first = book.hand_in(1)

    assert book.hand_in(1) == first
    assert (book.hand_in(2).number, first.number) == (2, 1)
    assert [event.kind for event in book.told()] == ["patch_created", "patch_created"]


def test_what_replaces_a_refused_patch_is_another_one(book: Book):
    refused_one = book.hand_in(1)
    other = book.hand_in(1, replaces=refused_one.id)

    assert (other.tree, other.number) == (refused_one.tree, 2)
    assert book.hand_in(1, replaces=refused_one.id) == other
    assert book.told()[-1].data["replaces"] == refused_one.id


def test_the_state_follows_from_what_was_said(book: Book):
    patch = book.hand_in()
    book.say(patch, "policy allowed", "apply applied", "gates passed", "acceptance accepted")

    assert book.state(patch) == "committed"
    assert [(e.kind, e.data["from"], e.data["to"]) for e in book.told()] == [
        ("patch_created", None, "created"),
        ("patch_judged", "created", "validated"),
        ("patch_applied", "validated", "applied"),
        ("patch_verified", "applied", "verified"),
        ("patch_committed", "verified", "committed"),
    ]
    assert {e.data["name"] for e in book.told()} == {"a/1/1"}


def test_what_does_not_belong_to_the_state_is_not_said(book: Book):
    patch = book.hand_in()
    with pytest.raises(AssertionError):
        book.say(patch, "acceptance accepted")

    assert book.state(patch) == "created"


def test_what_was_under_way_when_its_attempt_ended_is_dropped(book: Book):
    under_way, refused_one = book.hand_in(1), book.hand_in(2)
    book.say(under_way, "policy allowed")
    book.say(refused_one, "policy denied", reason="max_lines: 400 lines are more than 300")
    book.site.scheduler.cancel(book.run, ["a"])

    assert [book.state(under_way), book.state(refused_one)] == ["dropped", "quarantined"]


def test_the_policy_that_it_was_judged_by_is_kept_once(book: Book):
    policy = Policy((Layer("run", {"max_lines": 300}),))
    first, second = book.hand_in(1), book.hand_in(2)
    book.say(first, "policy allowed", policy=policy)
    book.say(second, "policy denied", reason="no", policy=policy)

    with book.site.scheduler.database.snapshot() as snapshot:
        said = patches.entries_of_all(snapshot, [first.id, second.id])
        text = patches.policy_text(snapshot, policy.digest)
    assert {entry.policy for each in said.values() for entry in each} == {policy.digest}
    assert json.loads(text) == [{"name": "run", "given": {"max_lines": 300}}]


def test_a_patch_is_found_by_its_name_its_id_and_the_beginning_of_that(book: Book):
    patch = book.hand_in()
    with book.site.scheduler.database.snapshot() as snapshot:
        for name in ("a/1/1", patch.id, patch.id.lower(), patch.id[:20]):
            assert ledger.named(snapshot, book.run, name) == patch
        for name in ("a/1/2", "a/2/1", "b/1/1", "a/1", "a/x/1", "a/1/1/1", "", "A" * 26):
            with refused("not_found"):
                ledger.named(snapshot, book.run, name)


def test_the_beginning_of_several_ids_names_none(book: Book):
    first, second = book.hand_in(1), book.hand_in(2)
    both = first.id[:6]
    assert second.id.startswith(both)
    with book.site.scheduler.database.snapshot() as snapshot, refused("usage"):
        ledger.named(snapshot, book.run, both)


def test_a_waiver_counts_until_another_patch_uses_it_up(book: Book):
    patch = book.hand_in(3)
    book.say(patch, "policy denied", reason="no")
    book.say(patch, "waiver given", by="boss", facts={"rule": "max_lines", "paths": ["a.py"]})
    book.say(patch, "waiver given", by="boss", facts={"rule": "binary"})
    assert open_waivers(book, TREES[3]) == [("max_lines", ("a.py",)), ("binary", ())]
    assert open_waivers(book, TREES[4]) == []

    book.say(patch, "waiver used")
    assert open_waivers(book, TREES[3]) == []
    assert book.state(patch) == "quarantined"


def open_waivers(book: Book, tree: str) -> list[tuple[str, tuple[str, ...]]]:
    with book.site.scheduler.database.snapshot() as snapshot:
        found = ledger.waivers_for(snapshot, book.attempt.task_id, book.attempt.id, tree)
    return [(waiver.rule, waiver.paths) for waiver in found]


@pytest.mark.parametrize("sql", ["UPDATE patch SET number = 9", "DELETE FROM patch_entry"])
def test_nothing_that_was_written_down_can_be_changed(book: Book, sql: str):
    patch = book.hand_in()
    book.say(patch, "policy allowed")
    database = book.site.scheduler.database
    with pytest.raises(InboxOrchError, match="written once"), database.transaction() as tx:
        tx.run(sql)


@pytest.mark.parametrize(
    "kind, changes, found",
    [
        ("patch_judged", {"to": "queued"}, 2),
        ("patch_judged", {"by": "somebody"}, 1),
        ("patch_judged", {"from": "validated"}, 1),
        ("patch_judged", None, 2),
        ("patch_created", None, 1),
    ],
)
def test_events_that_say_something_else_are_noticed(
    book: Book, kind: str, changes: dict | None, found: int
):
    book.say(book.hand_in(), "policy denied", reason="no")
    with book.site.scheduler.database.snapshot() as snapshot:
        facts = list(care_rows.facts(snapshot))
        stored = care_rows.stored(snapshot)
    told = [
        fact if fact.kind != kind else fact._replace(data={**fact.data, **(changes or {})})
        for fact in facts
        if fact.kind != kind or changes is not None
    ]
    said = event_folding.differences(event_folding.fold(told), stored)

    assert len(said) == found, said


def test_every_state_can_be_reached_and_every_word_is_of_one():
    reached = {"created"} | {said.target for said in states.ENTRIES.values() if said.target}

    assert sorted(reached) == sorted(states.STATES)
    assert {source for said in states.ENTRIES.values() for source in said.sources} <= reached
