"""The actions of a blueprint: what is gathered, what is reported, what is applied."""

import json
import os

import pytest

from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.runs.role import Role
from inbox_orch.orch.stages import gating
from support.runs import Site, commit, git
from support.stages import Course, action, add, agent, gates, review


@pytest.fixture
def run(site: Site):
    return site.open_run(config=Config(roles={"reviewer": Role("reviewers")}))


@pytest.fixture
def course(site: Site, run):
    return Course(site, run)


GATHER = action("gather", "build_context_pack", on_success="write")


def started(site: Site, run, course: Course, *stages, title: str = "Fix a") -> None:
    add(site, run, "a", *stages, title=title)
    site.dispatch(run)
    course.lead()
    course.lead()


def test_the_worker_is_told_what_the_repository_says_of_its_task(site: Site, course: Course):
    commit(site.repository, "AGENTS.md", "Write tests first.\n")
    commit(site.repository, "src/AGENTS.md", "Here only ASCII.\n")
    commit(site.repository, "src/lexer.py", "def next_token(): ...\n")
    commit(site.repository, ".env", "TOKEN=hunter2hunter2\n")
    run = course.run = site.open_run(title="Later")
    started(site, run, course, GATHER, agent("write"), title="Mend src/lexer.py, see .env")

    said = course.text()
    assert said.index("Here only ASCII.") < said.index("Write tests first.")
    assert "| def next_token(): ..." in said
    assert "hunter2" not in said and b"hunter2" not in course.files()["context.md"]
    manifest = course.visits()[1].found["manifest"]
    assert {each["path"]: each["fate"] for each in manifest} == {
        "src/AGENTS.md": "in",
        "AGENTS.md": "in",
        "src/lexer.py": "in",
        ".env": "out",
    }


def test_a_link_out_of_the_repository_is_not_read(site: Site, course: Course, tmp_path):
    (tmp_path / "outside.md").write_text("not for anybody\n")
    os.symlink(tmp_path / "outside.md", site.repository / "AGENTS.md")
    git(site.repository, "add", "--all")
    git(site.repository, "commit", "--quiet", "--message", "Link")
    run = course.run = site.open_run(title="Later")
    started(site, run, course, GATHER, agent("write"))

    assert "not for anybody" not in course.text()


def test_each_worker_is_told_the_pack_and_its_file_is_attached_once(
    site: Site, run, course: Course
):
    started(site, run, course, GATHER, agent("write", on_success="polish"), agent("polish"))
    assert set(course.files()) == {"context.md"}
    course.work(a_txt="one\n")

    assert course.text().count("README.md") == 1
    assert course.files() == {}


def test_a_reviewer_is_given_the_change_and_what_was_prepared(site: Site, run, course: Course):
    stages = (
        agent("write", on_success="look"),
        gates("look", run="true", on_success="bundle"),
        action("bundle", "prepare_review_bundle", on_success="judge"),
        review("judge"),
    )
    started(site, run, course, *stages)
    course.work(a_txt="one\n")
    course.lead()

    said = course.text()
    assert "+one" in said and "What the gates say of it:\n- look: passed" in said
    assert b"+one" in course.files()["review.md"]


def test_a_change_that_is_too_long_is_attached_whole(site: Site, run, course: Course):
    started(site, run, course, agent("write", on_success="judge"), review("judge"))
    course.work(a_txt="".join(f"line {number}\n" for number in range(3000)))

    assert "(cut: the whole diff has" in course.text()
    assert course.files()["change.diff"].rstrip().endswith(b"+line 2999")


def test_reports_are_told_and_kept(site: Site, run, course: Course):
    stages = (
        agent("write", on_success="report"),
        action("report", "generate_diff_report", on_success="sum"),
        action("sum", "summarize_run", on_success="polish"),
        agent("polish"),
    )
    started(site, run, course, *stages)
    course.work(a_txt="one\n")
    course.lead()
    course.lead()

    said = course.text()
    assert "Changed so far: 1 files, +1 -0\na.txt (new, +1 -0)" in said
    assert "2. write, succeeded, by w1" in said
    assert set(course.files()) == {"change.diff", "summary.md"}


# -- what is applied -----------------------------------------------------------------------

PATCH = """\
diff --git a/README.md b/README.md
--- a/README.md
+++ b/README.md
@@ -1 +1 @@
-A project.
+A better project.
"""


def answered(site: Site, run, course: Course, payload, body: str = "done") -> None:
    stages = (
        agent("think", writes=False, on_success="apply"),
        action("apply", "apply_patch", on_failure="pause"),
    )
    started(site, run, course, *stages)
    course.work(payload=payload, body=body)
    course.lead()


@pytest.mark.parametrize(
    "payload",
    [
        {"patch": PATCH},
        {"edits": [{"path": "README.md", "old": "A project", "new": "A better project"}]},
    ],
)
def test_what_a_worker_answers_is_applied_and_committed(site: Site, run, course: Course, payload):
    answered(site, run, course, payload)

    assert course.way() == [("think", "succeeded"), ("apply", "succeeded")]
    assert site.states(run) == {"a": "succeeded"}
    head = course.attempt.head_commit
    assert git(site.repository, "show", f"{head}:README.md") == "A better project."
    assert git(site.repository, "show", "-s", "--format=%an", head) == "w1"


LINK = """\
diff --git a/out b/out
new file mode 120000
--- /dev/null
+++ b/out
@@ -0,0 +1 @@
+/etc/passwd
\\ No newline at end of file
"""
TWICE = [
    {"path": "b.txt", "content": "ee\n"},
    {"path": "b.txt", "old": "e", "new": "y"},
]


@pytest.mark.parametrize(
    "payload, said",
    [
        ({"patch": f"Here it is:\n{PATCH}"}, "line 1: this is no part of a unified diff"),
        ({"patch": PATCH.replace("A project", "Another project")}, "README.md"),
        ({}, "neither `patch` nor `edits`"),
        ({"edits": TWICE}, "is there 2 times"),
        ({"edits": [{"path": "README.md/x", "content": "y"}]}, "which is no folder"),
        ({"patch": LINK}, "out is a link that leads out of the repository"),
    ],
)
def test_what_cannot_be_applied_is_refused_and_changes_nothing(
    site: Site, run, course: Course, payload, said
):
    answered(site, run, course, payload)

    assert course.way() == [("think", "succeeded"), ("apply", "failed"), ("decision", "live")]
    assert said in str(course.visits()[2].reason)
    assert git(course.worktree, "status", "--porcelain") == ""
    assert git(course.worktree, "rev-parse", "HEAD") == course.attempt.base_commit


class Died(BaseException):
    """What a process ends with, here."""


def test_a_patch_is_applied_once_by_whoever_goes_on(site: Site, run, course: Course, monkeypatch):
    """The first leader is gone after the commit, before that is written down."""

    def died(*_) -> bool:
        raise Died

    stages = (agent("think", writes=False, on_success="apply"), action("apply", "apply_patch"))
    started(site, run, course, *stages)
    bus, token = course.claim()
    edits = [{"path": "b.txt", "content": "two\n"}]
    bus.done(course.attempt.thread_id, token, payload=json.dumps({"edits": edits}))
    with monkeypatch.context() as dying:
        dying.setattr(gating, "_conclude", died)
        with pytest.raises(Died):
            course.lead()
    assert course.visits()[-1].live
    course.lead()

    assert course.way() == [("think", "succeeded"), ("apply", "succeeded")]
    assert site.states(run) == {"a": "succeeded"}
    commits = f"{course.attempt.base_commit}..{course.attempt.head_commit}"
    assert git(site.repository, "rev-list", "--count", commits) == "1"


def test_commit_changes_commits_what_a_gate_has_left(site: Site, run, course: Course):
    stages = (
        agent("write", on_success="keep"),
        action("keep", "commit_changes"),
    )
    started(site, run, course, *stages)
    bus, token = course.claim()
    (course.worktree / "a.txt").write_text("one\n")
    bus.done(course.attempt.thread_id, token, body="done")
    site.scheduler.reconcile(run, checks=False)
    (course.worktree / "b.txt").write_text("written by a tool\n")
    course.lead()

    assert site.states(run) == {"a": "succeeded"}
    head = course.attempt.head_commit
    assert git(site.repository, "show", f"{head}:b.txt") == "written by a tool"


# -- a stage whose workers have no files -----------------------------------------------------


def written(site: Site, run, course: Course, payload, **options) -> None:
    stages = (
        agent("write", hands_in="text", on_success="look", max_visits=2, **options),
        gates("look", run="grep -q better README.md"),
    )
    started(site, run, course, *stages)
    course.work(payload=payload)
    course.lead()


@pytest.mark.parametrize(
    "payload",
    [
        {"patch": PATCH},
        {"edits": [{"path": "README.md", "old": "A project", "new": "A better project"}]},
    ],
)
def test_what_a_stage_hands_in_as_text_is_brought_in_and_judged(
    site: Site, run, course: Course, payload
):
    written(site, run, course, payload)

    assert course.way() == [("write", "succeeded"), ("look", "passed")] or course.way()[-1] == (
        "look",
        "succeeded",
    )
    assert site.states(run) == {"a": "succeeded"}
    head = course.attempt.head_commit
    assert git(site.repository, "show", f"{head}:README.md") == "A better project."
    assert git(site.repository, "show", "-s", "--format=%an", head) == "w1"


def test_a_stage_is_told_how_text_is_handed_in_and_why_it_was_refused(
    site: Site, run, course: Course
):
    written(site, run, course, {"patch": f"So:\n{PATCH}"}, on_failure="write")

    assert course.way() == [("write", "failed"), ("write", "live")]
    assert "patch_format: line 1" in str(course.visits()[1].reason)
    assert "hand in what is to be changed" in course.text() and "patch_format" in course.text()
    assert git(course.worktree, "rev-parse", "HEAD") == course.attempt.base_commit
    course.work(payload={"patch": PATCH})
    course.lead()

    assert site.states(run) == {"a": "succeeded"}


def test_what_a_stage_may_not_change_is_never_in_its_worktree(site: Site, course: Course):
    config = Config(roles={"reviewer": Role("reviewers")}, policy={"forbid_paths": ["README.md"]})
    run = course.run = site.open_run(config=config, title="Later")
    written(site, run, course, {"patch": PATCH})

    (visit,) = [v for v in course.visits() if v.stage == "write"]
    assert visit.state == "failed" and str(visit.reason).startswith("policy: `forbid_paths`")
    assert git(course.worktree, "rev-parse", "HEAD") == course.attempt.base_commit
