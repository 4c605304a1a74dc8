"""Keys that workers hand in, in each way that there is, are refused, and then stand nowhere but in
what they have handed in: not in what is stored of it, and not in anything that is printed."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from inbox_orch.orch.board import view
from inbox_orch.orch.board.close_up import detail_lines
from inbox_orch.orch.pictures.page import page
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.views import patches as views
from inbox_orch.orch.views.detail import detail
from sqlite import outside
from support.commands import run as command
from support.keys import KEYS
from support.runs import Site, commit, git
from support.stages import Course, add, agent
from support.tooling import Caller

_KEYS = list(KEYS.values())
# A door for each few of them.
FILE, MESSAGE, GIVEN, EDITS = _KEYS[:5], _KEYS[5:8], _KEYS[8:11], _KEYS[11:14]
WORDS, FIRST, SECOND = _KEYS[14:17], _KEYS[17:21], _KEYS[21:24]
FAILED, ASKED, OLD = _KEYS[24:27], _KEYS[27:29], _KEYS[29:]
REFUSED = ("file", "message", "given", "edits", "words", "staged")


class Scene:
    """A run to which workers have handed in every kind of key."""

    def __init__(self, folder: Path) -> None:
        self.site = Site(folder)
        # What checks print is no change of anybody's.
        commit(self.site.repository, "old.txt", _lines(OLD))
        self.run = self.site.open_run(config=Config(policy={}))
        for key in ("file", "message", "words", "failed", "asks", "given"):
            self.site.add(self.run, key, max_attempts=2)
        self.site.add(self.run, "edits", hands_in="text", max_attempts=2)
        self.site.add(self.run, "checked", checks=["cat old.txt; false"], max_attempts=2)
        stage = agent("write", max_visits=2, on_failure="write")
        add(self.site, self.run, "staged", stage, agent("other"))
        self.printed = self.orch("patch", "submit", "-", "--task", "given", stdin=_diff(GIVEN))
        others = [key for key in (*REFUSED, "failed", "asks", "checked") if key != "given"]
        self.items = self.site.dispatch(self.run, *others)
        self.lead()
        self.work()
        self.lead()
        self.site.clock.advance(3600)
        self.again = self.site.dispatch(self.run, "file", "words", "failed", "checked")

    def lead(self) -> None:
        self.site.scheduler.reconcile(self.run)

    def work(self) -> None:
        site, items = self.site, self.items
        site.deliver(items["file"], "settings.py", _lines(FILE))
        folder = items["message"]["worktree"]
        commit(folder, "a.txt", "one\n")
        git(folder, "commit", "-q", "--amend", "-m", "Do it\n\n" + _lines(MESSAGE))
        site.done(items["message"])
        edits = [{"path": "settings.py", "content": _lines(EDITS)}]
        self.done("edits", payload=json.dumps({"edits": edits}))
        commit(items["words"]["worktree"], "a.txt", "two\n")
        self.done("words", body="Done, with " + _lines(WORDS))
        site.deliver(items["checked"], "a.txt")
        site.fail(items["failed"], "It was refused: " + _lines(FAILED))
        token = site.claim(items["asks"])
        site.worker.ask(items["asks"]["thread"], token, body="Which of " + _lines(ASKED))
        course = Course(site, self.run, "staged")
        course.work(settings_py=_lines(FIRST), body=_lines(FIRST))
        self.told = course.text()
        course.work(settings_py=_lines(SECOND))

    def done(self, key: str, **said: str) -> None:
        item = self.items[key]
        self.site.worker.done(item["thread"], self.site.claim(item), **{"body": "done", **said})

    def orch(self, *words: str, stdin: bytes = b"") -> str:
        """All that a command prints."""
        done = command(*words, folder=self.site.repository, program="orch", stdin=stdin)
        assert b"Traceback" not in done.stderr and done.code in (0, 8, 9, 11), (words, done)
        return (done.stdout + done.stderr).decode()


def _lines(keys: list[str]) -> str:
    return "".join(f"{key}\n" for key in keys)


def _diff(keys: list[str]) -> bytes:
    lines = _lines(keys).splitlines()
    added = "".join(f"+{line}\n" for line in lines)
    head = "diff --git a/new.py b/new.py\nnew file mode 100644\n--- /dev/null\n+++ b/new.py\n"
    return f"{head}@@ -0,0 +1,{len(lines)} @@\n{added}".encode()


def seen(text: str | bytes) -> list[str]:
    """The kinds of keys of which the last letters, or a whole line, stand in a text."""
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return [
        kind
        for kind, key in KEYS.items()
        if key[-16:] in text or any(line in text for line in key.split("\n"))
    ]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    made = Scene(tmp_path_factory.mktemp("keys"))
    yield made
    made.site.close()


def test_each_is_refused_by_the_rule_and_kept_where_it_was_handed_in(scene: Scene):
    for key in REFUSED:
        every = views.listed(scene.site.scheduler.desk, scene.run, [key])
        assert {each.state for each in every} == {"quarantined"}, key
        assert {o["rule"] for each in every for o in each.objections} == {"secrets"}, key
    repository = scene.site.repository
    kept = git(repository, "for-each-ref", "--format=%(refname)", "refs/orch/attempts").split()
    there = "".join(git(repository, "log", "-m", "-p", "--format=%B", name) for name in kept)
    assert set(seen(there)) >= _kinds([*FILE, *MESSAGE, *FIRST])
    assert len({*FILE, *MESSAGE, *GIVEN, *EDITS, *WORDS, *FIRST, *SECOND}) >= 12
    assert set(seen(scene.orch("patch", "export", "given/1/1"))) >= _kinds(GIVEN)


def _kinds(keys: list[str]) -> set[str]:
    return {kind for kind, key in KEYS.items() if key in keys}


def test_the_next_worker_is_told_why_and_not_what(scene: Scene):
    assert "secrets" in scene.told and seen(scene.told) == []
    for item in scene.again.values():
        first = scene.site.scheduler.bus.messages(item["thread"])[0]
        files = [scene.site.scheduler.bus.artifacts.path(each.sha256) for each in first.artifacts]
        assert "Earlier attempts" in str(first.body)
        assert seen(str(first.body)) == [], item["key"]
        assert [seen(Path(file).read_bytes()) for file in files] == [[] for _ in files]


def test_the_database_has_them_in_what_workers_said_alone(scene: Scene):
    path = scene.site.office.path
    leader = scene.run.leader
    told = outside.rows(path, "SELECT body, payload FROM message WHERE sender = ?", (leader,))
    tables = {**outside.contents(path), "message": told}
    assert len(tables) > 20
    found = {name: seen(repr(rows)) for name, rows in tables.items()}
    assert {name: kinds for name, kinds in found.items() if kinds} == {}


def test_files_beside_it_have_them_only_where_they_were_handed_in(scene: Scene):
    path = scene.site.office.path
    handed_in = {row[0] for row in outside.rows(path, "SELECT text FROM patch WHERE text NOTNULL")}
    said = {row[0] for row in outside.rows(path, "SELECT body_sha256 FROM message")}
    files = [f for f in path.parent.rglob("*") if f.is_file() and path.name not in f.name]
    having = {file.parent.name + file.name for file in files if seen(file.read_bytes())}
    assert len(handed_in) == 2 and having - said == handed_in


TWICE = (
    ("status",), ("report",), ("blocked",), ("patch", "list"), ("task", "show", "staged"),
    ("task", "show", "words"), ("attempt", "show", "failed/1"), ("patch", "show", "message/1/1"),
    ("policy", "check", "message/1/1"), ("logs", "words/1"), ("logs", "checked/1"),
)  # fmt: skip
ONCE = (
    ("events",), ("report", "--html"), ("show", "asks/1"), ("patch", "show", "file/1/1", "--diff"),
    ("patch", "show", "given/1/1", "--diff", "--json"), ("diff", "file/1"), ("logs", "asks"),
    ("diff", "file/1", "--stat"), ("logs", "edits/1"), ("logs", "staged"), ("attempt", "list"),
    ("patch", "log", "staged/1/1"), ("checkpoint", "show", "staged/1/2"),
    ("blueprint", "explain", "staged"),
)  # fmt: skip


def test_no_command_prints_them(scene: Scene):
    shown = (*ONCE, *TWICE, *((*words, "--json") for words in TWICE))
    told = {words: seen(scene.orch(*words)) for words in shown}
    assert {words: kinds for words, kinds in told.items() if kinds} == {}
    assert "***" in scene.orch("diff", "file/1")
    assert seen(scene.printed) == [] and "secrets" in scene.printed
    checked = scene.orch("patch", "check", "-", "--task", "file", stdin=_diff(GIVEN))
    assert seen(checked) == [] and "denied" in checked


def test_boards_tools_and_pages_show_none(scene: Scene):
    scheduler, run = scene.site.scheduler, scene.run
    board = scheduler.board(run)
    lines = [*view.task_lines(board, board.status.rows, 300)]
    lines += view.question_lines(board, view.Place(), 9)
    for row in board.status.rows:
        near = detail(scheduler.desk, run, row.standing.task.key)
        lines += detail_lines(board, row, near, 300)
    assert len(lines) > 60
    assert seen("\n".join("".join(text for text, _ in line) for line in lines)) == []
    assert seen(page(scheduler.report(run, most=50))) == []
    tool = Caller(scene.site.office.path, "boss", "orch")
    named = {"task": "words"}
    answers = [tool("status"), tool("blocked"), tool("task_show", **named)]
    assert all(answer["ok"] for answer in answers)
    assert seen(json.dumps(answers)) == []


def test_a_notice_tells_of_them_without(scene: Scene, tmp_path: Path):
    file = tmp_path / "notices"
    printed = scene.orch(
        *("drive", "--wait", "0", "--notify", f"cat >> {file}", "--json", "--no-verify")
    )
    notices = [json.loads(line) for line in io.StringIO(file.read_text())]
    assert {each["type"] for each in notices} >= {"question", "decision"}
    assert seen(file.read_bytes()) == [] and seen(printed) == []
