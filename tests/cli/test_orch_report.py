"""`orch report`: what became of a run, as text and as a page that nothing breaks out of."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from inbox_orch.orch.pictures.drawing import COLOURS
from inbox_orch.shared.shell.texts import packaged
from support.orch_matrix import Enterprise, the_run
from support.runs import add_task, commit, git, run_init

HOSTILE = (
    "</pre></title></style><script>alert(1)</script><img src=x onerror=alert(2)> \u202e\x9b31m"
)
VOID = {"meta", "img", "br", "hr", "link", "input", "base"}


class Page(HTMLParser):
    """The elements of a page, their attributes and its text. Fails where they are not nested."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        within = self._open[-1] if self._open else ""
        self.texts[within] = self.texts.get(within, "") + data


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Enterprise:
    """A run in which one task has work and a cost, and one asks; all texts are hostile."""
    made = Enterprise(tmp_path_factory.mktemp("report") / "project")
    with made.scheduler() as scheduler:
        run_init(
            scheduler,
            title="A <b>run</b> & more",
            repository=str(made.folder),
            worktree_root=str(made.state),
        )
        for key in ("a", "b"):
            title = "<script>alert(0)</script>"
            add_task(scheduler, the_run(scheduler), key_name=key, title=title)
        items = {i["key"]: i for i in scheduler.dispatch(the_run(scheduler)).items}
    commit(items["a"]["worktree"], "file.txt", "one\ntwo\n")
    with made.bus("w1") as bus:
        held = bus.claim(items["a"]["thread"], mailboxes=["workers"])
        payload = json.dumps({"cost_usd": 0.25, "usage": {"input_tokens": 7, "output_tokens": 2}})
        bus.done(held.thread.id, str(held.lease.token), body=HOSTILE, payload=payload)
        held = bus.claim(items["b"]["thread"], mailboxes=["workers"])
        bus.ask(held.thread.id, str(held.lease.token), body=HOSTILE, options=["<i>", "&amp;"])
    with made.scheduler() as scheduler:
        scheduler.reconcile(the_run(scheduler))
        scheduler.answer(the_run(scheduler), "b", body="first\n" + HOSTILE)
    return made


@pytest.fixture(scope="module")
def text(project: Enterprise) -> str:
    return project.orch("report", "--html").text


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Enterprise:
    """A run with work that was accepted, and one task for each way of needing somebody."""
    made = Enterprise(tmp_path_factory.mktemp("report") / "project")
    made.open_run()
    with made.scheduler() as scheduler:
        run = the_run(scheduler)
        for key, more in {
            "ask": {},
            "broken": {"max_attempts": 1},
            "after": {"depends_on": ["broken"]},
            "left": {},
            "right": {},
            "both": {"depends_on": ["left", "right"]},
        }.items():
            add_task(scheduler, run, key_name=key, title=f"Do {key}", **more)
        items = {i["key"]: i for i in scheduler.dispatch(run).items}
    for key in ("left", "right"):
        commit(items[key]["worktree"], "same.txt", f"{key}\n")
    with made.bus("w1") as bus:
        tokens = {k: str(bus.claim(i["thread"], mailboxes=["workers"]).lease.token)
                  for k, i in items.items()}  # fmt: skip
        bus.ask(items["ask"]["thread"], tokens["ask"], body="Which\none?", options=["red", "blue"])
        bus.fail(items["broken"]["thread"], tokens["broken"], body="no grammar")
        bus.done(items["left"]["thread"], tokens["left"], body="Wrote it.\n\nWith care.")
        bus.done(items["right"]["thread"], tokens["right"], body="Wrote it, too.")
    with made.scheduler() as scheduler:
        scheduler.reconcile(the_run(scheduler))
        scheduler.dispatch(the_run(scheduler))  # finds the conflict
    return made


def shown_to_people(project: Enterprise, *words: str) -> list[str]:
    """The report as lines of a wide terminal, without what differs from run to run."""
    as_people_read = {"FORCE_COLOR": "1", "NO_COLOR": "1", "COLUMNS": "160"}
    text = project.orch("report", *words, **as_people_read).text
    text = re.sub(r"a-run-\w{8}", "a-run-0", text)
    text = re.sub(r"\bunder 1 s|\b\d+ s\b|\b\d+ min( \d+ s)?\b", "1 s", text)
    return [re.sub(r"  +", "  ", line).rstrip() for line in text.splitlines()]


def test_people_read_what_needs_them_first_and_then_the_results(waiting: Enterprise):
    asked = "ask  blocked  w1 asks: Which one? (red | blue)"
    base = "merge by hand, then `orch dispatch --run a-run-0 both --base COMMIT`"
    counts = "1 blocked, 1 failed, 1 unreachable, 2 succeeded, 1 base_conflict"
    again = "`orch retry --run a-run-0 broken` tries again"
    assert shown_to_people(waiting) == [
        "A run (a-run-0): running",
        f"{counts}, 4 attempts, 1 question, took 1 s",
        "NEEDS YOU  STATE  WHY  WHAT TO DO",
        f"{asked}  `orch answer --run a-run-0 ask --body TEXT` answers",
        f"broken  failed  attempt 1 failed: no grammar  {again}",
        f"both  base_conflict  conflict in same.txt  {base}",
        "after  unreachable  because of broken  –",
        "",
        "RESULT  WHO  CHANGES  TOOK  MESSAGE",
        "left  w1  +1 -0 in 1 file  1 s  Wrote it. With care.",
        "right  w1  +1 -0 in 1 file  1 s  Wrote it, too.",
        "",
        "OTHER ATTEMPT  STATE  WHO  TOOK  WHY",
        "ask/1  blocked  w1  1 s  –",
        "broken/1  failed  w1  1 s  no grammar",
    ]


def test_a_report_without_work_has_no_empty_sections(tmp_path: Path):
    project = Enterprise(tmp_path / "project")
    project.open_run()

    assert shown_to_people(project) == ["A run (a-run-0): running", "no tasks"]
    page = Page(project.orch("report", "--html").text)
    assert "h2" not in {tag for tag, _ in page.elements}


def test_what_was_not_done_in_a_closed_run_is_not_called_ready(tmp_path: Path):
    project = Enterprise(tmp_path / "project").tasks("a", "b")
    people = {"FORCE_COLOR": "1", "NO_COLOR": "1"}

    closed = project.orch("run", "close", **people).text

    assert re.fullmatch(r"Closed run a-run-\w{8}: failed\n", closed)
    assert shown_to_people(project) == ["A run (a-run-0): failed", "2 not done"]
    assert ": failed. 2 not done" in project.orch("status", **people).text


def test_needs_are_named_in_json(waiting: Enterprise):
    assert waiting.orch("report", "--json").data["needs"] == ["ask", "broken", "both", "after"]


def test_answered_questions_are_told_to_people(project: Enterprise):
    (asked,) = [line for line in shown_to_people(project) if line.startswith("b/1  w1 asks: ")]

    assert "  first </pre></title>" in asked


def test_the_page_tells_what_needs_somebody_then_results_then_all_the_rest(waiting: Enterprise):
    text = waiting.orch("report", "--html").text

    assert re.findall(r"<h2>(.*?)</h2>", text) == [
        *("Needs you", "Results", "What waits for what", "Attempts over time", "Tasks"),
    ]
    needs, results = text.split("<h2>Needs you</h2>")[1].split("<h2>What")[0].split("<h2>Results")
    assert "<pre>Which\none?</pre>" in needs and "Offered: red | blue" in needs
    assert re.search(r"orch retry --run a-run-\w{8} broken tries again", needs)
    assert "conflict in same.txt" in needs
    assert "<summary>Wrote it. With care.</summary><pre>Wrote it.\n\nWith care.</pre>" in results
    assert "<summary>+1 −0 in 1 file</summary><pre>+1 −0 same.txt</pre>" in results


def test_every_box_of_the_graph_leads_to_its_task(waiting: Enterprise):
    page = Page(waiting.orch("report", "--html").text)

    links = [a["href"] for tag, a in page.elements if tag == "a"]
    places = {a["id"] for _, a in page.elements if "id" in a}
    keys = ("ask", "broken", "after", "left", "right", "both")
    assert {f"#task-{key}" for key in keys} == set(links)
    assert {link.removeprefix("#") for link in links if link is not None} <= places


def test_changes_are_told_after_clean_up_and_that_they_are_gone_when_they_are(tmp_path: Path):
    project = Enterprise(tmp_path / "project")
    item = project.dispatched()
    commit(item["worktree"], "file.txt", "one\n")
    with project.bus("w1") as bus:
        token = str(bus.claim(item["thread"], mailboxes=["workers"]).lease.token)
        bus.done(item["thread"], token, body="Done.")
    assert project.orch("reconcile").code == 0
    assert project.orch("integrate", "--onto", "main").code == 0
    assert project.orch("cleanup").code == 0
    whole = "a  w1  +1 -0 in 1 file  1 s  Done."
    assert whole in shown_to_people(project)

    for ref in git(project.folder, "for-each-ref", "--format=%(refname)").splitlines():
        if ref != "refs/heads/main":
            git(project.folder, "update-ref", "-d", ref)
    git(project.folder, "reset", "--quiet", "--hard", "HEAD^")
    git(project.folder, "reflog", "expire", "--expire=now", "--all")
    git(project.folder, "prune", "--expire=now")

    assert "a  w1  commits are gone  1 s  Done." in shown_to_people(project)
    assert "its commits are gone from the repository" in project.orch("report", "--html").text
    assert [i["changed"] for i in project.orch("report", "--json").data["items"]] == [None]


def test_a_report_tells_of_work_costs_and_answers(project: Enterprise):
    data = project.orch("report", "--json").data

    told = {item["key"]: item for item in data["items"]}
    assert told["a"]["changed"] == {"files": 1, "added_lines": 2, "removed_lines": 0}
    assert told["a"]["cost"] == {"usd": 0.25, "input_tokens": 7, "output_tokens": 2}
    assert (told["b"]["changed"], told["b"]["cost"]) == (None, None)
    assert data["cost"] == told["a"]["cost"]
    assert data["counts"] == {"succeeded": 1, "active": 1}
    assert "decisions" not in data, "there is no blueprint"
    (exchange,) = data["questions"]
    assert exchange["name"] == "b/1"
    assert exchange["question"]["options"] == ["<i>", "&amp;"]
    assert exchange["answer"]["body"].startswith("first\n")


def test_a_report_is_readable_in_a_pipe(project: Enterprise):
    rows = [line.split("\t") for line in project.orch("report").text.splitlines()]

    assert ["outcome", "running"] in rows
    assert ["reported usd", "0.25"] in rows
    assert any(
        row[:2] == ["a/1", "succeeded"] and row[3:7] == ["1", "2", "0", "0.25"] for row in rows
    )


def test_the_page_holds_what_was_said_as_text_and_nothing_else(text: str):
    page = Page(text)

    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "img", "iframe", "object", "link", "base", "form", "b", "i"}
    assert page.texts["pre"].count("<script>alert(1)</script><img src=x onerror=alert(2)>") == 2
    assert not {"\u202e", "\x9b", "\x1b"} & set(text)
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
    addresses = set(re.findall(r"https?://[^\s\"<]*", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}


def test_the_pages_policy_allows_its_own_style_and_nothing_else(text: str):
    page = Page(text)
    policies = [a["content"] for t, a in page.elements if a.get("http-equiv")]
    digest = base64.b64encode(hashlib.sha256(page.texts["style"].encode()).digest()).decode()

    assert policies == [
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    ]


def test_the_page_goes_to_a_file_and_loses_what_it_cannot_show(project: Enterprise, tmp_path: Path):
    ended = project.orch("report", "--html", "--output", str(tmp_path / "r.html"), "--json")

    assert ended.data["format"] == "html"
    assert Page((tmp_path / "r.html").read_text()).texts["title"].startswith("A <b>run</b> & more")
    assert project.orch("report", "--output", "x", "--json").error["code"] == "usage"
    assert project.orch("report", "--html", "--output", str(project.path), "--json").code == 2


def test_older_attempts_are_counted(project: Enterprise):
    ended = project.orch("report", "--html", "--limit", "1")

    assert b"1 older attempt is left out" in ended.stderr
    assert "1 older attempt is left out" in ended.text


def test_a_run_without_its_repository_is_reported(tmp_path: Path):
    project = Enterprise(tmp_path / "project")
    project.dispatched()
    (project.folder / ".git").rename(project.folder / "elsewhere")

    data = project.orch("report", "--json").data
    assert [item["changed"] for item in data["items"]] == [None]
    assert "<html" in project.orch("report", "--html").text


def test_every_colour_has_one_for_the_dark():
    dark = packaged("inbox_orch.orch", "report.css").split("prefers-color-scheme: dark")[1]

    assert {fill for fill, _ in COLOURS.values()} <= set(re.findall(r'\[fill="(#\w+)"\]', dark))
