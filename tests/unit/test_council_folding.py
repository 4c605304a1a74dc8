"""Folding the events of a council finds what does not agree."""

from inbox_orch.orch.leader.event_folding import Fact, Folded, differences, fold

SHA = "ab" * 32


def fact(seq: int, kind: str, **data: object) -> Fact:
    return Fact(seq, kind, "R", "T", "A" if kind == "reply_recorded" else None, data)


HISTORY = [
    fact(1, "round_opened", round=1),
    fact(2, "reply_recorded", state="valid", sha256=SHA),
    fact(3, "round_closed", round=1),
    fact(4, "tally_revised", revision=1),
    fact(5, "tally_revised", revision=2),
    fact(6, "override_recorded", number=1, override="merge", items=["ada/a", "bob/b"]),
    fact(7, "report_stored", name="report.md", sha256=SHA, revision=2),
]
STORED = Folded(
    {
        "run": {},
        "task": {},
        "attempt": {},
        "round": {"R/1": "closed"},
        "reply": {"A": f"valid {SHA}"},
        "override": {"R/1": "merge ada/a bob/b"},
        "revision": {"R": "2"},
        "report": {f"R/report.md/{SHA}": "2"},
    },
    set(),
    [],
)


def without(seq: int) -> list[str]:
    return differences(fold(f for f in HISTORY if f.seq != seq), STORED)


def test_a_whole_history_gives_what_is_stored():
    assert differences(fold(HISTORY), STORED) == []


def test_a_missing_event_of_each_kind_is_found():
    assert without(2) == [f"reply A is valid {SHA}, the events say nothing of it"]
    assert without(3) == ["round R/1 is closed, the events say open"]
    assert without(4) == ["event 5: revision R becomes 2, but it was not there"]
    assert without(5) == ["revision R is 2, the events say 1"]
    assert without(6) == ["override R/1 is merge ada/a bob/b, the events say nothing of it"]
    assert len(without(7)) == 1


def test_a_second_reply_of_one_attempt_or_a_second_end_of_a_round_is_found():
    for seq in (2, 3):
        again = next(f for f in HISTORY if f.seq == seq)._replace(seq=8)
        found = fold([*HISTORY, again]).contradictions
        assert len(found) == 1 and found[0].startswith("event 8")
