"""A command whose line was read without click does, says and ends with the very same, byte for
byte, as when click has read it."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import warm
from support.commands import ULID, HeldThread, Outcome, Project, command_path
from support.timing import PATIENCE_SECONDS

# As `inbox` starts, but nobody tells commands by their first words, so that click reads all.
BY_CLICK = (
    "import sys; from inbox_orch.inbox import __main__ as program\n"
    "program._find = lambda words: None\n"
    "program.main()"
)
# What is another thing every time: ids, tokens, times.
CHANGING = re.compile(
    rb"[0-7][0-9A-HJKMNP-TV-Z]{25}|[0-9a-f]{32}\b|\d{4}-\d\d-\d\dT[\d:.]+Z|\d+ m?s( ago)? *"
)


class Pair:
    """A project, and what both ways of reading a line come to in it."""

    def __init__(self, folder: Path, held: HeldThread) -> None:
        self.folder, self.held = folder, held
        self._before = folder.with_name("before")
        shutil.copytree(folder, self._before)

    def both(self, *words: str, stdin: bytes = b"", **environment: str) -> Outcome:
        """The outcome, which is the same both times, each from the same beginning."""
        outcomes = []
        for role, start in (("command", command_path()), ("code", BY_CLICK)):
            shutil.rmtree(self.folder)
            shutil.copytree(self._before, self.folder)
            process = warm.Forked(
                role,
                [start, *words],
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.folder,
                environment={**os.environ, **environment},
            )
            stdout, stderr = process.communicate(stdin, timeout=PATIENCE_SECONDS)
            outcomes.append(Outcome(process.wait(), settled(stdout), settled(stderr)))
        assert outcomes[0] == outcomes[1], words
        assert b"Traceback" not in outcomes[0].stderr
        return outcomes[0]


def settled(content: bytes) -> bytes:
    return CHANGING.sub(b"#", content)


@pytest.fixture
def pair(project: Project) -> Iterator[Pair]:
    held = project.claim()
    project.send("another", "first line\nsecond")
    (project.folder / "body.md").write_text("the body, grün\n")
    (project.folder / "payload.json").write_text('{"a": 1}')
    (project.folder / "bytes").write_bytes(b"\xff\xfe")
    return Pair(project.folder, held)


SENT = ("send", "--to", "workers", "--subject", "s")
LINES: list[tuple[str, ...]] = [
    (*SENT, "--agent", "leader", "--body", "b", "--json"),
    (*SENT, "--agent", "leader", "--body-file", "body.md", "--attach", "bytes"),
    (*SENT, "--agent", "leader", "--payload-file", "payload.json", "--body="),
    (*SENT, "--agent", "leader", "--body", "b", "--body-file", "body.md"),
    (*SENT, "--agent", "leader", "--body-file", "nowhere", "--json"),
    (*SENT, "--agent", "leader", "--body-file", "bytes", "--json"),
    (*SENT, "--agent", "leader", "--body-file", "-"),
    (*SENT, "--body", "no agent"),
    (*SENT, "--agent", "not a name", "--body", "b", "--json"),
    (*SENT, "--agent", "leader", "--strict", "--body", "b"),
    (*SENT, "--agent", "leader", "--subject", "\udcff"),
    ("send", "--to", "workers"),
    ("claim", "--agent", "w1", "--mailbox", "workers", "--json"),
    ("claim", "--agent", "w1", "--mailbox", "workers"),
    ("claim", "--agent", "w1", "--mailbox", "workers", "--export"),
    ("claim", "--agent", "w1", "--mailbox", "workers", "--export", "--json"),
    ("claim", "--agent", "w1", "--mailbox", "nobody", "--json"),
    ("claim", "--agent", "w1", "HELD"),
    ("claim", "--agent", "w2", "HELD", "--json"),
    ("claim", ULID, "--agent", "w2", "--json"),
    ("claim", "--agent", "w1", "--lease", "0"),
    ("claim", "--agent", "w1", "--json", "--lease", "one"),
    ("claim", "--agent", "w1", "--lea", "60"),
    ("claim", "--agent"),
    ("claim", "--agent", ""),
    ("claim", "--agent", "w1", "--agent", "w2"),
    ("--agent", "w1", "claim", "--agent", "w2"),
    ("claim", "--agent", "w1", "--mailbox="),
    ("claim", "", "--agent", "w1"),
    (*SENT, "--to", "others", "--agent", "leader"),
    ("send", "--to=", "--subject", "s", "--agent", "leader"),
    ("claim", "--help"),
    ("claim", "--help", "--json"),
    ("claim", "--db", "nowhere/bus.db", "--agent", "w1", "--json"),
    ("claim", "--db-id", ULID, "--agent", "w1", "--json"),
    ("--json", "claim", "--agent", "w1", "--mailbox", "workers"),
    ("fetch", "--agent", "w1", "--mailbox", "workers", "--json"),
    ("fetch", "--agent", "w1", "--mailbox", "workers", "--limit", "1", "--peek"),
    ("fetch", "--agent", "w9", "--wait", "0"),
    ("fetch", "--agent", "w9", "--json", "--wait", "0"),
    ("fetch", "--limit", "0", "--agent", "w1"),
    ("renew", "HELD", "--token", "TOKEN", "--lease", "60", "--json"),
    ("renew", "--token", "TOKEN"),
    ("renew", "HELD"),
    ("renew", "HELD", "--token", "0" * 32, "--json"),
    ("update", "HELD", "--token", "TOKEN", "--progress", "5", "--body", "half", "--json"),
    ("update", "HELD", "--token", "TOKEN", "--progress", "500"),
    ("update", "HELD", "--token", "TOKEN", "--attach", "nowhere"),
    ("update", "--", "HELD", "--token", "TOKEN"),
    ("done", "HELD", "--token", "TOKEN", "--body-file", "body.md", "--attach", "body.md"),
    ("done", "HELD", "--token", "TOKEN", "--payload-file", "body.md", "--json"),
    ("done", "HELD", "HELD", "--token", "TOKEN"),
    ("reply", "HELD", "--agent", "leader", "--body", "b", "--json"),
    ("reply", "HELD", "--agent", "leader"),
    ("reply", "--agent", "leader", "--body", "b", "--json"),
    ("prime",),
    ("prime", "--agent", "w1", "--json"),
    ("prime", "--db", "nowhere/bus.db"),
    ("prime", "extra"),
    ("hook", "session-start", "--agent", "w1", "--mailbox", "workers"),
    ("hook", "stop", "--agent", "w1", "--mailbox", "workers", "--json"),
    ("hook", "post-tool"),
    ("hook", "stop", "--agent", "not a name"),
    ("hook", "stop", "--agent", "not a name", "--json"),
    ("hook", "stop", "--unknown"),
    ("hook", "stop", "--db-id", ULID, "--agent", "w1"),
    ("hook", "--agent", "w1", "stop"),
    ("hook", "nothing"),
    ("hook",),
    ("show", "HELD", "--json"),
    ("list", "--json"),
    ("where", "--json"),
    ("where", "--agent", "w1"),
    ("unheard-of", "--json"),
    ("",),
    (),
]


@pytest.mark.parametrize(
    "line", LINES, ids=lambda line: " ".join(line)[:60].encode("unicode_escape")
)
def test_both_ways_of_reading_a_line_come_to_the_same(pair: Pair, line: tuple[str, ...]):
    known = {"HELD": pair.held.thread, "TOKEN": pair.held.token}

    pair.both(*(known.get(word, word) for word in line), stdin=b'{"agent_id": null}')


def test_both_take_the_thread_and_the_token_from_the_environment(pair: Pair):
    held = {"INBOX_THREAD": pair.held.thread, "INBOX_TOKEN": pair.held.token}

    assert pair.both("update", "--progress", "7", "--json", **held).code == 0
    assert pair.both("done", "--body", "b", INBOX_AGENT="w1", **held).code == 0
    assert pair.both("done", "--token", "0" * 32, "--json", **held).code == 7
    assert pair.both("done", **{**held, "INBOX_TOKEN": ""}).code == 2
    assert pair.both("prime", **held).code == 0
    assert pair.both("fetch", "--json", INBOX_DB="nowhere.db", INBOX_AGENT="w1").code != 0
    assert pair.both("fetch", "--json", INBOX_BUSY_TIMEOUT="x", INBOX_AGENT="w1").code == 2


@pytest.mark.parametrize(
    "variable", ["INBOX_DB", "INBOX_DB_ID", "INBOX_AGENT", "INBOX_THREAD", "INBOX_TOKEN"]
)
def test_both_refuse_an_empty_variable_that_is_to_name_something(pair: Pair, variable: str):
    refused = pair.both("done", "--json", **{variable: ""})

    assert (refused.code, refused.error["message"]) == (2, f"{variable} is empty")


def test_both_let_a_shell_complete_alike(pair: Pair):
    asked = {
        "_INBOX_COMPLETE": "bash_complete",
        "COMP_WORDS": "inbox claim --le",
        "COMP_CWORD": "2",
    }

    assert b"--lease" in pair.both(**asked).stdout


def test_both_show_the_same_to_a_person(pair: Pair):
    for line in (("claim", "--mailbox", "workers"), ("fetch", "--mailbox", "workers"), ("prime",)):
        pair.both(*line, INBOX_AGENT="w1", FORCE_COLOR="1", COLUMNS="80")
