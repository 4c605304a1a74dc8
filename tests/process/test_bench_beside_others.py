"""`script/bench` without a part: what it writes, and that nobody who hangs or fails can stop it.

The peers themselves are not here in a test: they need a package index.
"""

import argparse
import importlib
import json
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest

from support.timing import PATIENCE_SECONDS

FOLDER = Path(__file__).resolve().parents[2] / "script" / "benchmarks"
FACTS = {
    "machine": {
        "processors": 2,
        "processor": "a processor",
        "kernel": "Linux",
        "python": "3",
        "sqlite": "3",
        "git": "2",
        "load_before": 0.1,
    },
    "date": "2026-01-01",
    "command": "script/bench",
    "network": "no network",
    "releases": {"fast": "1.0"},
    "minutes": 1.0,
}


@pytest.fixture
def module(monkeypatch):
    """Gives a module of the benchmarks by its name; they import each other by plain names."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(FOLDER))

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    yield load
    for name in set(sys.modules) - before:
        if str(FOLDER) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


def a_result(module, **changes: Any) -> dict[str, Any]:
    results = module("results")
    rows = [
        results.as_row("inbox", {"ms": 10.0}),
        results.as_row("fast", {"ms": 5.0}, note="does less"),
        results.as_row("level", {"ms": 9.8}),
        results.as_row("slow", {"ms": 4_000.0}),
        results.as_row("floor", {"ms": 1.0}, floor=True),
        results.as_row("mute", cannot="has no list"),
        results.as_row("dumb", cannot="has no list"),
    ]
    given = {
        "title": "Listing with `list`",
        "did": "Medians.",
        "unit": "ms",
        "columns": {"ms": "ms"},
        "compared": ["ms"],
        "rows": rows,
    }
    return results.result("listing", **{**given, **changes})


def test_what_is_ahead_is_said_and_what_differs_by_chance_is_called_level(module):
    pages = module("pages")

    assert pages.said(a_result(module)) == "Ahead: fast (2 times); level: level."
    assert pages.said(a_result(module, less_is_better=False)) == (
        "Ahead: slow (400 times); level: level."
    )
    exact = a_result(module, exact=True, less_is_better=False)
    assert pages.said(exact) == "Ahead: slow (400 times)."
    ours_alone = a_result(module, rows=a_result(module)["rows"][:1])
    assert pages.said(ours_alone) == "Nobody who can do this is ahead."


def test_who_costs_nothing_that_could_be_measured_is_ahead(module):
    results, pages = module("results"), module("pages")
    rows = [
        results.as_row("inbox", {"ms": 0.3}),
        results.as_row("silent", {"ms": 0.0}),
        results.as_row("loud", {"ms": 5.0}),
    ]
    assert pages.said(a_result(module, rows=rows)) == (
        "Ahead: silent (nothing could be measured of it)."
    )
    all_silent = [results.as_row(name, {"ms": 0.0}) for name in ("inbox", "silent")]
    assert pages.said(a_result(module, rows=all_silent)) == "Level: silent."


def test_who_is_faster_in_one_turn_and_slower_in_another_is_level(module):
    results, pages = module("results"), module("pages")
    rows = [results.as_row("orch", {"ms": 5.0}), results.as_row("git", {"ms": 8.0})]

    def said(gits: list[float]) -> str:
        turns = {"orch": [5.0] * len(gits), "git": gits}
        return pages.said(a_result(module, rows=rows, turns=turns))

    assert said([8.0, 4.0]) == said([8.0, 8.0, 8.0, 8.0, 4.0, 4.0]) == "Level: git."
    assert said([8.0, 8.0, 8.0, 8.0, 8.0, 4.0]) == "Nobody who can do this is ahead."


def test_everybody_comes_as_often_before_another_as_after_it(module):
    in_turn = module("job_git").in_turn

    orders = ["".join(in_turn(["a", "b", "c"], turn)) for turn in range(6)]

    assert orders == ["abc", "cba", "bca", "acb", "cab", "bac"]


def test_calls_are_compared_with_calls_and_commands_with_commands(module):
    results = module("results")
    rows = [
        results.as_row("inbox", {"ms": 50.0}),
        results.as_row("inbox (call)", {"ms": 1.0}),
        results.as_row("peer", {"ms": 60.0}),
        results.as_row("peer (call)", {"ms": 0.5}),
    ]
    assert results.compared_with_ours(a_result(module, rows=rows)) == [
        ("peer (call)", 2.0),
        ("peer", 50 / 60),
    ]


def test_an_item_that_two_processes_had_counts_once_in_the_throughput(module):
    throughput = module("throughput")
    first = [{"items": ["a", "b", "c"], "calls": [0.1]}, {"items": ["a"], "calls": [0.1]}]
    second = [{"items": ["c", "d"], "calls": [0.1]}, {"items": ["e"], "calls": [0.1]}]
    options = argparse.Namespace(items=10, processes=2, seconds=2.0, turns=2)

    figures = throughput.in_figures("inbox", [first, second], 5, options)

    assert figures["per_second"] == 5 / 4
    assert figures["per_second_by_turn"] == [3 / 2, 2 / 2]
    assert figures["taken_by_process"] == [[3, 1], [2, 1]]
    assert (figures["taken"], figures["duplicates"], figures["lost"]) == (7, 2, 0)


def test_an_item_that_two_loops_had_counts_once_in_the_drain_by_commands(module):
    job_commands, tools = module("job_commands"), module("tools")
    loops = [
        {"items": ["a", "b"], "refused": 0, "failed": None, "seconds": 2.0},
        {"items": ["b", "c", "d"], "refused": 1, "failed": None, "seconds": 2.0},
    ]

    row = job_commands.drained(tools.AgentMail, [loops], 4)

    assert row["values"] == {"per_second": 2.0, "refused": 1, "duplicates": 1, "lost": 0}


def test_the_drain_by_commands_keeps_its_commands_and_the_count_of_every_loop(module, tmp_path):
    (found,) = module("job_commands").drain(tmp_path, None, quick=True)

    given = found["commands"]["inbox"]
    assert [given[step][0].split()[:2] for step in ("take", "done")] == [
        ["inbox", "claim"],
        ["inbox", "done"],
    ]
    (turn,) = found["raw"]["inbox"]
    (ours,) = (row for row in found["rows"] if row["name"] == "inbox")
    rate = sum(loop["counted"] / loop["seconds"] for loop in turn)
    assert ours["values"]["per_second"] == pytest.approx(rate)
    assert ours["values"]["duplicates"] == ours["values"]["lost"] == 0


def test_a_part_of_the_page_is_replaced_and_the_rest_stays(module, tmp_path):
    pages = module("pages")
    page = tmp_path / "benchmarks.md"
    mark = "<!-- figures: {}, made by script/bench -->\nold\n<!-- end of figures -->\n"
    page.write_text(f"# Top\n\n{mark.format('listing')}\nBy hand.\n\n{mark.format('other')}")

    for _ in range(2):
        pages.write(tmp_path, a_result(module), FACTS)

    text = page.read_text()
    assert text.count("old") == 1
    assert text.count("![Listing with `list`](benchmarks/listing.svg)") == 1
    assert "By hand." in text
    assert "| mute, dumb | has no list |" in " ".join(text.split())
    stored = json.loads((tmp_path / "benchmarks" / "listing.json").read_text())
    assert stored["machine"] == FACTS["machine"]
    assert [row["name"] for row in stored["rows"]][:2] == ["inbox", "fast"]


def test_a_picture_has_a_bar_for_each_figure_on_a_scale_that_shows_the_shortest(module):
    charts = module("charts")
    text = charts.drawn(a_result(module))

    picture = ElementTree.fromstring(text)
    bars = [
        (each.get("class").split()[0], float(each.get("width")))
        for each in picture.iter("{http://www.w3.org/2000/svg}rect")
        if each.get("class") != "ground"
    ]
    assert [kind for kind, _ in bars] == ["ours", "theirs", "theirs", "theirs", "floor"]
    lengths = [length for _, length in bars]
    assert lengths[3] == max(lengths)
    assert lengths[4] == min(lengths) > 1
    assert "ms (logarithmic)" in text
    assert "prefers-color-scheme: dark" in text
    assert "`" not in text


def test_nobody_with_a_figure_is_no_picture(module):
    results = module("results")
    rows = [results.as_row("mute", cannot="has no list")]
    assert module("charts").drawn(a_result(module, rows=rows)) == ""


def test_a_tool_that_hangs_or_fails_is_named_and_left_out(module, tmp_path, monkeypatch):
    tool = module("tool")
    for name, text in (("hangs", "exec sleep 60"), ("fails", "echo no >&2; exit 3")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)

    class Hanging(tool.Tool):
        name = package = "hangs"

    class Failing(tool.Tool):
        name = package = "fails"

    with pytest.raises(tool.Refused, match=r"^`fails --version`: exit 3 no$"):
        Failing(tmp_path, f"{tmp_path}/").timed("version")
    monkeypatch.setattr(tool, "LIMIT_SECONDS", 0.2)
    with pytest.raises(tool.Refused, match=r"^`hangs --version` hung for 0.2 s$"):
        Hanging(tmp_path, f"{tmp_path}/").timed("version")


def test_a_job_that_takes_too_long_is_stopped_with_all_its_processes(module, monkeypatch):
    compare, peers = module("compare"), module("peers")
    monkeypatch.setitem(compare.JOBS, "startup", compare.Job("job_commands", "startup", 0.05))
    no_fence = peers.Fence((), peers.dead_proxies(), "proxies")

    began = time.monotonic()
    assert compare.done("startup", no_fence, None, quick=True) == []
    assert time.monotonic() - began < 200


def test_a_waiter_that_looks_at_intervals_is_met_in_every_part_of_one(module):
    moments = module("job_waits").moments

    found = moments("slow", 5, 10.0)

    assert sorted(int(moment // 2) for moment in found) == [0, 1, 2, 3, 4]
    assert found == moments("slow", 5, 10.0)
    assert found != sorted(found)
    assert found != moments("other", 5, 10.0)


def test_everybody_who_can_lists_as_many_and_who_cannot_says_so(module):
    contenders, tools = module("contenders"), module("tools")
    assert tools.LISTED == contenders.LISTED

    def listed(kind: type) -> list[str]:
        words: list[str] = []

        class Listing(kind):
            def run(self, *given: str, accepts: tuple[int, ...] = (0,)) -> bytes:
                words.extend(given)
                return b"[]"

        Listing(Path("store"), "").listing()
        return words

    assert listed(tools.Inbox)[-3:-1] == listed(tools.AgentMail)[2:4] == ["--limit", "50"]
    without = [kind for kind in tools.TOOLS if "--limit" not in listed(kind)]
    assert all("no limit" in kind.notes["listing"] or "counts only" in kind.notes["listing"]
               for kind in without)  # fmt: skip


def test_a_group_with_both_stances_is_split_and_the_best_threshold_kept(module):
    job_tally = module("job_tally")
    items = {name: job_tally.labelled(name)[0] for name in job_tally.SETS}
    all_in_one = {name: [[list(range(len(them)))]] * 18 for name, them in items.items()}

    merged = job_tally._best("all", all_in_one, by_stance=False)
    split = job_tally._best("all", all_in_one, by_stance=True)

    a_set = items["set_a"]
    halves = job_tally.split_by_stance([a_set, a_set[:1]])
    assert [len({item.stance for item in half}) for half in halves] == [1, 1, 1]
    assert sorted(map(len, halves)) == sorted([1, *map(len, halves[:2])])
    assert sum(map(len, halves)) == len(a_set) + 1
    assert split["threshold"] == job_tally.GRID[0]
    opposed = [sum(one["opposed_merged"] for one in best["sets"]) for best in (merged, split)]
    assert opposed[0] > opposed[1]
    assert len(split["f1_by_threshold"]) == len(job_tally.GRID) == 18


def test_a_waiter_that_looks_less_and_less_often_says_in_which_phase_it_was(module, tmp_path):
    job_waits, tool, waiters = module("job_waits"), module("tool"), module("waiters")
    cost = job_waits.Cost([0.1], [1], (12.0, 20.0), (11.0, 19.0))

    def noted(name: str) -> str | None:
        store = tool.Tool(tmp_path, "")
        waiting = waiters.Waiting(name, store, lambda n: ["true"], sends=name, note="looks")
        return job_waits._note_of_idle(waiting, cost, 10.0)

    assert noted("huey (call)") == "looks; while this was measured, about every 1.6 to 3.1 s"
    assert noted("agent-mail") == "looks"


def test_turns_end_with_their_time_but_not_before_three(module):
    turns = module("common").Turns(10, seconds=0)
    assert list(turns) == [0, 1, 2]
    assert turns.done == 3
    assert list(module("common").Turns(2, seconds=60)) == [0, 1]


def test_the_one_command_writes_a_page_pictures_and_figures(tmp_path):
    command = [sys.executable, FOLDER / "compare.py", "--quick", "--no-peers", "--pages", tmp_path]
    done = subprocess.run(
        [*command, "--only", "startup", "commands"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stderr

    page = (tmp_path / "benchmarks.md").read_text()
    assert "](benchmarks/startup.svg)" in page
    assert "a library: has no command for it" in page
    figures = json.loads((tmp_path / "benchmarks" / "commands.json").read_text())
    (ours,) = (row for row in figures["rows"] if row["name"] == "inbox")
    assert set(ours["values"]) == {"send", "claim", "done", "all"}
    assert [line.split()[:2] for line in figures["commands"]["inbox"]["claim"]] == [
        ["inbox", "claim"]
    ]
    assert str(FOLDER.parents[1]) not in page + json.dumps(figures)
