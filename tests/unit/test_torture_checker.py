"""The checker of the torture finds each kind of broken promise in a history, and nothing in a
whole one."""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "script" / "torturing"
SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def tools():
    """The modules of script/torturing, which are no package."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield {name: _load(name) for name in ("history", "checker")}
    finally:
        sys.path.remove(str(FOLDER))
        for name in ("history", "checker"):
            sys.modules.pop(name, None)


def _load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class History:
    """Operations and an ending, built up line by line."""

    def __init__(self, tools: dict[str, Any]) -> None:
        self._tools = tools
        self.operations: list[Any] = []
        self.lines: list[dict[str, Any]] = []
        self.faults: list[Any] = []
        self.commits: frozenset[str] = frozenset()
        self.files: frozenset[str] = frozenset()

    def op(
        self, name: str, at: float, until: float | None, actor: str = "w1", **facts: Any
    ) -> None:
        """One call; `value` or `error` is how it ended."""
        value, error = facts.pop("value", None), facts.pop("error", None)
        if until is not None and error is None and value is None:
            value = {}
        returned = None if until is None else int(until * SECOND)
        self.operations.append(
            self._tools["history"].Operation(
                actor,
                0,
                len(self.operations),
                name,
                facts,
                int(at * SECOND),
                returned,
                value,
                error,
            )
        )

    def claim(self, at: float, epoch: int, lease: float = 3.0, actor: str = "w1") -> None:
        self.op(
            "claim",
            at,
            at + 0.01,
            actor,
            lease_seconds=lease,
            value={"thread": "T", "epoch": epoch},
        )

    def violations(self) -> list[str]:
        ending = self._tools["checker"].Ending(self.lines, [], self.commits, self.files)
        operations = sorted(self.operations, key=lambda op: op.called_ns)
        return self._tools["checker"].violations(operations, self.faults, ending)


@pytest.fixture
def history(tools) -> History:
    return History(tools)


def thread(state: str = "pending") -> dict[str, Any]:
    return {"type": "thread", "id": "T", "state": state}


def message(number: int, body: str | None, **changes: Any) -> dict[str, Any]:
    shape = {"thread": "T", "sender": "s1", "to": ["pool"], "kind": "task"}
    return {"type": "message", "id": str(number), "body": body, **shape, **changes}


def test_a_whole_history_has_no_violation(history: History):
    history.lines = [thread("done"), message(1, "a"), message(2, "b", sender="w1", to=["s1"])]
    history.op(
        "send", 0, 0.1, "s1", to="pool", body="a", key="a", value={"thread": "T", "message": 1}
    )
    history.claim(1, 1)
    history.op("done", 2, 2.1, thread="T", epoch=1, body="b")

    assert history.violations() == []


def test_a_lost_thread_and_a_lost_message_are_found(history: History):
    history.op(
        "send", 0, 0.1, "s1", to="pool", body="a", key=None, value={"thread": "T", "message": 1}
    )

    found = history.violations()

    assert any("acknowledged thread is gone" in one for one in found)
    assert any("acknowledged message is gone" in one for one in found)


def test_what_was_never_acknowledged_may_be_gone_or_there(history: History):
    history.op("send", 0, None, "s1", to="pool", body="a", key=None)
    assert history.violations() == []

    history.lines = [thread(), message(1, "a")]
    assert history.violations() == []


def test_an_effect_of_a_refused_call_is_found(history: History):
    history.lines = [thread(), message(1, "a")]
    history.op("send", 0, 0.1, "s1", to="pool", body="a", key=None, error="busy")

    assert any("refused call has had its effect" in one for one in history.violations())


def test_a_message_that_is_there_twice_is_found(history: History):
    history.lines = [thread(), message(1, "a"), message(2, "a")]

    assert any("2 times" in one for one in history.violations())


def test_a_key_that_made_two_threads_is_found(history: History):
    history.lines = [thread(), {**thread(), "id": "U"}, message(1, "a")]
    for name in ("T", "U"):
        value = {"thread": name, "message": 1}
        history.op("send", 0, 0.1, "s1", to="pool", body="a", key="k", value=value)

    assert any("made 2 threads" in one for one in history.violations())


def test_a_takeover_while_the_lease_runs_is_found(history: History):
    history.claim(1, 1, lease=3.0)
    history.claim(2, 2, actor="w2")

    assert any("taken over while the lease ran" in one for one in history.violations())


def test_a_takeover_after_the_lease_or_after_it_was_given_back_is_fine(history: History):
    history.claim(1, 1, lease=3.0)
    history.claim(4.5, 2, lease=3.0, actor="w2")
    history.op("release", 5, 5.1, "w2", thread="T", epoch=2)
    history.claim(5.2, 3)

    assert history.violations() == []


def test_a_renewal_that_did_not_hold_is_found(history: History):
    history.claim(1, 1, lease=3.0)
    history.op("renew", 3.5, 3.6, thread="T", epoch=1)
    history.claim(5, 2, actor="w2")

    assert any("taken over while the lease ran" in one for one in history.violations())


def test_a_stale_token_that_was_served_is_found(history: History):
    history.claim(1, 1, lease=1.0)
    history.claim(3, 2, actor="w2")
    history.op("renew", 4, 4.1, thread="T", epoch=1)

    assert any("stale token was served" in one for one in history.violations())


def test_two_holders_of_one_epoch_and_falling_epochs_are_found(history: History):
    history.claim(1, 1)
    history.claim(1.5, 1, actor="w2")
    assert any("two holders with epoch 1" in one for one in history.violations())

    history.operations.clear()
    history.claim(1, 2)
    history.claim(9, 1, actor="w2")
    assert any("older epoch was given out later" in one for one in history.violations())


def test_done_that_is_not_done_is_found(history: History):
    history.lines = [thread("pending"), message(2, "b")]
    history.op("done", 2, 2.1, thread="T", epoch=1, body="b")

    assert any("done, and pending in the end" in one for one in history.violations())


def test_a_cursor_that_passed_an_unseen_message_is_found(history: History):
    history.lines = [
        thread(),
        message(1, "a", to=["reader0"]),
        message(2, "b", to=["reader0"]),
        {"type": "cursor", "agent": "reader0", "mailbox": "reader0", "position": "2"},
    ]
    history.op("fetch", 0, 0.1, "reader0", wait=None, value={"messages": [2]})
    assert any("passed message 1" in one for one in history.violations())

    history.op("fetch", 1, 1.1, "reader0", wait=None, value={"messages": [1]})
    assert history.violations() == []


def test_an_event_that_a_watcher_missed_is_found(history: History):
    history.lines = [{"type": "event", "id": str(n)} for n in range(1, 5)]
    history.op("watch", 0, 1, "watcher0", after="0", value={"seen": [1, 3]})

    assert any("missing: [2]" in one for one in history.violations())


def test_a_wait_that_slept_through_its_message_is_found(history: History, tools):
    history.lines = [thread(), message(1, "a", to=["reader0"])]
    history.op(
        "send", 1, 1.1, "s1", to="reader0", body="a", key=None, value={"thread": "T", "message": 1}
    )
    history.op("fetch", 0, 9, "reader0", wait=15.0, value={"messages": [1]})
    assert any("a wait ended 7.9 s after" in one for one in history.violations())

    # Unless something held it up.
    history.faults = [tools["history"].Fault("SIGSTOP", "reader0", SECOND, 8 * SECOND)]
    assert history.violations() == []


def test_work_that_is_gone_is_found(history: History):
    history.op("edit", 0, 0.1, "coder0", content="c", path="/x/c.txt")
    history.op("status", 1, 1.1, "leader0", value={"heads": ["1234"]})
    assert len(history.violations()) == 2

    history.files, history.commits = frozenset({"c.txt"}), frozenset({"1234"})
    assert history.violations() == []


def test_an_unexpected_error_is_found(history: History):
    history.op("renew", 0, 0.1, thread="T", epoch=1, error="internal")

    assert any("unexpected error" in one for one in history.violations())


def test_a_refusal_for_a_shortage_that_there_was_not_is_found(history: History, tools):
    history.op("open", 0, 0.1)
    history.op("send", 5, 5.1, to="pool", body="a", key=None, error="disk_full")
    history.op("send", 6, 6.1, to="pool", body="b", key=None, error="read_only")
    history.op("dispatch", 6.5, 6.6, "leader0", error="git_failed")
    assert len(history.violations()) == 3

    fault = tools["history"].Fault
    history.faults = [
        fault("disk full", "", 4 * SECOND, 5 * SECOND),
        fault("disk read-only", "", 6 * SECOND, 7 * SECOND),
    ]
    assert history.violations() == []


def test_what_was_opened_on_a_read_only_disk_may_go_on_refusing(history: History, tools):
    history.faults = [tools["history"].Fault("disk read-only", "", 0, SECOND)]
    history.op("open", 0.9, 1.1)
    history.op("send", 5, 5.1, to="pool", body="a", key=None, error="read_only")
    assert history.violations() == []

    history.op("open", 6, 6.1)
    history.op("send", 7, 7.1, to="pool", body="b", key=None, error="read_only")
    assert any("shortage that there was not" in one for one in history.violations())


def test_only_messages_that_come_during_a_wait_make_it_late(history: History):
    history.lines = [thread(), *(message(n, None, to=["reader0"]) for n in (1, 2, 3))]
    for number, at in ((1, 1.0), (2, 11.0), (3, 30.0)):
        history.op("send", at, at + 0.1, "s1", value={"thread": "T", "message": number})
    history.op("fetch", 10, 17, "reader0", wait=15.0, value={"messages": [2]})

    late = [one for one in history.violations() if "a wait ended" in one]

    assert len(late) == 1
    assert "after message 2" in late[0]


def test_what_a_run_leaves_can_be_checked_again(history: History, tools):
    checker = tools["checker"]
    export = [{**thread(), "subject": "s"}, message(1, "a"), {"type": "lease", "epoch": 1}]
    lines, stored = checker.needed(export)
    ending = checker.Ending(lines, ["p"], frozenset("c"), frozenset("f"), stored)

    again = checker.from_json(json.loads(json.dumps(checker.as_json(ending))))

    assert again == ending
    assert again.lines == [thread(), message(1, "a")]
    assert again.stored == {"thread": 1, "message": 1, "lease": 1}


def test_lines_are_counted_while_they_are_written(tools, tmp_path):
    lines = tools["history"].Lines(tmp_path)
    journal = tools["history"].Journal(tmp_path, "w", 0)
    journal.called("send", {})
    assert lines.count() == 1

    journal.refused(1, "busy")
    tools["history"].Journal(tmp_path, "w", 1).called("send", {})
    assert lines.count() == 3


def test_what_the_product_says_may_be_there_several_times(history: History):
    history.lines = [thread(), *(message(n, "it is over", kind="system") for n in (1, 2))]

    assert history.violations() == []
