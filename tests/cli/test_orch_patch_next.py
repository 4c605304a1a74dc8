"""What is said of a patch names it, and says what to do next: in words that can be called."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from inbox_orch.orch import schemas
from inbox_orch.orch.runs.config import Config
from support.commands import Outcome, run
from support.contracts import validated
from support.runs import Site, commit, git

POLICY = {"forbid_paths": ["no.txt"], "max_lines": 3, "ask_paths": ["ci.yml"]}
NEW = "diff --git a/no.txt b/no.txt\nnew file mode 100644\n--- /dev/null\n+++ b/no.txt\n"
DIFF = f"{NEW}@@ -0,0 +1 @@\n+one\n"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


def handed_in(site: Site, **files: str) -> None:
    """A task for each, whose worker has changed that file."""
    opened = site.open_run(config=Config(policy=POLICY))
    for key in files:
        site.add(opened, key, max_attempts=1)
    items = site.dispatch(opened)
    for key, name in files.items():
        commit(items[key]["worktree"], name, "a\nb\nc\nd\n" if key == "long" else "a\n")
        site.done(items[key])
    site.scheduler.reconcile(opened)


def orch(site: Site, *words: str, stdin: bytes = b"", agent: str = "boss") -> Outcome:
    return run(*words, "--agent", agent, folder=site.repository, program="orch", stdin=stdin)


def calls(text: str) -> list[list[str]]:
    """The calls of `orch` in a text, each once, as a shell has them."""
    found = dict.fromkeys(re.findall(r"`(orch [^`]*)`", text))
    return [shlex.split(call)[1:] for call in found]


def test_what_is_refused_is_let_in_and_taken_back_by_what_is_said(site: Site):
    handed_in(site, long="no.txt")
    shown = orch(site, "patch", "show", "long/1/1").text
    for call in calls(shown):
        assert call[:3] == ["patch", "release", "long/1/1"]
    first, second = calls(shown)
    line = orch(site, *first).text
    assert line.startswith("long/1/1\tquarantined\t`orch patch release long/1/1 --rule ")
    done = orch(site, *second, "--json")
    validated("patch release", done.stdout, schemas.COMMANDS)
    assert done.data["next"] == "`orch adopt long` takes it in"
    (adopt,) = calls(done.data["next"])
    assert orch(site, *adopt).code == 0
    assert "\nreplaces\tlong/1/1\n" in orch(site, "patch", "show", "long/1/2").text
    assert orch(site, "integrate").code == 0
    undone = orch(site, "patch", "rollback", "long/1/2")
    assert undone.text.split("\t")[-1].startswith("`orch integrate --onto BRANCH` takes it out")
    assert "\nundoes\tlong/1/2\n" in orch(site, "patch", "show", "long/1/3").text
    again = orch(site, "patch", "rollback", "long/1/3", "--json")
    assert again.error["code"] == "policy_denied"


def test_what_undoes_a_patch_is_approved_and_brought_in_by_the_same_call_again(site: Site):
    handed_in(site, asked="ci.yml")
    assert orch(site, "patch", "approve", "asked/1/1", agent="ann").code == 0
    assert orch(site, "reconcile").code == 0
    assert orch(site, "integrate").code == 0
    back = ("patch", "rollback", "asked/1/1")
    assert orch(site, *back, "--json").error["code"] == "approval_needed"
    said = orch(site, "patch", "approve", "asked/1/2", "--json", agent="ann").data
    assert said["next"] == "`orch patch rollback` of the same patch once more takes it back"
    assert orch(site, *back).code == 0


def test_text_that_was_refused_is_handed_in_again_by_what_is_said(site: Site):
    opened = site.open_run(config=Config(policy=POLICY))
    site.add(opened, "text", max_attempts=1)
    refused = orch(site, "patch", "submit", "-", "--task", "text", stdin=DIFF.encode(), agent="ann")
    assert refused.code == 9
    said = orch(site, "patch", "release", "text/1/1", "--rule", "forbid_paths", "--reason", "so")
    retry, piped = calls(said.text)
    assert orch(site, *retry).code == 0
    export, submit = " ".join(piped).split(" | orch ")
    text = orch(site, *export.split())
    assert orch(site, *submit.split(), stdin=text.stdout).code == 0
    assert "text/2/1\tcommitted" in orch(site, "patch", "list").text


def test_answers_and_what_is_given_up_say_how_it_goes_on(site: Site):
    handed_in(site, asked="ci.yml", unasked="ci.yml", refused="no.txt")
    waits = orch(site, "patch", "show", "asked/1/1").text
    assert calls(waits) == [["patch", "approve", "asked/1/1"]]
    approved = orch(site, *calls(waits)[0], "--json")
    validated("patch approve", approved.stdout, schemas.COMMANDS)
    assert calls(approved.data["next"]) == [["reconcile"]]
    assert orch(site, "reconcile").code == 0
    assert "asked/1/1\tcommitted" in orch(site, "patch", "list").text
    no = orch(site, "patch", "refuse", "unasked/1/1").text
    assert calls(no) == [["reconcile"], ["task", "show", "unasked"]]
    dropped = orch(site, "patch", "drop", "refused/1/1").text
    assert calls(dropped) == [["retry", "refused"]]
    assert orch(site, "retry", "refused").code == 0


def test_a_name_with_a_line_in_it_is_escaped_once(site: Site):
    opened = site.open_run(config=Config(policy=POLICY))
    site.add(opened, "odd")
    item = site.dispatch(opened)["odd"]
    (Path(item["worktree"]) / "a\nb.txt").write_text("a\n")
    git(item["worktree"], "add", ".")
    git(item["worktree"], "commit", "-q", "-m", "it")
    site.done(item)
    site.scheduler.reconcile(opened)
    assert "\nfile\ta\\nb.txt\n" in orch(site, "patch", "show", "odd/1/1").text
    facts = orch(site, "patch", "show", "odd/1/1", "--json").data["patch"]["facts"]
    assert facts["paths"] == ["a\nb.txt"]
