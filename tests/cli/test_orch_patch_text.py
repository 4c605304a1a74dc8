"""`orch patch check`, `submit` and `export`: what they say and how they end."""

import json

import pytest

from inbox_orch.orch.runs.config import Config
from support.orch_matrix import Enterprise
from support.runs import git

DIFF = """\
--- a/README.md
+++ b/README.md
@@ -1 +1 @@
-A project.
+A better project.
"""
LINK = """\
diff --git a/in b/in
new file mode 120000
--- /dev/null
+++ b/in
@@ -0,0 +1 @@
+README.md
\\ No newline at end of file
"""
CONFIG = Config(policy={"forbid_paths": ["README.md"]})


@pytest.fixture
def project(tmp_path) -> Enterprise:
    return Enterprise(tmp_path / "project")


def given(project: Enterprise, text: str, config: Config | None = None) -> str:
    """A file beside the project, and a run with a task; the file's name."""
    project.open_run(**({} if config is None else {"config": config}))
    project.orch("task", "add", "--task", "a", "--title", "Do a")
    (project.folder.parent / "change").write_text(text)
    return "../change"


@pytest.mark.parametrize(
    "text, config, code, error",
    [
        (DIFF, None, 0, None),
        (json.dumps({"edits": [{"path": "x", "content": "y"}]}), None, 0, None),
        (DIFF, CONFIG, 9, "policy_denied"),
        (LINK, Config(policy={}), 11, "approval_needed"),
        (f"Look:\n{DIFF}", None, 4, "patch_format"),
        (json.dumps({"edits": [{"path": "README.md", "old": "a", "new": "b"}]}), None, 4,
         "edit_not_found"),
    ],
)  # fmt: skip
def test_a_check_says_what_would_become_of_it_and_stores_nothing(
    project: Enterprise, text, config, code, error
):
    file = given(project, text, config)
    objects = git(project.folder, "count-objects", "-v")
    outcome = project.orch("patch", "check", file, "--task", "a", "--json")

    assert outcome.code == code
    assert outcome.value.get("error", {}).get("code") == error
    assert git(project.folder, "count-objects", "-v") == objects
    assert project.orch("patch", "list", "--json").data["items"] == []


def test_without_a_run_what_is_built_in_counts_and_no_database_is_needed(project: Enterprise):
    (project.folder.parent / "change").write_text(LINK)
    outcome = project.orch("patch", "check", "../change")

    assert outcome.code == 11 and b"symlinks" in outcome.stdout


def test_what_is_submitted_can_be_exported_as_it_came(project: Enterprise):
    text = DIFF.rstrip("\n")
    file = given(project, text)
    done = project.orch("patch", "submit", file, "--task", "a", "--json", "--agent", "ann")

    assert done.data["task"]["state"] == "succeeded" and done.data["patch"] == "a/1/1"
    assert project.orch("patch", "export", "a/1/1").text == text


@pytest.mark.parametrize(
    "text, config, code, error, state",
    [
        (DIFF, CONFIG, 9, "policy_denied", "quarantined"),
        (f"{DIFF}That is it.\n", None, 4, "patch_format", None),
    ],
)
def test_what_may_not_go_in_is_told_as_what_it_is(
    project: Enterprise, text, config, code, error, state
):
    file = given(project, text, config)
    done = project.orch("patch", "submit", file, "--task", "a", "--json")

    assert (done.code, done.error["code"]) == (code, error)
    listed = project.orch("patch", "list", "--json").data["items"]
    assert [each["state"] for each in listed] == ([] if state is None else [state])
