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
from support.runs import add_task, commit, run_init

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


def test_a_report_tells_of_work_costs_and_answers(project: Enterprise):
    data = project.orch("report", "--json").data

    told = {item["key"]: item for item in data["items"]}
    assert told["a"]["changed"] == {"files": 1, "added_lines": 2, "removed_lines": 0}
    assert told["a"]["cost"] == {"usd": 0.25, "input_tokens": 7, "output_tokens": 2}
    assert (told["b"]["changed"], told["b"]["cost"]) == (None, None)
    assert data["cost"] == told["a"]["cost"]
    assert data["counts"] == {"succeeded": 1, "active": 1}
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
    assert not tags & {"script", "img", "iframe", "object", "link", "base", "form", "a", "b", "i"}
    assert page.texts["pre"].count("<script>alert(1)</script><img src=x onerror=alert(2)>") == 2
    assert not {"\u202e", "\x9b", "\x1b"} & set(text)
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        assert not {"src", "href"} & set(attributes)
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

    assert b"1 older attempts are left out" in ended.stderr
    assert "1 older attempts are left out" in ended.text


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
