"""`orch council ask`: one command from a brief to the report, whatever comes in between."""

import json
import os
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from inbox_orch.orch import schemas
from support.commands import Outcome, command_path, run
from support.contracts import validated
from support.processes import until
from support.stub_agents import Stub
from support.timing import PATIENCE_SECONDS
from support.workers import is_alive

BRIEF = "# Where the state lives\n\n## S1 Proposal\nSQLite in WAL mode.\n"
SAYS = "cat > /dev/null; echo '- [do] Enable WAL mode :: wal, sqlite, journal mode'"

# Stands for Claude Code: refuses, and reviews once it has been answered.
REFUSES_FIRST = r"""#!/bin/sh
printf '%s\n' "$*" >> "${0%/*}/called"
stop=refusal
case $(cat) in *"Since then"*) stop=end_turn;; esac
printf '{"type":"result","is_error":false,"subtype":"success","stop_reason":"%s",' "$stop"
printf '"session_id":"s","result":"- [do] Keep one file :: sqlite, file, backup"}\n'
"""


class Room:
    """A folder with a brief, and nothing else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "brief.md").write_text(BRIEF)

    def ask(self, *arguments: str, **given: Any) -> Outcome:
        line = ("council", "ask", "brief.md", *arguments)
        return run(*line, program="orch", folder=self.folder, **given)

    def data(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        """What `council ask … --json` says, held against its schema."""
        ended = self.ask("--json", *arguments)
        assert ended.code == code, ended.stdout.decode()
        validated("council ask", ended.stdout, schemas.COMMANDS)
        value: dict[str, Any] = json.loads(ended.stdout)
        return value["data"] | {"error": value.get("error")}

    def start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """A call that goes on."""
        return subprocess.Popen(
            [command_path("orch"), "council", "ask", "brief.md", *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def councils(self) -> list[str]:
        """How every council stands."""
        ended = run("council", "list", "--json", program="orch", folder=self.folder)
        return [item["status"] for item in json.loads(ended.stdout)["data"]["items"]]

    def held(self) -> list[str]:
        """Who holds a lease."""
        ended = run("council", "show", "--json", program="orch", folder=self.folder)
        seats = json.loads(ended.stdout)["data"]["seats"]
        return [seat["holder"] for seat in seats if seat["holder"] is not None]


@pytest.fixture
def room(tmp_path: Path) -> Room:
    """A fresh folder."""
    return Room(tmp_path / "project")


def stays(pid: Path) -> str:
    """A command that says which process it is, and does not end."""
    return f"echo $$ > '{pid}.new'; mv '{pid}.new' '{pid}'; exec sleep 600"


def hangs_once(flag: Path) -> str:
    """A command that stays until `flag` is there when it begins."""
    return f"if [ -e '{flag}' ]; then {SAYS}; else {stays(Path(f'{flag}.pid'))}; fi"


def process_in(file: Path) -> int:
    """The number of the process that has written it into a file."""
    until(file.exists)
    return int(file.read_text())


def test_from_nothing_to_a_report_that_tells_one_voice_in_three_seats(room: Room):
    data = room.data("--worker", SAYS)

    assert (data["database_created"], data["resumed"]) == (True, False)
    (banner,) = data["banners"]
    assert "were answered by one agent (cat): not independent" in banner
    assert banner in data["text"]

    # The same call shows the same report, and asks nobody.
    again = room.ask("--worker", SAYS)
    assert (again.code, again.stdout.decode()) == (0, data["text"])
    assert b"Going on with council where-the-state" in again.stderr
    report = run("council", "report", program="orch", folder=room.folder)
    assert report.stdout.decode() == data["text"]

    # Once it is closed the same call asks anew.
    name = data["council"]["name"]
    assert run("run", "close", name, program="orch", folder=room.folder).code == 0
    assert room.data("--worker", SAYS)["council"]["name"] != name


def test_an_agent_that_is_known_reviews_and_may_only_read(room: Room, tmp_path: Path):
    stub = Stub(tmp_path / "agents", says="- [do] Enable WAL mode :: wal, sqlite, journal mode")

    assert room.ask("--with", "claud").code == 2
    line = ("--json", "--reviewers", "ada,bob", "--with", "ada=claude", "--worker", f"bob={SAYS}")
    ended = room.ask(*line, PATH=stub.path)

    assert ended.code == 0, ended
    assert b"Enable WAL mode" in ended.stdout
    (call,) = stub.calls
    assert "--tools Read,Grep,Glob" in call and "acceptEdits" not in call


def test_one_is_late_and_one_fails_and_the_report_is_printed_with_exit_11(
    room: Room, tmp_path: Path
):
    pid = tmp_path / "pid"
    workers = (f"ada={SAYS}", f"bob=cat > /dev/null; {stays(pid)}", "eve=echo broke >&2; exit 3")
    line = [word for worker in workers for word in ("--worker", worker)]

    data = room.data(*line, "--deadline", "4", "--quorum", "1", code=11)

    assert data["error"]["code"] == "degraded"
    assert "1 of 3 valid; missing: bob (timed_out), eve (failed)" in data["error"]["message"]
    assert "`orch run cancel" in data["error"]["hint"]
    assert "Enable WAL mode" in data["text"] and data["banners"] == []
    assert not is_alive(process_in(pid))
    assert room.held() == []


def test_an_agent_by_name_reads_only_and_its_question_is_told_and_answered(
    room: Room, tmp_path: Path
):
    stub = Stub(tmp_path / "agents")
    (stub.folder / "claude").write_text(REFUSES_FIRST)
    line = [command_path("orch"), "council", "ask", "brief.md", "--with", "ada=claude"]
    asking = subprocess.Popen(
        [*line, "--worker", f"bob={SAYS}"],
        cwd=room.folder,
        env={**os.environ, "PATH": stub.path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert asking.stderr is not None
    told = next(line for line in asking.stderr if line.startswith("ada asks something"))
    answer = shlex.split(told.split("`")[3].replace("TEXT", "Review"))  # what it says is typed
    assert run(*answer[1:], program="orch", folder=room.folder).code == 0
    report, _ = asking.communicate(timeout=PATIENCE_SECONDS)

    assert asking.returncode == 0
    assert "Keep one file" in report
    assert all("acceptEdits" not in call for call in stub.calls)
    assert len(stub.calls) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_same_call_goes_on_with_the_council_that_was_interrupted(
    room: Room, tmp_path: Path, number: int
):
    line = ("--worker", f"ada={SAYS}", "--worker", f"bob={hangs_once(tmp_path / 'flag')}")
    running = room.start(*line)
    command = process_in(tmp_path / "flag.pid")

    running.send_signal(number)
    running.communicate(timeout=PATIENCE_SECONDS)
    until(lambda: not is_alive(command))
    until(lambda: room.held() == [])
    (tmp_path / "flag").touch()

    assert running.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert room.data(*line)["resumed"]
    assert room.councils() == ["complete"]


def test_a_second_call_at_once_is_told_and_shares_the_council(room: Room, tmp_path: Path):
    line = ("--reviewers", "ada", "--worker", hangs_once(tmp_path / "flag"))
    first = room.start(*line)
    command = process_in(tmp_path / "flag.pid")
    second = room.start(*line)
    assert second.stderr is not None
    until(lambda: b"Going on with council" in second.stderr.readline())

    (tmp_path / "flag").touch()
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=PATIENCE_SECONDS)
    second.communicate(timeout=PATIENCE_SECONDS)

    assert second.returncode == 0
    assert not is_alive(command)
    assert room.councils() == ["complete"]


def test_when_the_wait_is_over_it_says_how_to_go_on_and_leaves_nobody_behind(
    room: Room, tmp_path: Path
):
    line = ("--reviewers", "ada", "--worker", hangs_once(tmp_path / "flag"))

    data = room.data(*line, "--wait", "2", code=8)

    assert data["error"]["hint"].startswith("the same call again goes on")
    assert not is_alive(process_in(tmp_path / "flag.pid"))
    (tmp_path / "flag").touch()
    assert room.data(*line)["council"]["id"] == data["council"]["id"]


@pytest.mark.parametrize(
    "arguments, said",
    [
        ((), "it is not said who reviews"),
        (("--with", "no-such-agent"), "no agent is known as 'no-such-agent'"),
        (("--worker", "no-such-reviewer"), "'no-such-reviewer' is not found"),
        (("--worker", "ada=true", "--reviewers", "bob"), "no seat of the council is called ada"),
    ],
)
def test_what_cannot_be_asked_is_refused_and_leaves_nothing(
    room: Room, arguments: tuple[str, ...], said: str
):
    refused = room.ask("--json", *arguments)

    assert refused.code == 2
    assert said in json.loads(refused.stdout)["error"]["message"]
    assert os.listdir(room.folder) == ["brief.md"]
