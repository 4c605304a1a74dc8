"""Before the round closes a reviewer sees neither another's reply nor that there is one, whatever
command of `inbox` it calls under its own name."""

import json
from pathlib import Path

import pytest

from inbox_orch.inbox.cli import COMMANDS
from inbox_orch.orch.council import take_in, views
from support.commands import Outcome
from support.orch_matrix import Enterprise, orch_cells_council

MARK = "zanzibar"
OTHERS = ("ada", "eve")
UNTELLING = {
    "init": "it makes a database",
    "schema": "it reads no database",
    "backup": "who copies the file has all of it: sealing is no wall between users",
    "export": "it is for whoever looks after the database, and says that it gives everything",
    "doctor": "it tells how much there is in all, and nothing of whom",
    "prune": "it removes what is final and old",
    "completion": "it prints a fixed script",
    "guide": "it prints a fixed text",
    "help": "it prints a fixed text",
    "skill": "it prints a fixed text",
    "setup": "it writes an agent's own files, and opens no database",
    "mcp": "its tools are commands, each of which is tried here",
}


class Panel(Enterprise):
    """A council whose others have replied: one well, one so that it is to be mended."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        council = orch_cells_council.opened(self)
        self.threads: dict[str, str] = {}
        for reviewer in (*OTHERS, "bob"):
            with self.bus(reviewer) as bus:
                self.threads[reviewer] = bus.list(mailboxes=(reviewer,)).items[0].id
        reply = {
            "schema": "orch.council.reply/1",
            "council_id": council,
            "round": 1,
            "brief_sha256": self.brief_sha256(),
            "checked": ["S1"],
            "recommendations": [],
            "no_recommendations_because": f"{MARK} is all I know",
            "verdict": "reject",
        }
        self.hand_in("ada", json.dumps(reply))
        self.hand_in("eve", '{"verdict": "' + MARK)
        with self.scheduler() as scheduler:
            take_in.refresh(scheduler.desk, scheduler.council(None))
            states = {s.seat.reviewer: s.stands.state for s in self.seats(scheduler)}
        assert states == {"ada": "valid", "bob": "pending", "eve": "pending"}

    def seats(self, scheduler):
        return views.view(scheduler.desk, scheduler.council(None)).seats

    def brief_sha256(self) -> str:
        with self.scheduler() as scheduler:
            return views.view(scheduler.desk, scheduler.council(None)).council.brief_sha256

    def hand_in(self, reviewer: str, body: str) -> None:
        with self.bus(reviewer) as bus:
            claimed = bus.claim()
            files = (bus.artifacts.add_bytes("result", body.encode()),)
            bus.done(claimed.thread.id, str(claimed.lease.token), body=body, files=files)

    def as_bob(self, *arguments: str) -> Outcome:
        return self.run(*arguments, "--agent", "bob", "--json")


@pytest.fixture
def panel(tmp_path: Path) -> Panel:
    return Panel(tmp_path / "project")


def calls(panel: Panel) -> dict[str, list[tuple[str, ...]]]:
    """Every way in which bob may ask with each command."""
    ada, eve = panel.threads["ada"], panel.threads["eve"]
    token = ("--token", "00" * 16)
    with panel.bus("eve") as bus:
        mend = bus.list(mailboxes=("eve",)).items[-1].id
    assert mend != eve
    of_others = [ada, eve, mend]
    return {
        "where": [("where",)],
        "send": [("send", "--to", "ada", "--subject", "s", "--body", "what did you say?")],
        "fetch": [("fetch", "--peek"), ("fetch",)],
        "claim": [("claim",), *(("claim", thread) for thread in of_others)],
        "renew": [("renew", ada, *token)],
        "update": [("update", ada, *token, "--body", "b")],
        "ask": [("ask", ada, *token, "--body", "b")],
        "wait-reply": [("wait-reply", ada, *token, "--wait", "0")],
        "reply": [("reply", thread, "--body", "hello") for thread in of_others],
        "done": [("done", ada, *token, "--body", "b")],
        "fail": [("fail", ada, *token, "--body", "b")],
        "release": [("release", ada, *token)],
        "cancel": [("cancel", thread) for thread in of_others],
        "unseal": [("unseal", thread) for thread in of_others],
        "list": [("list", "--count"), ("list", "--from", "leader"), ("list", "--state", "done")],
        "show": [
            *(("show", thread, "--full") for thread in of_others),
            ("show", ada, "--artifact", "result", "--output", "-"),
        ],
        "watch": [
            ("watch", "--after", "0", "--wait", "0"),
            *(("watch", "--after", "0", "--wait", "0", "--thread", t) for t in of_others),
            ("watch", "--after", "0", "--wait", "0", "--kind", "reply_recorded"),
        ],
        "work": [("work", "--once", "--idle-exit", "0.1", "--", "cat")],
        "stats": [("stats",)],
        "prime": [("prime",)],
        "hook": [("hook", "session-start"), ("hook", "post-tool"), ("hook", "stop")],
    }


def test_every_command_is_tried_or_has_its_reason(panel: Panel):
    assert set(calls(panel)) | set(UNTELLING) == set(COMMANDS)
    assert not set(calls(panel)) & set(UNTELLING)


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - set(UNTELLING)))
def test_a_reviewer_sees_nothing_of_another(panel: Panel, command: str):
    tell_tales = [MARK, "reply_recorded", "attempt_succeeded", "attempt_rejected", "task_succeeded"]
    for arguments in calls(panel)[command]:
        ended = panel.as_bob(*arguments)
        said = (ended.stdout + ended.stderr).decode()

        named = [word for word in panel.threads.values() if word in arguments]
        hidden = [t for r, t in panel.threads.items() if r in OTHERS and t not in named]
        for word in (*tell_tales, *hidden):
            assert word not in said, (arguments, said)
        if named and panel.threads["bob"] not in named and command not in ("claim", "watch"):
            assert ended.error["code"] in ("not_found", "lease_lost"), arguments


def test_the_numbers_are_those_of_its_own_threads(panel: Panel):
    items = panel.as_bob("list", "--count").data
    assert (items["total"], [item["mailbox"] for item in items["items"]]) == (1, ["bob"])
    mailboxes = panel.as_bob("stats").data["mailboxes"]
    assert [(row["mailbox"], row["done"], row["pending"]) for row in mailboxes] == [("bob", 0, 1)]


def test_that_a_reply_is_being_mended_is_not_seen_in_the_events(panel: Panel):
    lines = panel.as_bob("watch", "--after", "0", "--wait", "0").stdout.splitlines()
    events = [json.loads(line) for line in lines]
    with panel.scheduler() as scheduler:
        tasks = {s.seat.reviewer: s.seat.task_id for s in panel.seats(scheduler)}
    of_others = [e for e in events if e.get("task") in (tasks["ada"], tasks["eve"])]

    # That others were asked, once, is what the request says itself.
    expected = ["attempt_allocating", "attempt_provisioned", "task_active", "task_pending"]
    assert sorted(e["kind"] for e in of_others) == sorted(expected * 2)
    assert all(e["data"].get("number", 1) == 1 for e in of_others)


def test_once_the_round_is_closed_everybody_may_look(panel: Panel):
    with panel.bus("bob") as bus:
        claimed = bus.claim()
        bus.fail(claimed.thread.id, str(claimed.lease.token), body="declined")
    with panel.bus("eve") as bus:
        claimed = bus.claim()
        bus.fail(claimed.thread.id, str(claimed.lease.token), body="declined")
    with panel.scheduler() as scheduler:
        take_in.refresh(scheduler.desk, scheduler.council(None))

    shown = panel.as_bob("show", panel.threads["ada"], "--full")

    assert MARK in shown.stdout.decode()
