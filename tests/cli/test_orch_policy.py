"""`orch policy`, and where a policy is given: shown by layer, tried on changes, refused by line."""

import json
from pathlib import Path

import pytest

from inbox_orch.orch import schemas
from support.commands import Outcome, run
from support.contracts import validated
from support.keys import KEYS
from support.orch_matrix import Enterprise, the_run
from support.runs import commit, git

MINE = """\
policy:
  allow_paths: [src/, tests/, README*]
  forbid_paths: [src/vendor/]
  max_lines: 5
  symlinks: deny
"""


class Project(Enterprise):
    """A repository with a run that has a policy, and a task that tightens it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (self.folder / "run.yaml").write_text(MINE)
        opened = self.orch("run", "init", "--title", "One", "--config", "run.yaml")
        assert opened.code == 0, opened.stderr
        (self.folder / "run.yaml").unlink()
        task = ("--task", "a", "--title", "A", "--allow-path", "src/", "--max-lines", "3")
        assert self.orch("task", "add", *task, "--ask-path", "src/a.py").code == 0

    def policy(self, *words: str, **options) -> Outcome:
        return self.orch("policy", *words, **options)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def test_each_rule_is_shown_with_the_layer_that_says_it(project: Project):
    shown = project.policy("show", "a", "--json")
    validated("policy show", shown.stdout, schemas.COMMANDS)
    rules = {(each["rule"], each["layer"]): each["value"] for each in shown.data["items"]}

    assert rules["max_lines", "run"] == 5 and rules["max_lines", "task a"] == 3
    assert rules["symlinks", "run"] == "deny" and ("symlinks", "built-in") not in rules
    assert rules["submodules", "built-in"] == "ask"
    assert [each["name"] for each in shown.data["layers"]] == ["built-in", "run", "task a"]
    lines = project.policy("show").stdout.decode().splitlines()
    assert "max_lines\t5\trun" in lines and not any("task a" in line for line in lines)
    told = project.orch("run", "show", "--json").data["config"]["policy"]
    assert told["max_lines"] == 5
    task = project.orch("task", "show", "a", "--json").data["task"]["policy"]
    assert task == {"allow_paths": ["src/"], "ask_paths": ["src/a.py"], "max_lines": 3}


@pytest.mark.parametrize(
    "path, task, outcome, said",
    [
        ("src/b.py", "a", "allowed", ("task a", "allow_paths", "allowed", "src/")),
        ("src/a.py", "a", "asked", ("task a", "ask_paths", "asked", "src/a.py")),
        ("tests/x", "a", "denied", ("task a", "allow_paths", "denied", None)),
        ("tests/x", None, "allowed", ("run", "allow_paths", "allowed", "tests/")),
        ("src/vendor/x", None, "denied", ("run", "forbid_paths", "denied", "src/vendor/")),
        ("AGENTS.md", None, "denied", ("built-in", "ask_paths", "asked", "AGENTS.md")),
    ],
)
def test_a_path_is_explained(project: Project, path, task, outcome, said):
    words = () if task is None else ("--task", task)
    found = project.policy("explain", path, *words, "--json")

    validated("policy explain", found.stdout, schemas.COMMANDS)
    assert found.data["outcome"] == outcome
    names = ("layer", "rule", "outcome", "pattern")
    assert said in [tuple(each[name] for name in names) for each in found.data["items"]]
    assert project.policy("explain", path, *words).stdout.decode().startswith("path\t")


def test_what_lies_in_the_worktree_is_judged_before_it_is_handed_in(project: Project):
    with project.scheduler() as scheduler:
        item = scheduler.dispatch(the_run(scheduler)).items[0]
    worktree = Path(item["worktree"])
    with project.bus("w1") as bus:
        text = bus.claim(item["thread"], mailboxes=["workers"]).messages[0].body
    assert "- change nothing but: src/\n" in text and "- at most 3 lines" in text
    (worktree / "src").mkdir()
    (worktree / "src" / "b.py").write_text("1\n2\n")
    fine = project.policy("check", folder=worktree)
    (worktree / "src" / "a.py").write_text("1\n")
    asked = project.policy("check", "--json", folder=worktree)
    (worktree / "notes").write_text(f"{KEYS['GitHub token']}\n")
    denied = project.policy("check", folder=worktree)
    as_json = project.policy("check", "--json", folder=worktree)

    assert fine.code == 0 and fine.stdout.decode().startswith("a/1\tallowed\t1")
    assert (asked.code, asked.error["code"]) == (11, "approval_needed")
    validated("policy check", asked.stdout, schemas.COMMANDS)
    assert asked.value["data"]["facts"]["paths"] == ["src/a.py", "src/b.py"]
    assert (denied.code, as_json.error["code"]) == (9, "policy_denied")
    rules = {(o["rule"], o["layer"]) for o in as_json.error["details"]["objections"]}
    assert rules >= {("max_lines", "task a"), ("allow_paths", "run"), ("secrets", "built-in")}
    text = (denied.stdout + denied.stderr + as_json.stdout).decode()
    assert KEYS["GitHub token"] not in text and "notes:1 (GitHub token)" in text


def test_commits_and_diffs_are_judged_without_a_database(tmp_path: Path):
    folder = Enterprise(tmp_path / "project").folder
    base = git(folder, "rev-parse", "HEAD")
    (tmp_path / "mine.yaml").write_text("allow_paths: [src/]\nmax_lines: 1\n")
    commit(folder, "src/a.py", "1\n")
    options = ("--policy", str(tmp_path / "mine.yaml"))

    def check(*words: str, **more) -> Outcome:
        return run("policy", "check", *words, *options, folder=folder, program="orch", **more)

    assert check(f"{base}..HEAD").code == 0
    commit(folder, "b", "2\n")
    assert check(f"{base}..HEAD").code == 9
    assert check("HEAD~..HEAD").stderr.decode().count("allow_paths") >= 1
    diff = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-1\n+2\n"
    words = ("patch", "check", "-", *options)
    for content, code in ((diff, 9), (diff.replace("src/a", "src/x"), 4)):
        done = run(*words, folder=folder, program="orch", stdin=content.encode())
        assert done.code == code
    both = run("patch", "check", "-", "--policy", "-", folder=folder, program="orch", stdin=b"")
    assert both.code == 2
    shown = run("policy", "show", *options, folder=folder, program="orch").stdout.decode()
    assert "max_lines\t1\trun" in shown


def test_what_lies_there_through_filters_is_no_change(project: Project):
    (project.folder / ".gitattributes").write_text("*.txt text eol=crlf\n")
    commit(project.folder, "src/lines.txt", "1\n2\n")
    with project.scheduler() as scheduler:
        worktree = Path(scheduler.dispatch(the_run(scheduler)).items[0]["worktree"])
    assert (worktree / "src" / "lines.txt").read_bytes() == b"1\r\n2\r\n"
    (worktree / "src" / "b.py").write_text("1\n")

    facts = project.policy("check", "--json", folder=worktree).data["facts"]

    assert facts["paths"] == ["src/b.py"]
    (worktree / "src" / "nested" / ".git").mkdir(parents=True)
    git(worktree / "src" / "nested", "init", "--quiet")
    denied = project.policy("check", "--json", folder=worktree)
    assert (denied.code, denied.error["details"]["objections"][0]["rule"]) == (9, "unjudged")


BAD = """\
policy:
  allow_paths: [src/, ../out, "#x"]
  max_lines: -1
  symlinks: perhaps
  max_filez: 3
"""


def test_every_problem_of_a_policy_is_told_by_its_line_and_nothing_is_opened(project: Project):
    (project.folder / "bad.yaml").write_text(BAD)
    before = project.contents()

    done = project.orch("run", "init", "--title", "Two", "--config", "bad.yaml")
    linted = project.policy("lint", "bad.yaml", "--json")

    told = done.stderr.decode()
    for words in ("bad.yaml:2", "lead upwards", "is a comment", "bad.yaml:3", "bad.yaml:4",
                  "bad.yaml:5", "max_files"):  # fmt: skip
        assert words in told
    assert done.code == linted.code == 2
    assert project.contents() == before


def test_what_loosens_is_refused_wherever_it_is_given(project: Project):
    plan = "run: {title: T, config: {policy: {max_lines: 5}}}\ntasks:\n"
    plan += "  - {task: b, title: B, policy: {max_lines: 4}}\n"
    plan += "  - task: c\n    title: C\n    policy:\n      max_lines: 6\n"
    (project.folder / "plan.yaml").write_text(plan)
    (project.folder / "stages.yaml").write_text(
        "version: 1\nid: mine\nstages:\n"
        "  - {id: write, type: agent, goal: x, policy: {symlinks: allow}}\n"
    )
    add = ("task", "add", "--task", "b", "--title", "B")
    before = project.contents()

    refused = [
        project.orch(*add, "--max-lines", "6", "--json"),
        project.orch("task", "edit", "a", "--max-lines", "6", "--json"),
        project.orch("plan", "import", "plan.yaml", "--json"),
        project.orch(*add, "--blueprint", "stages.yaml", "--json"),
        project.policy("lint", "plan.yaml", "--json"),
    ]

    assert [(done.code, done.error["code"]) for done in refused] == [(2, "constraint_weakened")] * 5
    assert "task b" in refused[0].error["message"] and "the run" in refused[0].error["message"]
    assert "stage write" in refused[3].error["message"]
    assert "plan.yaml:7" in project.orch("plan", "import", "plan.yaml").stderr.decode()
    assert project.contents() == before


def test_a_policy_of_a_task_is_changed_rule_by_rule_and_taken_away(project: Project):
    def now() -> object:
        return project.orch("task", "show", "a", "--json").data["task"].get("policy")

    (project.folder / "rules.yaml").write_text("binary: deny\nmax_lines: 1\n")
    edited = project.orch("task", "edit", "a", "--policy", "rules.yaml", "--max-lines", "2")

    assert edited.code == 0
    assert now() == {
        "allow_paths": ["src/"], "ask_paths": ["src/a.py"], "binary": "deny", "max_lines": 2
    }  # fmt: skip
    assert project.orch("task", "edit", "a", "--no-policy", "--max-lines", "2").code == 2
    assert project.orch("task", "edit", "a", "--no-policy").code == 0
    assert now() is None
    again = project.orch("task", "edit", "a", "--no-policy", "--json").data
    assert again["changed"] == []
    nowhere = ("task", "add", "--task", "n", "--title", "N", "--no-worktree", "--max-files", "1")
    assert project.orch(*nowhere).code == 2


def test_a_plan_keeps_its_policies_on_the_way_out_and_in(project: Project):
    exported = project.orch("plan", "export", "--json").data["plan"]

    assert exported["run"]["config"]["policy"]["allow_paths"] == ["src/", "tests/", "README*"]
    assert exported["tasks"][0]["policy"]["max_lines"] == 3
    (project.folder / "plan.json").write_text(json.dumps(exported))
    assert project.orch("plan", "import", "plan.json", "--new-run", "--json").code == 0


def test_what_is_odd_is_listed(project: Project):
    (project.folder / "odd.yaml").write_text("allow_paths: [scr/]\nask_paths: [x]\n")

    found = project.policy("lint", "odd.yaml", "--json")

    validated("policy lint", found.stdout, schemas.COMMANDS)
    assert [each["rule"] for each in found.data["items"]] == ["ask_paths", "allow_paths"]
    assert "scr/ fits no file" in project.policy("lint", "odd.yaml").stdout.decode()


def test_without_a_policy_only_the_floor_is_held_and_json_is_as_before(tmp_path: Path):
    plain = Enterprise(tmp_path / "project").tasks("a")

    assert "policy" not in plain.orch("run", "show", "--json").data["config"]
    assert "policy" not in plain.orch("task", "show", "a", "--json").data["task"]
    assert plain.orch("policy", "show", "--json").data["layers"] == []
    assert plain.orch("policy", "show").code == 0
