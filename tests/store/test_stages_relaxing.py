"""A decision about refused work is answered with `relax`: one rule does not count, for this patch,
and it comes in as it was handed in."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from inbox_orch.orch.git import bringing
from inbox_orch.orch.leader import patches as deeds
from inbox_orch.orch.stages import decide
from inbox_orch.orch.views import patches as views
from inbox_orch.shared.errors import InboxOrchError
from support.patches import Staged, disagreements
from support.runs import Site, commit, git
from support.stages import agent, gates

LONG = "".join(f"{n}\n" for n in range(9))
WRITE = agent("write", on_success="look")
LOOK = gates("look", run="test -s a.txt")


@pytest.fixture
def staged(site: Site):
    yield Staged(site, None)
    assert disagreements(site) == []
    assert site.scheduler.doctor(verify=True).problems == 0


@contextmanager
def refusing(code: str, words: str) -> Iterator[None]:
    with pytest.raises(InboxOrchError, match=words) as raised:
        yield
    assert raised.value.code == code


def asked(staged: Staged) -> decide.Decision:
    with staged.site.scheduler.database.snapshot() as snapshot:
        found = decide.open_in(snapshot, staged.attempt)
    assert found is not None
    return found


def words_of(staged: Staged) -> list[str | None]:
    """Of each entry about the refused patch, who has said it and why."""
    first = views.listed(staged.site.scheduler.desk, staged.run)[0]
    return [f"{e.kind} {e.outcome} {e.by} {e.reason}" for e in first.entries[1:]]


def test_the_refused_patch_comes_in_as_it_is_and_no_agent_is_sent(staged: Staged):
    staged.open(WRITE, LOOK)
    staged.work(a_txt=LONG, body="As a table.")
    assert asked(staged).answers == (
        *("continue", "change_role", "accept", "split", "relax", "abandon"),
    )
    assert asked(staged).rules == ("max_lines",)
    assert not (staged.worktree / "a.txt").exists()
    told = staged.decide("relax", "a generated table")

    assert (told["rule"], told["left"]) == ("max_lines", [])
    ways = ["failed", "relax", "succeeded", "succeeded"]
    assert staged.way() == list(zip(["write", "decision", "write", "look"], ways, strict=True))
    assert [v.kind for v in staged.visits()[1:]] == ["agent", "decision", "action", "gates"]
    assert staged.state == "succeeded"
    assert staged.patches() == [("harvest", "quarantined"), ("harvest", "committed")]
    assert words_of(staged) == ["waiver given boss a generated table", "waiver used leader None"]
    head = str(staged.attempt.head_commit)
    assert git(staged.site.repository, "log", "-1", "--format=%an|%s|%b", head) == (
        "w1|Do a|As a table."
    )
    assert git(staged.site.repository, "show", f"{head}:a.txt") == LONG.strip()


def test_of_several_rules_one_is_named_at_a_time(staged: Staged):
    staged.open(WRITE, LOOK)
    staged.work(a_txt=LONG, no_txt="no\n")
    with refusing("usage", "breaks several rules: forbid_paths, max_lines"):
        staged.decide("relax", "so")
    with refusing("usage", "not refused for 'binary'"):
        staged.decide("relax", "so", rule="binary")
    told = staged.decide("relax", "so", rule="max_lines")

    assert told["left"] == ["forbid_paths"]
    assert staged.way()[-2:] == [("decision", "relax"), ("decision", "live")]
    assert asked(staged).rules == ("forbid_paths",)
    assert "its patch still breaks forbid_paths" in asked(staged).sentence
    staged.decide("relax", "so, too")
    assert staged.state == "succeeded"
    assert staged.changed() == ["a.txt", "no.txt"]


def test_whoever_wrote_it_does_not_release_it(staged: Staged):
    staged.open(WRITE, LOOK)
    staged.work("w1", a_txt=LONG)
    with refusing("policy_denied", "w1 has written patch a/1/1, and cannot release it"):
        staged.decide("relax", "mine", by="w1")

    assert staged.way()[-1] == ("decision", "live") and words_of(staged) == []


@pytest.mark.parametrize("given, message", [
    (("relax", ""), "relax needs a reason"),
    (("continue", "so", "boss", "max_lines"), "a rule goes with relax alone"),
])  # fmt: skip
def test_what_is_missing_or_too_much_is_told_and_changes_nothing(staged: Staged, given, message):
    staged.open(WRITE, LOOK)
    staged.work(a_txt=LONG)
    with refusing("usage", message):
        staged.decide(*given)
    assert staged.way()[-1] == ("decision", "live") and words_of(staged) == []


def test_it_is_offered_only_where_there_is_something_to_release(staged: Staged):
    staged.open(WRITE, LOOK)
    staged.fail("no idea")
    assert "relax" not in asked(staged).answers
    with refusing("usage", "is no answer to this decision"):
        staged.decide("relax", "so")
    staged.decide("continue")
    (staged.worktree / "out").symlink_to("/etc/passwd")
    staged.work(a_txt=LONG)
    assert "relax" not in asked(staged).answers  # what holds whatever a policy says


def test_when_its_visits_are_used_up_it_is_offered_too(staged: Staged):
    staged.open(agent("write", on_failure="write", on_success="look", max_visits=1), LOOK)
    staged.work(a_txt=LONG)
    assert asked(staged).cause == "exhausted"
    staged.decide("relax", "so")

    assert staged.state == "succeeded"


def test_a_loop_after_it_has_its_visits_anew(staged: Staged):
    mend = agent("mend", on_success="look", max_visits=1)
    staged.open(WRITE, gates("look", run="grep -q b a.txt", on_failure="mend"), mend)
    staged.work(a_txt=LONG)
    staged.decide("relax", "so")

    assert staged.way()[-1] == ("mend", "live")
    assert "What was decided: relax max_lines. so" in staged.text()


def test_what_somebody_has_left_there_meanwhile_is_kept_beside(staged: Staged):
    staged.open(WRITE, LOOK)
    staged.work(a_txt=LONG)
    (staged.worktree / "a.txt").write_text("by hand\n")
    staged.decide("relax", "so")

    assert staged.state == "succeeded"
    repository = staged.site.repository
    chain = git(repository, "rev-list", f"refs/orch/attempts/{staged.attempt.id}").split()
    kept = [git(repository, "ls-tree", "-r", "--name-only", each) for each in chain]
    hands = [c for c, names in zip(chain, kept, strict=True) if "a.txt" in names.split()]
    assert "by hand" in [git(repository, "show", f"{each}:a.txt") for each in hands]
    assert git(repository, "show", f"{staged.attempt.head_commit}:a.txt") == LONG.strip()


class Died(BaseException):
    """As if the leader were killed."""


def test_a_leader_that_dies_in_the_middle_leaves_it_to_the_next(staged: Staged, monkeypatch):
    staged.open(WRITE, LOOK)
    staged.work(a_txt=LONG)
    genuine = bringing.bring

    def dies(*given):
        genuine(*given)
        raise Died

    monkeypatch.setattr(bringing, "bring", dies)
    with pytest.raises(Died):
        staged.decide("relax", "so")
    monkeypatch.setattr(bringing, "bring", genuine)
    staged.lead()

    assert [v.kind for v in staged.visits()[1:]] == ["agent", "decision", "action", "gates"]
    assert staged.state == "succeeded"


def test_what_was_released_before_is_only_taken_up(staged: Staged):
    staged.open(WRITE, LOOK)
    staged.work(a_txt=LONG, no_txt="no\n")
    patch = views.listed(staged.site.scheduler.desk, staged.run)[0].patch
    boss = staged.site.leader("boss").desk
    for rule in ("max_lines", "forbid_paths"):
        said = deeds.release(boss, staged.run, patch, rule, "before")
    assert said.next == "`orch answer a --decide relax --body WHY` takes it in at once"
    told = staged.decide("relax", "now")

    assert told["left"] == [] and staged.state == "succeeded"
    assert len([each for each in words_of(staged) if each.startswith("waiver given")]) == 2


def test_what_a_gate_wrote_and_may_not_is_written_once_more(staged: Staged):
    form = {"name": "form", "run": "test -s a.txt && echo no >no.txt; true", "writes": "keep"}
    stages = (agent("write", on_success="form"), gates("form", on_failure="pause"))
    staged.open(*stages, gates=(form,))
    staged.work(a_txt="one\n")
    assert asked(staged).rules == ("forbid_paths",)
    staged.decide("relax", "it is what the form is")

    assert staged.state == "succeeded" and staged.changed() == ["a.txt", "no.txt"]


def test_what_somebody_has_refused_is_let_in_by_another_after_all(staged: Staged):
    staged.open(agent("write"))
    staged.work(ci_yml="on: push\n")
    assert asked(staged).answers == ("approve", "refuse", "abandon")
    staged.decide("refuse", "not the build")
    assert asked(staged).rules == ("ask_paths",)
    staged.decide("relax", "it is the task", by="chief")

    assert staged.state == "succeeded"
    assert staged.patches()[-1] == ("harvest", "committed")


def test_text_that_was_refused_comes_in_as_it_was_handed_in(staged: Staged):
    staged.open(agent("write", hands_in="text", on_success="look"), LOOK)
    staged.work(payload={"edits": [{"path": "a.txt", "content": LONG}]})
    assert asked(staged).rules == ("max_lines",)
    staged.decide("relax", "so")

    assert staged.state == "succeeded" and staged.changed() == ["a.txt"]


def test_work_that_does_not_stand_on_the_visit_before_comes_in_by_its_tree(staged: Staged):
    staged.open(agent("write", on_success="more"), agent("more"))
    staged.work(a_txt="one\n")
    git(staged.worktree, "reset", "--quiet", "--hard", str(staged.attempt.base_commit))
    commit(staged.worktree, "no.txt", "no\n")
    staged.work("w2", b_txt="two\n")
    assert asked(staged).rules == ("forbid_paths",)
    staged.decide("relax", "so")

    assert staged.state == "succeeded" and staged.changed() == ["b.txt", "no.txt"]


def test_an_agent_says_so_on_the_thread(staged: Staged):
    staged.open(WRITE, LOOK)
    staged.work(a_txt=LONG, no_txt="no\n")
    say(staged, {"answer": "relax", "hint": "so"})
    say(staged, {"answer": "relax", "hint": "mine", "rule": "max_lines"}, by="w1")
    void = [str(visit.reason) for visit in staged.visits() if visit.state == "void"]
    assert "breaks several rules" in void[0] and "w1 has written patch" in void[1]
    for rule in ("max_lines", "forbid_paths"):
        staged.site.clock.advance(200)
        staged.lead()
        say(staged, {"answer": "relax", "hint": "so", "rule": rule})

    assert staged.state == "succeeded"


def say(staged: Staged, answer: dict, by: str = "judge") -> None:
    bus = staged.site.office.bus(by)
    claimed = bus.claim(staged.attempt.thread_id, mailboxes=["operator"])
    bus.done(claimed.thread.id, str(claimed.lease.token), body=json.dumps(answer))
    staged.lead()


def test_the_packet_has_what_was_refused_and_what_may_be_said(staged: Staged):
    staged.open(WRITE, LOOK)
    staged.work(a_txt=LONG, no_txt="no\n")
    (message,) = staged.site.scheduler.bus.messages(staged.attempt.thread_id)

    assert message.body is not None and message.payload is not None
    assert "What was refused, patch a/1/1, by w1:\n- forbid_paths: " in message.body
    meaning = "take the refused patch as it is, though it breaks `forbid_paths` and `max_lines`"
    assert f"- relax: {meaning}; say why" in message.body
    facts = json.loads(message.payload)
    assert facts["refused"]["rules"] == ["forbid_paths", "max_lines"]
    assert Path(facts["worktree"]) == staged.worktree


def test_what_has_become_forbidden_since_keeps_it_out_all_the_same(staged: Staged):
    staged.open(WRITE, LOOK)
    staged.work(a_txt=LONG)
    with staged.site.scheduler.database.transaction() as tx:
        tx.run("UPDATE task SET policy = ?", ('{"forbid_paths":["a.txt"]}',))
    staged.decide("relax", "so")

    assert staged.way()[-2:] == [("write", "failed"), ("decision", "live")]
    assert "a.txt may not be changed" in str(staged.visits()[-2].reason)
    assert not (staged.worktree / "a.txt").exists() and "relax" not in asked(staged).answers
