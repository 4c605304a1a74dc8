"""What the short commands load. Start-up is most of what they cost, and a single import of a large
library would double it."""

import json
import subprocess
import sys
from importlib.metadata import version

import pytest

from support.timing import PATIENCE_SECONDS

# A named tuple, too: what Python needs for one (annotationlib and ast, from 3.14 on).
BASE = "import contextlib, json, sqlite3, typing\nclass Pair(typing.NamedTuple): one: int"
# Of the standard library, beyond what the base loads: signals, the gate, bells, small digests.
MORE = {"__future__", "_sha2", "_sha256", "errno", "fcntl", "gc", "importlib", "select", "signal"}


class Caller:
    """Calls `inbox` on one database, and tells what each call has loaded."""

    def __init__(self, folder, inbox_bin):
        self._folder = folder
        self._inbox = inbox_bin
        self._call("init", ".")

    def __call__(self, *arguments):
        """(modules beyond the base, the result) of a command."""
        answer, loaded = self._call(*arguments, "--db", ".inbox/bus.db", "--json")
        return loaded, answer

    def _call(self, *arguments):
        done = self._run(self._inbox, *arguments)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)["data"] if done.stdout.startswith("{") else None
        return answer, modules(done.stderr) - modules(self._run("-c", BASE).stderr)

    def _run(self, *arguments):
        return subprocess.run(
            [sys.executable, "-X", "importtime", *arguments],
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )


def modules(report):
    """The names in what `-X importtime` has written."""
    lines = [line for line in report.splitlines() if line.startswith("import time:")]
    return {line.rsplit("|", 1)[1].strip() for line in lines[1:]}


@pytest.fixture
def call(tmp_path, inbox_bin):
    return Caller(tmp_path, inbox_bin)


def foreign(loaded):
    return {name for name in loaded if not name.startswith("inbox_orch")} - MORE


def test_the_version_is_told_without_the_library_for_it(tmp_path, inbox_bin):
    call = [sys.executable, "-X", "importtime", inbox_bin, "--version", "--json"]
    done = subprocess.run(
        call, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )

    assert json.loads(done.stdout)["data"] == {"version": version("inbox-orch")}
    assert "importlib.metadata" not in modules(done.stderr)


def test_the_commands_of_a_worker_load_nothing_beyond_sqlite3_and_json(call):
    as_worker = ("--agent", "w1")
    loaded = {}

    def claim(subject):
        line = ("--agent", "leader", "--to", "w1", "--subject", subject, "--body", "b")
        loaded["send"], _ = call("send", *line)
        loaded["claim"], claimed = call("claim", *as_worker)
        return claimed["thread"]["id"], "--token", claimed["lease"]["token"]

    held = claim("one")
    loaded["fetch"], _ = call("fetch", *as_worker)
    loaded["show"], _ = call("show", held[0])
    loaded["renew"], _ = call("renew", *held, "--lease", "60")
    loaded["update"], _ = call("update", *held, "--body", "b", "--progress", "5")
    loaded["ask"], _ = call("ask", *held, "--body", "b")
    loaded["reply"], _ = call("reply", held[0], "--agent", "leader", "--body", "b")
    loaded["wait-reply"], _ = call("wait-reply", *held, "--wait", "0")
    loaded["done"], _ = call("done", *held, "--body", "b")
    loaded["fail"], _ = call("fail", *claim("two"), "--body", "b")
    loaded["release"], _ = call("release", *claim("three"))
    loaded["prime"], _ = call("prime", *as_worker)
    loaded["hook"], _ = call("hook", "post-tool", *as_worker)
    loaded["list"], _ = call("list", "--state", "done")
    loaded["stats"], _ = call("stats")

    assert len(loaded) == 16
    assert {verb: foreign(names) for verb, names in loaded.items() if foreign(names)} == {}


def test_what_is_not_plain_is_read_by_click(call):
    plain, _ = call("list", "--help")

    assert "click" in foreign(plain)


def test_the_look_at_what_is_loaded_sees_a_foreign_module(call):
    seen = modules(call._run("-c", f"{BASE}\nimport decimal").stderr)

    assert "decimal" in foreign(seen - modules(call._run("-c", BASE).stderr))
