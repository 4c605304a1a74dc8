"""The benchmarks run, and their figures have the shape that docs/benchmarks.md explains.

How fast anything is, no test says: a busy machine is no failure.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.timing import PATIENCE_SECONDS

FOLDER = Path(__file__).resolve().parents[2] / "script" / "benchmarks"


def bench(name: str, tmp_path: Path, *options: str) -> dict:
    """The raw figures of a quick run."""
    output = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, FOLDER / f"{name}.py", "--quick", *options, "--output", output],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    return json.loads(output.read_text())


def test_startup_measures_each_command_that_has_a_promise(tmp_path):
    commands = bench("startup", tmp_path)["commands"]

    promised = {name for name, command in commands.items() if command["allowed"]}
    assert promised == {"send", "fetch", "claim", "renew", "update", "show", "done", "prime"}
    assert all(command["wall"]["count"] == 2 for command in commands.values())
    assert commands["base"]["ratio"] == 1


def test_startup_measures_two_installs_in_pairs(tmp_path):
    folder = Path(sys.executable).parent
    pairs = bench("startup", tmp_path, "--before", str(folder))["pairs"]

    assert {"claim", "fetch", "renew", "update", "done", "send", "prime"} <= pairs.keys()
    for pair in pairs.values():
        for figures in (pair["wall"], pair["processor"]):
            assert figures["before"]["count"] == figures["after"]["count"] == 2
            assert figures["ratio"] > 0


def test_scale_compares_the_largest_size_with_the_smallest(tmp_path):
    operations = bench("scale", tmp_path, "--part", "operations")["operations"]

    names = {(f["operation"], f["synced"]) for f in operations}
    assert {("claim", True), ("claim", False), ("fetch", True), ("list", False)} <= names
    assert all(list(f["sizes"]) == ["20", "200"] for f in operations)


def test_watchers_of_the_scale_benchmark_see_every_write(tmp_path):
    log = bench("scale", tmp_path, "--part", "log")["log"]

    assert log["least_events_seen"] == log["most_events_seen"] == log["writes"]
    assert 0 < log["largest_log_bytes"] <= log["allowed_log_bytes"]


def test_no_item_of_the_throughput_benchmark_is_lost_or_taken_twice(tmp_path):
    contenders = bench("throughput", tmp_path)["contenders"]

    ours = contenders["inbox"]
    assert (ours["lost"], ours["duplicates"], ours["failed_processes"]) == (0, 0, 0)
    assert all(contender["taken"] > 0 for contender in contenders.values())


@pytest.mark.parametrize("done, pending", [(3, 4), (1, 1)])
def test_a_stocked_database_is_as_the_services_would_have_made_it(tmp_path, done, pending):
    path = tmp_path / ".inbox" / "bus.db"
    program = "import sys, stock; stock.stock(stock.Path(sys.argv[1]), done=%d, pending=%d)"
    subprocess.run(
        [sys.executable, "-c", program % (done, pending), path],
        cwd=FOLDER,
        check=True,
        timeout=PATIENCE_SECONDS,
    )
    inbox = Path(sys.executable).parent / "inbox"

    verified = subprocess.run(
        [inbox, "doctor", "--verify", "--json", "--db", path],
        capture_output=True,
        timeout=PATIENCE_SECONDS,
    )
    stats = subprocess.run([inbox, "stats", "--json", "--db", path], capture_output=True)

    assert verified.returncode == 0, verified.stdout
    (workers,) = json.loads(stats.stdout)["data"]["mailboxes"]
    assert (workers["done"], workers["pending"]) == (done, pending)


def test_waits_have_a_delay_a_price_and_no_time_out(tmp_path):
    figures = bench("waits", tmp_path)

    assert [row["waiters"] for row in figures["latency"]] == [1, 3]
    assert all(0 < row["p50_ms"] <= row["p99_ms"] for row in figures["latency"])
    assert all(row["mean_percent"] > 0 for row in figures["idle"])
    assert [(row["bells"], row["timed_out"]) for row in figures["race"]] == [("on", 0), ("off", 0)]


def test_councils_are_grouped_as_well_as_promised_beside_merging_nothing(tmp_path):
    figures = bench("council", tmp_path)

    assert figures["holds"]
    limits = figures["prose_limits"]
    # Of sets for the verdict there may be none: then what is promised holds for all of them.
    judged = figures["unseen"] or figures["prose"]
    assert judged["pair_precision"] >= limits["pair_precision"]
    assert judged["false_oppositions"] == 0
    assert judged["missed_share"] <= 0.2
    assert figures["prose"]["missed_share"] <= limits["missed_agreements"]
    assert figures["different_outputs"] == 1
    assert {row["method"] for row in figures["sets"]} == {"tally", "nothing merged"}


def test_a_graph_is_imported_looked_at_and_kept_free_of_cycles(tmp_path):
    ((size, figures),) = bench("graph", tmp_path)["sizes"].items()

    assert int(size) > 2000
    assert {"plan import", "ready", "status", "plan export", "dep add, refused"} <= set(figures)
    assert all(operation["whole"]["p50_ms"] > 0 for operation in figures.values())
    assert all(figures[name]["work"]["count"] == 1 for name in ("ready", "status"))


def test_a_task_with_a_blueprint_is_measured_beside_one_with_a_check(tmp_path):
    figures = bench("stages", tmp_path)
    pairs = figures["pairs"]

    assert pairs["staged"]["whole"]["processes"] > pairs["plain"]["whole"]["processes"] > 10
    assert [crowd["tasks"] for crowd in figures["crowds"].values()] == [2, 2]


def test_a_large_change_is_judged_beside_gits_status(tmp_path):
    figures = bench("policies", tmp_path)

    assert {"git status", "policy, all changed", "policy, all added"} <= set(figures["ms"])
    assert all(ms > 0 for ms in figures["ms"].values())


def test_checkpoints_are_measured_beside_git_status(tmp_path):
    jobs = bench("checkpoints", tmp_path)["jobs"]
    assert list(jobs) == ["git status", "first checkpoint", "checkpoint", "going back"]
    assert all(cost["seconds"] > 0 for cost in jobs.values())


def test_worktrees_are_measured_beside_gits_own(tmp_path):
    figures = bench("worktrees", tmp_path)
    assert 0 < figures["salvage"]["look_ms"] < figures["salvage"]["salvage_ms"]
    dispatching = figures["dispatching"]

    assert {name: dispatching[name]["attempts"] for name in ("one", "eight")} == {
        "one": 1,
        "eight": 8,
    }
    assert all(dispatching[name]["ratio"] > 0 for name in ("one", "eight"))
