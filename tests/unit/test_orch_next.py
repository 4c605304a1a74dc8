"""The line that leads on: one for each way a run can stand, the most urgent first."""

import pytest

from inbox_orch.orch.leader.next_rules import Facts, next_line

OPEN = Facts(None, "open", tasks=3)
CLOSED = OPEN._replace(state="closed")
BUSY = OPEN._replace(
    asking=("lexer", "parser"),
    conflicting=("linker",),
    failed=("docs",),
    offered=("workers",),
    ready=2,
    moving=3,
    unmerged=True,
    worktrees=True,
)
NOTHING_ASKED = BUSY._replace(asking=())
NOTHING_OFFERED = NOTHING_ASKED._replace(offered=())
NOTHING_READY = NOTHING_OFFERED._replace(ready=0)
STANDING_STILL = NOTHING_READY._replace(moving=0)
ONLY_FAILED = STANDING_STILL._replace(conflicting=())
ALL_WELL = ONLY_FAILED._replace(failed=())
BY_DO = OPEN._replace(by_do=True)
COUNCIL = Facts(None, "open", council=True, tasks=2)

TABLE = [
    (BUSY, "lexer and 1 more asks: `orch blocked` shows what, `orch answer lexer --body TEXT`"),
    (BUSY._replace(state="cancelling"), "`orch wait --until run` waits until the last worker"),
    (BUSY._replace(state="closed"), "`orch integrate --onto BRANCH` brings what was accepted"),
    (Facts(None, "open"), "`orch task add --task KEY --title TEXT` adds a task, `orch plan import"),
    (NOTHING_ASKED._replace(state="paused"), "`orch run resume` goes on"),
    (NOTHING_ASKED, "`inbox work --agent NAME --mailbox workers -- CMD` starts a worker"),
    (NOTHING_OFFERED, "`orch dispatch` opens the attempts, `orch drive --worker CMD` does it all"),
    (NOTHING_READY, "`orch drive` goes on to the end"),
    (STANDING_STILL, "what linker builds on does not merge: merge by hand, then `orch dispatch"),
    (ONLY_FAILED, "`orch status` shows why docs did not succeed, `orch retry docs` tries again"),
    (ALL_WELL, "`orch integrate --onto BRANCH` brings what was accepted onto a branch"),
    (ALL_WELL._replace(just="brought_in"), "`orch integrate --onto BRANCH`"),
    (ALL_WELL._replace(just="brought_onto"), "`orch run close` closes the run"),
    (ALL_WELL._replace(unmerged=False), "`orch run close` closes the run"),
    (ALL_WELL._replace(unmerged=False, just="brought_in"), "`orch integrate --onto BRANCH`"),
    (CLOSED._replace(worktrees=True), "`orch cleanup` takes the worktrees away"),
    (CLOSED._replace(worktrees=True, just="cleaned"), "`orch report` tells what became of it"),
    (CLOSED, "`orch report` tells what became of it"),
    (
        BY_DO._replace(offered=("do-1",), ready=1),
        "the same `orch do` call again goes on to the end",
    ),
    (BY_DO._replace(ready=1), "the same `orch do` call again goes on to the end"),
    (BY_DO._replace(moving=1), "the same `orch do` call again goes on to the end"),
    (BY_DO._replace(moving=1, state="paused"), "`orch run resume` goes on"),
    (BY_DO._replace(moving=1, deciding=("a",)), "a needs a decision: `orch blocked` shows why"),
    (
        BY_DO._replace(failed=("a", "b")),
        "`orch status` shows why a and 1 more did not succeed, the same `orch do` call again tries",
    ),
    (BY_DO._replace(unmerged=True), "the same `orch do` call again brings what was accepted onto"),
    (BY_DO._replace(unmerged=True, just="brought_onto"), "`orch run close` closes the run"),
    (
        BY_DO._replace(unmerged=True, just="brought_in"),
        "the same `orch do` call again brings what was accepted onto",
    ),
    (BY_DO._replace(unmerged=True, state="closed"), "`orch integrate --onto BRANCH` brings"),
    (COUNCIL._replace(offered=("r1", "r2")), "`inbox work --agent NAME --mailbox r1 -- CMD`"),
    (COUNCIL._replace(moving=1), "`orch council wait` waits for the reviewers"),
    (COUNCIL, "`orch council report` tells what they say"),
    (COUNCIL._replace(state="closed"), "`orch report` tells what became of it"),
]


@pytest.mark.parametrize("facts, begins", TABLE)
def test_a_run_that_stands_so_leads_on_to(facts: Facts, begins: str):
    line = next_line(facts)

    assert line.startswith(begins)
    assert "\n" not in line and len(line) < 140


@pytest.mark.parametrize("facts", [facts for facts, _ in TABLE])
def test_every_call_names_the_run_where_the_default_is_another(facts: Facts):
    line = next_line(facts._replace(name="r-1"))

    for call in line.split("`")[1::2]:
        option = "--council" if call.startswith("orch council") else "--run"
        assert call.startswith("inbox ") or call == "orch do" or f" {option} r-1" in call, call
