"""Checkpoints of an attempt: what is kept can be looked at and gone back to, and going back is
never a loss; who may be at work is never disturbed, and nothing of anybody else's is touched."""

import os
import subprocess
from pathlib import Path

import pytest

from inbox_orch.orch.cleanup.checkpoints import Checkpoint
from inbox_orch.orch.git import snapshots
from inbox_orch.orch.journal import rows as journal_rows
from inbox_orch.orch.runs.model import Run
from inbox_orch.orch.stages import outdated
from inbox_orch.orch.stages.course import read
from inbox_orch.orch.stages.decide import Answered
from support.buses import refused
from support.predicaments import Scene
from support.runs import Site, commit, git
from support.stages import Course, add, agent, gates


@pytest.fixture
def scene(site: Site) -> Scene:
    """Task `a` with an attempt that has failed; nothing was committed."""
    found = Scene(site)
    found.write("one.txt")
    site.fail(found.item, fatal=True)
    site.scheduler.reconcile(found.run)
    return found


def listed(scene: Scene, name: str = "a") -> tuple[Run, object]:
    return scene.site.scheduler.attempt_named(name, scene.run.name)


def make(scene: Scene, note: str | None = None) -> Checkpoint:
    return scene.site.scheduler.checkpoint_make(*listed(scene), note).checkpoint


def restore(scene: Scene, name: str):
    run, checkpoint = scene.site.scheduler.checkpoint_named(name, scene.run.name)
    return scene.site.scheduler.checkpoint_restore(run, checkpoint)


def files(folder: Path) -> dict[bytes, bytes]:
    top = os.fsencode(folder)
    found = {}
    for inner, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name != b".git"]
        for name in names:
            path = os.path.join(inner, name)
            if name != b".git":
                with open(path, "rb") as file:
                    found[os.path.relpath(path, top)] = file.read()
    return found


def of_others(scene: Scene) -> tuple[object, ...]:
    """What is the user's."""
    folder = scene.repository
    refs = git(folder, "for-each-ref", "refs/heads/main", "refs/stash", "refs/tags")
    kept = [(folder / ".git" / name).read_bytes() for name in ("index", "HEAD", "config")]
    return refs, git(folder, "status", "--porcelain"), kept


def test_what_was_kept_comes_back_and_what_was_there_is_kept(scene: Scene):
    standing, before = of_others(scene), files(scene.worktree)
    first = make(scene, "before I meddle")
    assert (first.name, first.kept.title) == ("a/1/1", "before I meddle")
    head = git(scene.worktree, "rev-parse", "HEAD")
    (scene.worktree / "one.txt").unlink()
    commit(scene.worktree, "two.txt", "two\n")
    meddled = files(scene.worktree)
    done = restore(scene, "a/1/1")
    assert (done.checkpoint.name, done.before.name) == ("a/1/1", "a/1/2")
    assert files(scene.worktree) == before
    assert git(scene.worktree, "rev-parse", "HEAD") == head
    restore(scene, "a/1/2")
    assert files(scene.worktree) == meddled
    assert git(scene.worktree, "status", "--porcelain") == ""
    assert of_others(scene) == standing
    told = [each.kept.title for each in scene.site.scheduler.checkpoint_list(*listed(scene))]
    assert told == ["before I meddle", "Before going back", "Before going back"]
    assert scene.site.open_intents(scene.run) == []


def test_the_same_state_is_kept_once(scene: Scene):
    assert make(scene) == make(scene)
    made = scene.site.scheduler.checkpoint_make(*listed(scene))
    assert made.same
    assert not made.at_work


def test_events_tell_of_both_and_fold(scene: Scene):
    make(scene)
    (scene.worktree / "one.txt").write_text("other\n")
    restore(scene, "a/1/1")
    events = scene.site.scheduler.bus.watch(after="0", wait_seconds=0)
    kinds = [event.kind for event in events]
    assert [kinds.count(f"checkpoint_{word}") for word in ("made", "restored")] == [1, 1]
    assert scene.site.scheduler.doctor(verify=True).problems == 0


def test_bytes_are_the_same_whatever_git_would_make_of_them(scene: Scene):
    git(scene.repository, "config", "core.autocrlf", "true")
    tree = os.fsencode(scene.worktree)
    contents = {b"n\xffame.txt": b"one\r\ntwo\n", b"crlf.txt": b"a\r\nb\r\n", b"lf.txt": b"a\nb\n"}
    for name, content in contents.items():
        with open(os.path.join(tree, name), "wb") as file:
            file.write(content)
    git(scene.worktree, "add", "--all")
    (scene.worktree / "crlf.txt").write_bytes(b"a\nb\r\n")
    said, before = git(scene.worktree, "status", "--porcelain"), files(scene.worktree)
    make(scene)
    for path in scene.worktree.glob("*.txt"):
        path.write_bytes(b"gone\n")
    (scene.worktree / "one.txt").unlink()
    restore(scene, "a/1/1")
    assert files(scene.worktree) == before
    assert git(scene.worktree, "status", "--porcelain") == said


def test_a_checkpoint_elsewhere_is_the_files_and_nothing_else(scene: Scene, tmp_path: Path):
    make(scene)
    before = files(scene.worktree)
    (scene.worktree / "one.txt").write_text("other\n")
    scheduler = scene.site.scheduler
    run, checkpoint = scheduler.checkpoint_named("a/1/1", scene.run.name)
    there = scheduler.checkpoint_into(run, checkpoint, str(tmp_path / "out" / "here"))
    assert files(Path(there.folder)) == before
    assert there.files == len(before)
    assert (scene.worktree / "one.txt").read_text() == "other\n"
    with refused("file_exists"):
        scheduler.checkpoint_into(run, checkpoint, there.folder)
    for place in (scene.worktree / "inside", scene.repository / ".git" / "inside"):
        with refused("usage"):
            scheduler.checkpoint_into(run, checkpoint, str(place))
        assert not place.exists()


def test_who_is_at_work_is_not_disturbed(site: Site):
    scene = Scene(site)
    scene.write("one.txt")
    made = site.scheduler.checkpoint_make(*listed(scene))
    assert made.at_work
    (scene.worktree / "one.txt").write_text("other\n")
    token = site.claim(scene.item)
    run, checkpoint = site.scheduler.checkpoint_named("a/1/1", scene.run.name)
    with refused("live_attempt"):
        site.scheduler.checkpoint_restore(run, checkpoint)
    assert (scene.worktree / "one.txt").read_text() == "other\n"
    assert site.open_intents(scene.run) == []
    site.worker.done(scene.item["thread"], token, body="done")


@pytest.mark.parametrize("what", ["merge", "unmerged", "unborn", "nested"])
def test_what_could_not_be_gone_back_to_is_refused_untouched(scene: Scene, what: str):
    make(scene)
    chain = git(scene.repository, "for-each-ref", "refs/orch/attempts")
    (scene.worktree / "one.txt").write_text("other\n")
    said = {
        "merge": "in the middle of a merge",
        "unmerged": "two versions of one.txt",
        "unborn": "without any commit",
        "nested": "a repository of its own",
    }[what]
    if what == "unborn":
        git(scene.worktree, "checkout", "--quiet", "--orphan", "nothing")
    elif what == "nested":
        subprocess.run(["git", "init", "-q", str(scene.worktree / "inner")], check=True)
        commit(scene.worktree / "inner", "x", "x\n")
    else:
        _conflict(scene.worktree)
        if what == "unmerged":
            own = git(scene.worktree, "rev-parse", "--absolute-git-dir")
            os.unlink(os.path.join(own, "MERGE_HEAD"))
    before, status = files(scene.worktree), git(scene.worktree, "status", "--porcelain")
    with refused("invalid_state") as error:
        restore(scene, "a/1/1")
    assert said in error.value.message
    assert files(scene.worktree) == before
    assert git(scene.worktree, "status", "--porcelain") == status
    assert git(scene.repository, "for-each-ref", "refs/orch/attempts") == chain
    assert scene.site.open_intents(scene.run) == []


def _conflict(worktree: Path) -> None:
    git(worktree, "add", "--all")
    git(worktree, "commit", "--quiet", "-m", "one")
    git(worktree, "checkout", "--quiet", "-b", "side", "HEAD~1")
    commit(worktree, "one.txt", "of the side\n")
    git(worktree, "checkout", "--quiet", "-")
    git(worktree, "merge", "side", status=1)


def test_nothing_is_there_to_go_back_in_after_clean_up(scene: Scene, tmp_path: Path):
    make(scene)
    scene.site.scheduler.cleanup(scene.run, force=True)
    with refused("invalid_state"):
        restore(scene, "a/1/1")
    with refused("invalid_state"):
        make(scene)
    run, checkpoint = scene.site.scheduler.checkpoint_named("a/1/1", scene.run.name)
    scene.site.scheduler.checkpoint_into(run, checkpoint, str(tmp_path / "out"))
    assert (tmp_path / "out" / "one.txt").read_bytes() in scene.precious


@pytest.mark.parametrize(
    "name, code",
    [
        *(("a/1/2", "not_found"), ("a/2/1", "not_found"), ("b/1/1", "not_found")),
        *(("a/1", "usage"), ("a", "usage"), ("a/1/x", "usage"), ("a/1/", "usage")),
    ],
)
def test_what_names_no_checkpoint_is_refused(scene: Scene, name: str, code: str):
    make(scene)
    with refused(code):
        scene.site.scheduler.checkpoint_named(name, scene.run.name)


def test_a_commit_that_claims_to_be_of_the_chain_is_none(scene: Scene):
    ref = snapshots.ref_of(scene.item["id"])
    tree = git(scene.worktree, "rev-parse", "HEAD^{tree}")
    said = f"I am one\n\nRef: {ref}\nIndex-tree: {tree}"
    git(scene.worktree, "commit", "--quiet", "--allow-empty", "-m", said)
    assert make(scene).number == 1
    assert len(scene.site.scheduler.checkpoint_list(*listed(scene))) == 1


def test_a_note_is_one_line(scene: Scene):
    for note in ("", "  ", "two\nlines", "x" * 201, "\x1b[31m"):
        with refused("usage"):
            make(scene, note)


# -- attempts that go by a blueprint -------------------------------------------------------------


def _decided(site: Site) -> Course:
    """Task `a`, whose work somebody is asked to approve of."""
    run = site.open_run()
    stage = agent("work", approval="after", on_failure="work", max_visits=3)
    add(site, run, "a", stage)
    site.dispatch(run)
    course = Course(site, run)
    course.work(a_txt="first\n")
    assert course.attempt.deciding
    return course


def test_stages_keep_checkpoints_by_themselves(site: Site):
    course = _decided(site)
    found = site.scheduler.checkpoint_list(course.run)
    titles = [each.kept.title for each in found]
    assert titles[:2] == ["Before the first stage", "After stage work"]
    shown = site.scheduler.checkpoint_show(course.run, found[1], diff=True)
    assert [each.path for each in shown.files] == ["a.txt"]
    assert "+first" in str(shown.diff)
    assert shown.since is not None
    assert shown.since.name == "a/1/1"


def test_going_back_while_somebody_decides_is_what_the_stages_go_on_from(site: Site):
    course = _decided(site)
    run, checkpoint = site.scheduler.checkpoint_named("a/1/1", course.run.name)
    site.scheduler.checkpoint_restore(run, checkpoint)
    assert not (course.worktree / "a.txt").exists()
    _answer(course, "refuse")
    course.fail("no")
    # What a visit that failed left is put back to where somebody went back to.
    assert not (course.worktree / "a.txt").exists()
    assert course.way()[-1] == ("work", "live")


def test_an_approval_does_not_speak_of_what_somebody_went_back_to(site: Site):
    course = _decided(site)
    run, checkpoint = site.scheduler.checkpoint_named("a/1/1", course.run.name)
    site.scheduler.checkpoint_restore(run, checkpoint)
    _answer(course, "approve")
    assert course.way()[1:] == [("decision", "approve"), ("decision", "live")]


def test_no_stage_begins_in_a_worktree_that_is_put_back_at_the_moment(site: Site):
    course = _decided(site)
    desk = site.scheduler.desk
    site.scheduler.answer(course.run, "a", body="", decided=Answered("approve", "", None))
    with desk.database.transaction() as tx:
        now = read(tx, course.run, course.attempt.id)
        journal_rows.open_intent(
            tx, now.attempt, "restore", {}, owner=desk.database.owner(), now_ms=0
        )
    assert outdated.holds_up(desk, now)
    with desk.database.transaction() as tx:
        journal_rows.close_intent(
            tx, course.attempt.id, "restore", "undone", desk.database.owner(), 0
        )
    assert not outdated.holds_up(desk, now)


def _answer(course: Course, word: str) -> None:
    scheduler = course.site.scheduler
    scheduler.answer(course.run, "a", body="", decided=Answered(word, "", None))
    course.lead()


def test_an_attempt_with_a_gate_to_run_is_a_leaders(site: Site):
    run = site.open_run()
    add(site, run, "a", agent("work"), gates("checks"))
    site.dispatch(run)
    course = Course(site, run)
    found = site.scheduler.checkpoint_list(run)
    with refused("live_attempt"):
        site.scheduler.checkpoint_restore(run, found[0])
    assert course.attempt.live
