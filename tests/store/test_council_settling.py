"""What a leader settles, and the second round: added to, replayed, and never a vote more."""

import json

import pytest

from inbox_orch.orch.council import rows as councils
from inbox_orch.orch.council import take_in, views
from inbox_orch.orch.council.count import rendered
from inbox_orch.orch.council.settling import Settled
from inbox_orch.orch.council.tally import canonical
from inbox_orch.shared.errors import InboxOrchError
from support.buses import refused
from support.chambers import BACKUP, QUEUE, REVIEWERS, WAL, Chamber, recommendation

JOURNAL = recommendation("journal", "Write ahead in a log", "wal", "recovery", "redo log", "fsync")
AGAINST = recommendation(
    "files", "Keep the JSON file", "wal", "sqlite", "journal mode", stance="keep"
)


@pytest.fixture
def chamber(tmp_path):
    chamber = Chamber(tmp_path)
    yield chamber
    chamber.close()


@pytest.fixture
def run(chamber):
    """Closed: ada and bob want WAL, eve something near and the opposite."""
    run = chamber.start()
    chamber.answer(run, "ada", WAL, BACKUP)
    chamber.answer(run, "bob", WAL, QUEUE)
    chamber.answer(run, "eve", JOURNAL, AGAINST)
    take_in.refresh(chamber.scheduler.desk, run)
    return run


def groups(chamber, run, **options):
    return {g.id: g for g in chamber.tally(run, **options).tally.groups}


def merge(*items: str, forced: bool = False) -> Settled:
    return Settled("merge", items, "one mechanism", forced)


def test_a_merge_moves_items_and_says_what_it_was_before(chamber, run):
    before = groups(chamber, run)
    assert before["ada/wal"].bucket == "majority"

    done = chamber.scheduler.settle_groups(run, [merge("ada/wal", "eve/journal")])

    after = groups(chamber, run)
    assert after["ada/wal"].bucket == "consensus"
    assert after["ada/wal"].automatic_bucket == "majority"
    assert after["ada/wal"].raised_by == ("ada", "bob", "eve")
    assert [g["id"] for g in done["groups"]] == ["ada/wal"]
    assert groups(chamber, run, overrides=False) == before
    chamber.verified()


def test_what_was_settled_is_replayed_to_the_same_bytes_and_old_revisions_stay(chamber, run):
    first = canonical(chamber.tally(run).tally.as_json())
    chamber.scheduler.settle_groups(run, [merge("ada/wal", "eve/journal")])
    chamber.scheduler.settle_groups(run, [Settled("note", ("ada/wal",), "planned")])

    tallies = {canonical(chamber.tally(run).tally.as_json()) for _ in range(3)}

    assert len(tallies) == 1
    assert canonical(chamber.tally(run, revision=1).tally.as_json()) == first
    assert chamber.tally(run).view.revision == 3


def test_a_split_is_the_last_word_on_a_pair(chamber, run):
    chamber.scheduler.settle_groups(run, [Settled("split", ("ada/wal", "bob/wal"), "two")])
    assert groups(chamber, run)["bob/wal"].bucket == "minority"

    chamber.scheduler.settle_groups(run, [merge("bob/wal", "ada/wal")])
    assert groups(chamber, run)["ada/wal"].bucket == "majority"


def test_the_same_again_is_already(chamber, run):
    assert not chamber.scheduler.settle_groups(run, [merge("ada/wal", "eve/journal")])["already"]
    again = chamber.scheduler.settle_groups(run, [merge("eve/journal", "ada/wal")])

    assert again["already"] and again["overrides"] == []
    assert chamber.tally(run).view.revision == 2


def test_what_is_opposed_needs_force_and_stays_contested(chamber, run):
    with refused("opposed") as failure:
        chamber.scheduler.settle_groups(run, [merge("ada/wal", "eve/files")])
    assert "--force" in failure.value.hint
    assert chamber.tally(run).tally.overrides == ()

    chamber.scheduler.settle_groups(run, [merge("ada/wal", "eve/files", forced=True)])

    together = groups(chamber, run)["ada/wal"]
    assert together.contested
    assert "eve/files" in {item.id for item in together.members}


def test_what_somebody_has_split_is_not_forced_together(chamber, run):
    chamber.scheduler.settle_groups(run, [Settled("split", ("bob/wal", "eve/journal"), "two")])
    for forced in (False, True):
        with refused("invalid_state") as failure:
            chamber.scheduler.settle_groups(run, [merge("ada/wal", "eve/journal", forced=forced)])
        assert "kept apart" in failure.value.message

    chamber.scheduler.settle_groups(run, [merge("bob/wal", "eve/journal")])
    assert groups(chamber, run)["ada/wal"].bucket == "consensus"


def test_a_dismissed_group_is_marked_and_hidden_nowhere(chamber, run):
    chamber.scheduler.settle_groups(run, [Settled("dismiss", ("ada/backup",), "done since")])

    group = groups(chamber, run)["ada/backup"]
    assert group.dismissed and group.notes == ("done since",)
    assert group.bucket == "minority"


@pytest.mark.parametrize("kind", ["merge", "split", "dismiss", "note"])
def test_an_item_that_there_is_not_is_named_with_a_near_one(chamber, run, kind):
    items = ("ada/wall", "bob/wal")[: 2 if kind in ("merge", "split") else 1]
    with refused("not_found") as failure:
        chamber.scheduler.settle_groups(run, [Settled(kind, items, "so")])
    assert "ada/wal" in failure.value.hint


@pytest.mark.parametrize("text", ["", " \n", "x" * 5000, "\x1b[31mred"])
def test_a_reason_that_cannot_be_shown_is_refused(chamber, run, text):
    with refused("usage"):
        chamber.scheduler.settle_groups(run, [Settled("note", ("ada/wal",), text)])


def test_nothing_is_settled_while_the_round_is_open(chamber):
    run = chamber.start()
    chamber.answer(run, "ada")
    with refused("invalid_state"):
        chamber.scheduler.settle_groups(run, [Settled("note", ("ada/wal",), "so")])


def test_many_are_settled_together_or_not_at_all(chamber, run):
    wanted = [merge("ada/wal", "eve/journal"), merge("ada/backup", "eve/files")]
    with refused("opposed"):
        chamber.scheduler.settle_groups(
            run, [*wanted, merge("ada/wal", "eve/files"), merge("bob/wal", "ada/wal")]
        )
    assert chamber.tally(run).tally.overrides == ()
    assert chamber.tally(run).view.revision == 1


def test_what_was_settled_can_neither_be_changed_nor_removed(chamber, run):
    chamber.scheduler.settle_groups(run, [merge("ada/wal", "eve/journal")])
    for statement in ("UPDATE council_override SET text = 'x'", "DELETE FROM council_override"):
        with (
            pytest.raises(InboxOrchError, match="never"),
            chamber.scheduler.database.transaction() as tx,
        ):
            tx.run(statement)


def test_what_was_decided_is_not_suggested_again(chamber, run):
    pairs = {tuple(p["items"]) for p in chamber.scheduler.suggestions(run)["items"]}
    assert {("ada/wal", "eve/journal"), ("bob/wal", "eve/journal")} <= pairs

    decided = [Settled("split", pair, "two subjects") for pair in sorted(pairs)]
    chamber.scheduler.settle_groups(run, decided)
    assert chamber.scheduler.suggestions(run)["items"] == []


def test_a_decision_record_names_what_speaks_against_a_group_once(chamber, run):
    text = rendered(chamber.tally(run), "madr").decode()

    assert text.count("* Bad, because Keep the JSON file") == 1


# -- the second round ------------------------------------------------------------------------


def vote(chamber, run, reviewer: str, answers: dict[str, str], **extra) -> None:
    """Answer the ballot: titles to votes."""
    with chamber.scheduler.database.snapshot() as snapshot:
        seats = [s for s in councils.seats(snapshot, run.id) if s.round == 2]
        council = councils.get(snapshot, run.id)
    labels = json.loads(next(s.labels for s in seats if s.reviewer == reviewer))
    titles = {g.id: g.title for g in chamber.tally(run).tally.groups}
    value = {
        "schema": "orch.council.ballot/1",
        "council_id": run.id,
        "round": 2,
        "brief_sha256": council.brief_sha256,
        "votes": [
            {"ref": label, "vote": answers[titles[item]], "why": "", **extra.get(label, {})}
            for label, item in labels.items()
            if titles[item] in answers
        ],
    }
    chamber.hand_in(reviewer, payload=json.dumps(value))


def test_a_ballot_shows_each_reviewer_what_it_did_not_raise_without_names(chamber, run):
    chamber.scheduler.open_ballot(run, deadline_seconds=600)

    text = chamber.asked("ada")

    assert "Queue writers at a lock file" in text and "Write ahead in a log" in text
    listed = text.split("=====")[2]
    assert "Enable WAL mode" not in listed and "Back the file up online" not in listed
    assert "bob/" not in text and "eve/" not in text


def test_endorsements_stand_apart_from_what_was_raised(chamber, run):
    chamber.scheduler.open_ballot(run, deadline_seconds=600)
    vote(chamber, run, "ada", {"Queue writers at a lock file": "agree"})
    vote(chamber, run, "bob", {"Back the file up online": "disagree"})
    vote(chamber, run, "eve", {"Queue writers at a lock file": "agree"})

    found = groups(chamber, run)

    assert found["bob/lock"].raised_by == ("bob",)
    assert found["bob/lock"].endorsed_by == ("ada", "eve")
    assert (found["bob/lock"].bucket, found["bob/lock"].bucket_after_ballot) == (
        "minority",
        "consensus",
    )
    assert found["ada/backup"].opposed_by == ("bob",)
    chamber.verified()


def test_who_does_not_vote_keeps_what_it_raised(chamber, run):
    before = groups(chamber, run)
    chamber.scheduler.open_ballot(run, deadline_seconds=60)
    vote(chamber, run, "ada", {"Queue writers at a lock file": "agree"})
    chamber.clock.advance(61)

    after = groups(chamber, run)

    assert {k: g.bucket for k, g in after.items()} == {k: g.bucket for k, g in before.items()}
    assert after["bob/lock"].carried == ("bob",)


def test_votes_do_not_count_while_the_ballot_is_open(chamber, run):
    chamber.scheduler.open_ballot(run, deadline_seconds=600)
    vote(chamber, run, "ada", {"Queue writers at a lock file": "agree"})

    assert groups(chamber, run)["bob/lock"].endorsed_by == ()
    assert chamber.tally(run).view.revision == 1


def test_a_ballot_that_cannot_be_read_is_sent_back_once(chamber, run):
    chamber.scheduler.open_ballot(run, deadline_seconds=600)
    chamber.hand_in("ada", body='{"votes": [')
    take_in.refresh(chamber.scheduler.desk, run)

    assert "could not be read" in chamber.asked("ada")
    vote(chamber, run, "ada", {"Queue writers at a lock file": "agree"})
    take_in.refresh(chamber.scheduler.desk, run)
    states = {
        s.seat.reviewer: s.stands.state for s in views.view(chamber.scheduler.desk, run).seats_of(2)
    }
    assert states["ada"] == "valid"


def test_there_is_one_ballot_and_only_after_the_round(chamber, run):
    chamber.scheduler.open_ballot(run, deadline_seconds=600)
    with refused("invalid_state"):
        chamber.scheduler.open_ballot(run, deadline_seconds=600)

    early = chamber.start()
    with refused("invalid_state"):
        chamber.scheduler.open_ballot(early, deadline_seconds=600)


def test_without_anything_to_vote_on_there_is_no_ballot(chamber):
    run = chamber.start()
    for reviewer in REVIEWERS:
        chamber.answer(run, reviewer, WAL)
    with refused("invalid_state"):
        chamber.scheduler.open_ballot(run, deadline_seconds=60)
    assert len(views.view(chamber.scheduler.desk, run).rounds) == 1
