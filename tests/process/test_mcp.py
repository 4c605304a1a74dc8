"""`inbox mcp` and `orch mcp` as real processes, met by the SDK's own client."""

import asyncio
import hashlib
import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inbox_orch.shared.tools.wording import wording_of
from support.commands import Project, command_path
from support.orch_matrix import Enterprise
from support.timing import PATIENCE_SECONDS
from support.tooling import tools_of, with_clients

INSTALLED = importlib.util.find_spec("mcp") is not None
with_sdk = pytest.mark.skipif(not INSTALLED, reason="the optional part `mcp` is not installed")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


async def call(client, tool: str, **given):
    """The data of a tool that succeeds; the client validates it by the tool's schema."""
    result = await client.call_tool(f"inbox_{tool}", given)
    assert not result.is_error, result
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


async def error(client, tool: str, **given):
    """The error of a tool that fails."""
    result = await client.call_tool(tool, given)
    assert result.is_error, result
    return result.structured_content["error"]


HALF_OF_ALL_BYTES = 12_500
"""What the list of one program's tools may cost a client, so that both cost it at most 25 KB."""


def bytes_of(tools) -> int:
    """How long their list is as a client reads it."""
    return sum(len(tool.model_dump_json(by_alias=True, exclude_none=True)) + 1 for tool in tools)


@with_sdk
def test_a_task_goes_from_one_client_to_another_and_back(project: Project):
    async def talk(leader, worker):
        listed = (await worker.list_tools()).tools
        assert {tool.name for tool in listed} == {*tools_of("inbox"), "inbox_rest"}
        assert bytes_of(listed) < HALF_OF_ALL_BYTES
        await call(leader, "send", to="workers", subject="Add", body="1 + 1", payload={"a": []})
        claimed = await call(worker, "claim", mailbox=["workers"])
        assert claimed["messages"][0]["payload"] == {"a": []}
        held = {"thread": claimed["thread"]["id"], "token": claimed["lease"]["token"]}
        await call(worker, "update", **held, progress=50, body="half")
        await call(worker, "ask", **held, body="in which base?", option=["2", "10"])

        waiting = asyncio.create_task(call(worker, "wait_reply", **held))
        # While one call waits, the same server answers others.
        assert (await call(worker, "list", state=["blocked"]))["items"]
        question = (await call(leader, "fetch"))["items"][-1]["message"]
        assert question["options"] == ["2", "10"]
        await call(leader, "reply", thread=held["thread"], body="2")
        assert (await waiting)["messages"][-1]["body"] == "2"

        done = await call(worker, "done", **held, body="10")
        assert (done["thread"]["state"], "already" in done) == ("done", False)
        assert (await call(worker, "done", **held, body="10"))["already"] is True
        result = (await call(leader, "fetch", wait=50))["items"][-1]["message"]
        assert (result["kind"], result["body"]) == ("result", "10")
        assert (await call(leader, "fetch")).get("items", []) == []

    with_clients(project.folder, ["leader", "w1"], talk)


@with_sdk
def test_a_schema_goes_along_and_a_long_result_is_had_in_parts(project: Project):
    schema = {"properties": {"n": {}}, "required": ["n"], "additionalProperties": False}
    long = "0123456789" * 30_000

    async def talk(leader, worker):
        await call(leader, "send", to="w1", subject="s", body=long, schema=schema)
        claimed = await call(worker, "claim")
        assert claimed["result_schema"] == schema
        (cut,) = claimed["cut"]
        assert (cut["at"], cut["bytes"]) == ("messages[0].body", 300_000)
        assert len(json.dumps(claimed)) < 65_536
        text, offset = claimed["messages"][0]["body"][: cut["shown"]], cut["shown"]
        while offset is not None:
            part = await call(worker, "rest", ref=cut["ref"], offset=offset)
            text, offset = text + part["text"], part.get("next")
        assert text == long
        assert (await error(worker, "inbox_rest", ref="r7"))["exit_code"] == 3

        held = {"thread": claimed["thread"]["id"], "token": claimed["lease"]["token"]}
        refused = await error(worker, "inbox_done", **held, payload={"m": 1})
        assert (refused["code"], refused["exit_code"]) == ("result_refused", 2)
        assert "call inbox_done again" in refused["hint"]
        assert len(refused["details"]["problems"]) == 2
        await call(worker, "done", **held, payload={"n": 1})

    with_clients(project.folder, ["leader", "w1"], talk)


@with_sdk
def test_what_was_read_is_not_read_again(project: Project):
    for number in range(20):
        project.send(f"task {number}")

    async def talk(client):
        seen = []
        for _ in range(20):
            seen += (await call(client, "fetch", mailbox="workers", limit=1))["items"]
        subjects = [item["thread"]["subject"] for item in seen]
        assert subjects == [f"task {number}" for number in range(20)]

    with_clients(project.folder, ["w1"], talk)


@with_sdk
def test_two_clients_race_for_one_task_and_one_gets_it(project: Project):
    thread = project.send()

    async def talk(*workers):
        claims = [w.call_tool("inbox_claim", {"mailbox": ["workers"]}) for w in workers]
        results = await asyncio.gather(*claims)
        winners = [r for r in results if not r.is_error]
        assert [r.structured_content["thread"]["id"] for r in winners] == [thread]
        losers = [r.structured_content["error"]["code"] for r in results if r.is_error]
        assert losers == ["nothing_available"]

    with_clients(project.folder, ["w1", "w2"], talk)


@with_sdk
def test_bad_input_gives_the_codes_of_the_command_line_and_its_hints_in_words_of_tools(
    project: Project,
):
    stale = project.taken_over()
    no_mailbox = {"to": "no good", "subject": "s", "body": "b"}
    wording = wording_of("inbox", tuple(tools_of("inbox").values()))
    cases = [
        ("show", {"thread": "nope"}, ("show", "nope")),
        ("claim", {"wait": 0.05}, ("claim", "--wait", "0.05")),
        ("claim", {"thread": stale.thread}, ("claim", stale.thread)),
        ("list", {"limit": -1}, ("list", "--limit", "-1")),
        ("renew", stale._asdict(), ("renew", *stale.arguments)),
        ("send", no_mailbox, ("send", *(f"--{k}={v}" for k, v in no_mailbox.items()))),
    ]  # fmt: skip

    async def talk(client):
        codes = []
        for tool, given, line in cases:
            ended = project.json(*line, "--agent", "w1")
            said = await error(client, f"inbox_{tool}", **given)
            assert said["exit_code"] == ended.code, (tool, given)
            hint = wording.of(ended.error["hint"])
            assert (said["code"], said["hint"]) == (ended.error["code"], hint)
            codes.append(ended.code)
        assert codes == [3, 8, 4, 2, 7, 2]
        assert "no_such" in (await error(client, "inbox_list", no_such=1))["message"]
        with pytest.raises(Exception, match="there is no tool"):
            await client.call_tool("inbox_explode", {})

    with_clients(project.folder, ["w1"], talk)


def begun(project: Project, program: str = "inbox") -> subprocess.Popen[bytes]:
    """A server that is met by lines alone, once it has answered the first of them."""
    server = subprocess.Popen(
        [command_path(program), "mcp", "--agent", "w1"],
        cwd=project.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    params = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    first = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    assert answered(server, json.dumps(first).encode())["id"] == 0
    return server


def answered(server: subprocess.Popen[bytes], line: bytes) -> dict:
    """What the server says next after a line."""
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write(line + b"\n")
    server.stdin.flush()
    assert select.select([server.stdout], [], [], PATIENCE_SECONDS)[0], line[:200]
    return json.loads(server.stdout.readline())


def asking(arguments: str, number: str = "7") -> bytes:
    """A call of a tool, with its arguments as text."""
    params = f'{{"name": "inbox_send", "arguments": {{{arguments}}}}}'
    called = f'"method": "tools/call", "params": {params}, "jsonrpc": "2.0"'
    return f'{{{called}, "id": {number}}}'.encode()


DEEP = '"payload": ' + '{"a":' * 250 + "1" + "}" * 250
UNREADABLE = {
    "half a character": (asking(r'"body": "x\ud800"'), -32600, 7),
    "nested too deeply": (asking(DEEP), -32600, 7),
    "a key twice": (asking('"payload": {"branch": "a", "branch": "b"}'), -32600, 7),
    "an argument twice": (asking('"to": "a", "to": "b"'), -32600, 7),
    "too many digits": (asking(f'"priority": {"1" * 5000}'), -32600, 7),
    "with an id of text": (asking(r'"body": "x\udfff"', '"a\u00e4"'), -32600, "aä"),
    "with a half id": (asking("", r'"\ud800"'), -32600, "\ud800"),
    "with an id that is no id": (asking("", "true"), -32600, None),
    "with an id that is a fraction": (asking("", "1.5"), -32600, 1.5),
    "with an id that is no number": (asking("", "NaN"), -32600, None),
    "with an id without end": (asking("", "1e999"), -32600, None),
    "with an id of too many digits": (asking("", "1" * 5000), -32600, None),
    "not a request": (b'{"jsonrpc": "2.0", "id": 7}', -32600, 7),
    "with a list for its parameters": (
        b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": [1]}', -32600, 7,
    ),
    "of another protocol": (b'{"id": 7, "method": "ping"}', -32600, 7),
    "several at once": (b'[{"jsonrpc": "2.0", "id": 7, "method": "ping"}]', -32600, None),
    "an answer that is none": (b'{"jsonrpc": "2.0", "id": 7, "result": 5}', -32600, None),
    "a number": (b"7", -32600, None),
    "not JSON": (b'{"jsonrpc": "2.0", "id": 7, "method"', -32700, None),
    "not UTF-8 in a text": (asking('"body": "x?"').replace(b"?", b"\xff"), -32600, 7),
    "not UTF-8": (b"\xff\xfe", -32700, None),
    "no end of nesting": (asking("[" * 200_000), -32700, None),
}  # fmt: skip


@with_sdk
def test_a_line_that_cannot_be_read_is_answered_with_an_error(project: Project):
    with begun(project) as server:
        for name, (line, code, number) in UNREADABLE.items():
            answer = answered(server, line)
            assert (answer["error"]["code"], answer["id"]) == (code, number), name
            assert answer["jsonrpc"] == "2.0" and 10 < len(answer["error"]["message"]) < 300
            # It goes on, and its next answer is that to the next call.
            assert answered(server, asking('"limit": 1', "8"))["id"] == 8, name
        server.stdin.close()
        assert server.stdout.read() == b""
        assert server.wait(PATIENCE_SECONDS) == 0


@with_sdk
def test_blank_lines_and_notifications_are_not_answered(project: Project):
    with begun(project) as server:
        for line in (b"", b"  ", b'{"jsonrpc": "2.0", "method": "notifications/initialized"}'):
            server.stdin.write(line + b"\n")
        assert answered(server, asking("", "8"))["id"] == 8
        server.stdin.close()
        assert server.stdout.read() == b""


@with_sdk
def test_what_the_leaders_server_cannot_read_is_answered_as_well(tmp_path: Path):
    with begun(Enterprise(tmp_path / "project"), "orch") as server:
        assert answered(server, asking(DEEP))["id"] == 7
        server.stdin.close()


def bells(project: Project) -> list[str]:
    """The bells that hang now. A folder that goes meanwhile is no fault, as it is with glob."""
    places = os.walk(project.path.parent / "bells")
    return [name for _, _, names in places for name in names if not name.startswith(".new-")]


@with_sdk
def test_a_cancelled_wait_takes_nothing(project: Project):
    async def talk(client):
        claim = {"mailbox": ["workers"], "wait": 50}
        waiting = asyncio.create_task(client.call_tool("inbox_claim", claim))
        while not bells(project):
            await asyncio.sleep(0.01)  # until the server has begun to wait
        waiting.cancel()
        await asyncio.wait([waiting])
        while bells(project):
            await asyncio.sleep(0.01)  # until it has noticed
        thread = project.send()
        assert (await call(client, "show", thread=thread, mailbox="workers"))["thread"][
            "state"
        ] == "pending"
        assert (await call(client, "claim", mailbox="workers"))["thread"]["deliveries"] == 1

    with_clients(project.folder, ["w1"], talk)


@with_sdk
def test_a_leader_dispatches_answers_and_waits(tmp_path: Path):
    project = Enterprise(tmp_path / "project").tasks("a", "b")

    async def talk(client):
        listed = (await client.list_tools()).tools
        assert {tool.name for tool in listed} == {*tools_of("orch"), "orch_rest"}
        assert bytes_of(listed) < HALF_OF_ALL_BYTES
        assert {tool.name for tool in listed if tool.annotations.read_only_hint} >= {"orch_status"}
        ready = (await client.call_tool("orch_ready", {})).structured_content
        assert [item["key"] for item in ready["items"]] == ["a"]
        done = (await client.call_tool("orch_dispatch", {"tasks": ["a"]})).structured_content
        thread = done["items"][0]["thread"]
        with project.bus("w1") as bus:
            token = bus.claim(thread, mailboxes=["workers"]).lease.token
            bus.ask(thread, str(token), body="which?")
        waited = await client.call_tool("orch_wait", {"until": "blocked"})
        assert waited.structured_content["questions"][0]["message"]["body"] == "which?"
        await client.call_tool("orch_answer", {"task": "a", "body": "this"})
        assert (await client.call_tool("orch_blocked", {})).structured_content["items"] == []
        shown = (await client.call_tool("orch_task_show", {"task": "a"})).structured_content
        assert shown["task"]["key"] == "a"
        brief = await client.call_tool("orch_status", {"brief": True, "state": ["waiting"]})
        assert [row["key"] for row in brief.structured_content["items"]] == ["b"]
        whole = (await client.call_tool("orch_status", {})).structured_content
        assert len(whole["items"]) == 2 and "name" in whole["run"]
        assert (await error(client, "orch_task_show", task="c"))["exit_code"] == 3
        await builds_and_asks(client)

    with_clients(project.folder, ["leader"], talk, "orch")


async def builds_and_asks(client) -> None:
    """A run from its opening to what is accepted, and a council."""

    async def given(tool: str, **arguments: object) -> dict[str, Any]:
        done = await client.call_tool(f"orch_{tool}", arguments)
        assert not done.is_error, done.structured_content
        return dict(done.structured_content)

    run = (await given("run_init", title="Second"))["run"]["name"]
    assert (await given("task_add", run=run, task="x", title="X"))["task"]["key"] == "x"
    assert (await error(client, "orch_retry", run=run, tasks=["x"]))["exit_code"] == 4
    assert (await given("integrate", run=run))["items"] == []
    brief = "# What now?\n\nÄ or B?\n"
    asked = await given("council_start", brief=brief, reviewers="ada,bob")
    name = asked["council"]["name"]
    assert (await error(client, "orch_council_wait", council=name, wait=0))["exit_code"] == 8
    told = await client.call_tool("orch_council_report", {"council": name})
    assert told.structured_content["data"]["council"]["name"] == name
    digest = hashlib.sha256(brief.encode()).hexdigest()
    assert digest in told.structured_content["data"]["text"]


@with_sdk
def test_within_inbox_work_the_lease_is_known(project: Project):
    held = project.claim()
    lease = {"INBOX_THREAD": held.thread, "INBOX_TOKEN": held.token}

    async def talk(client):
        assert (await call(client, "done", body="ready"))["thread"]["state"] == "done"

    with_clients(project.folder, ["w1"], talk, environment=lease)


@with_sdk
def test_a_stale_lease_is_not_told_to_be_held(project: Project):
    held = project.claim()
    assert project.run("done", *held.arguments, "--body", "ready").code == 0
    lease = {"INBOX_THREAD": held.thread, "INBOX_TOKEN": held.token}

    async def talk(client):
        told = client.instructions
        assert f"thread {held.thread} is finished (done)" in told
        assert "hold a thread already" not in told

    with_clients(project.folder, ["w1"], talk, environment=lease)


# -- the process -----------------------------------------------------------------------------


def message(number: int | None, method: str, **params: object) -> bytes:
    value = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(value if number is None else {**value, "id": number}).encode() + b"\n"


def served(project: Project) -> subprocess.Popen[bytes]:
    """A server that has greeted its client and waits for a task on its behalf."""
    server = subprocess.Popen(
        [command_path(), "mcp", "--agent", "w1"],
        cwd=project.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    about = {"protocolVersion": "2025-06-18", "capabilities": {}}
    client = {"name": "test", "version": "1"}
    server.stdin.write(message(1, "initialize", **about, clientInfo=client))
    server.stdin.flush()
    greeting = json.loads(server.stdout.readline())["result"]
    assert "lease" in greeting["instructions"]
    assert len(greeting["instructions"].encode()) < 1500
    arguments = {"mailbox": ["workers"], "wait": 50}
    server.stdin.write(message(None, "notifications/initialized"))
    server.stdin.write(message(2, "tools/call", name="inbox_claim", arguments=arguments))
    server.stdin.flush()
    return server


@with_sdk
def test_the_server_ends_with_its_client_also_while_it_waits(project: Project):
    server = served(project)
    stdout, stderr = server.communicate(timeout=PATIENCE_SECONDS)

    assert server.returncode == 0, stderr
    assert b"Traceback" not in stderr
    assert not any(json.loads(line).get("result") for line in stdout.splitlines())


@with_sdk
@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_server_at_once(project: Project, number: int, code: int):
    with served(project) as server:
        server.send_signal(number)
        assert server.wait(PATIENCE_SECONDS) == code


def test_without_the_optional_part_the_command_names_it(project: Project):
    code = (
        "import sys\n"
        "import importlib.util as util\n"
        "find = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name == 'mcp' else find(name, *rest)\n"
        "from inbox_orch.inbox.__main__ import main\n"
        "sys.argv = ['inbox', 'mcp']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=project.folder, capture_output=True, text=True
    )
    assert done.returncode == 6
    hint = done.stderr.split("hint: ")[1]
    assert sys.executable in hint and "'mcp>=" in hint


@pytest.mark.parametrize("program", ["inbox", "orch"])
def test_listing_the_tools_needs_no_part_that_is_optional(project: Project, program: str):
    line = [sys.executable, "-X", "importtime", command_path(program), "mcp", "--tools", "--json"]
    done = subprocess.run(
        line, cwd=project.folder, capture_output=True, text=True, env={**os.environ}
    )
    assert {item["name"] for item in json.loads(done.stdout)["data"]["items"]} == {
        *tools_of(program), f"{program}_rest"
    }  # fmt: skip
    loaded = {row.rsplit("|", 1)[-1].strip() for row in done.stderr.splitlines()}
    assert not {"mcp", "mcp_types", "anyio", "asyncio"} & loaded
