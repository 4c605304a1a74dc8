"""`orch answer --decide` with what an answer takes beside its name."""

from collections.abc import Iterator

import pytest

from inbox_orch.orch.runs.config import Config
from support.commands import Outcome, run
from support.runs import Site
from support.stages import Course, add, agent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Three tasks whose work was refused, each for two rules."""
    site = Site(tmp_path_factory.mktemp("decisions"))
    opened = site.open_run(config=Config(policy={"forbid_paths": ["no.txt"], "max_lines": 1}))
    for key in ("a", "b", "c"):
        add(site, opened, key, agent("write"))
        site.dispatch(opened, key)
        Course(site, opened, key).work(no_txt="1\n2\n")
    yield site
    site.close()


def orch(site: Site, *words: str, stdin: bytes = b"") -> Outcome:
    return run(*words, folder=site.repository, program="orch", stdin=stdin)


SPLIT = ("answer", "b", "--decide", "split", "--plan", "-")


@pytest.mark.parametrize("words, message", [
    (("c", "--rule", "max_lines"), "--rule goes with --decide relax alone"),
    (("c", "--plan", "x.yaml"), "--plan goes with --decide split alone"),
    (("c", "--decide", "relax", "--body", "so"), "several rules: forbid_paths, max_lines"),
    (("c", "--decide", "relax", "--rule", "max_lines"), "relax needs a reason"),
    (("c", "--decide", "split"), "split needs the plan of its parts"),
    (("c", "--decide", "split", "--plan", "-", "--body-file", "-"), "cannot both be read"),
])  # fmt: skip
def test_what_does_not_go_together_is_told_and_nothing_is_decided(site: Site, words, message):
    told = orch(site, "answer", "--json", *words)
    assert told.code == 2 and message in told.error["message"] and told.error["hint"]
    (row,) = (r for r in orch(site, "status", "--json").data["items"] if r["key"] == "c")
    assert row["standing"] == "blocked"


def rules(site: Site) -> list[str]:
    """Those that keep the work of `a` out."""
    items = orch(site, "blocked", "--json").data["items"]
    return next(item["decision"]["rules"] for item in items if item["key"] == "a")


def test_each_rule_is_relaxed_by_itself_and_the_work_comes_in(site: Site):
    assert rules(site) == ["forbid_paths", "max_lines"]
    words = ("answer", "a", "--decide", "relax", "--agent", "boss", "--body", "so", "--rule")
    told = orch(site, *words, "max_lines")
    assert told.text.split("\t")[::2] == ["a", "relax\n"]
    orch(site, "reconcile")
    assert rules(site) == ["forbid_paths"]
    done = orch(site, *words, "forbid_paths", "--json").data
    assert (done["rule"], done["left"]) == ("forbid_paths", [])
    orch(site, "reconcile")

    (row,) = (r for r in orch(site, "status", "--json").data["items"] if r["key"] == "a")
    assert row["standing"] == "succeeded"
    visits = orch(site, "attempt", "show", "a", "--json").data["visits"]
    assert [v["decision"]["rule"] for v in visits if v["kind"] == "decision"] == [
        "max_lines",
        "forbid_paths",
    ]


def test_a_plan_of_parts_is_read_as_any_plan_and_told_with_its_lines(site: Site):
    bad = b"tasks:\n  - task: b\n    title: Again\n"
    told = orch(site, *SPLIT, stdin=bad)
    assert told.code == 4 and ":2: " in told.stderr.decode()
    assert "the run has a task `b` already" in told.stderr.decode()
    good = b"tasks:\n  - task: b1\n    title: One\n"
    done = orch(site, *SPLIT, "--json", stdin=good).data

    assert done["parts"] == ["b1"]
    shown = orch(site, "task", "show", "b", "--json").data
    assert shown["task"]["state"] == "skipped"
    assert shown["task"]["reason"] == "split into b1 by leader"
    (event,) = orch(site, "events", "--kind", "task_skipped").text.splitlines()
    assert event.split("\t")[3:] == ["b", "leader", "split into b1 by leader"]
    assert "b1" in orch(site, "ready").text
