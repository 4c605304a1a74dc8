"""Documents that are made to hurt: bombs of aliases and depth, numbers without end, huge texts,
paths that lead out. Each is refused with one error, quickly, in little memory, and nothing is
changed."""

import json
import resource
import subprocess
import time
from pathlib import Path

import pytest

from inbox_orch.orch.council import replies
from inbox_orch.shared.store.artifacts import check_artifact_name
from support.buses import refused
from support.commands import Outcome, command_path
from support.orch_matrix import Enterprise
from support.timing import PATIENCE_SECONDS
from support.warm import Forked

MOST_SECONDS = 30
MOST_BYTES = 1536 * 1024 * 1024

LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [{','.join(f'*{a}' for _ in range(9))}]\n"
    for a, b in zip("abcdefghijk", "bcdefghijkl", strict=True)
)
DOCUMENTS = {
    "laughs": LAUGHS,
    "laughs_in_place": f"tasks:\n- task: a\n  title: {LAUGHS.splitlines()[0][3:]}\n" + LAUGHS,
    "alias_of_itself": "tasks: &a [*a]\n",
    "merge_keys": "a: &a {x: 1}\n<<: *a\ntasks: []\n",
    "deep_yaml": "tasks: " + "[" * 100_000 + "]" * 100_000,
    "deep_block": "".join("  " * n + "- \n" for n in range(2000)),
    "deep_json": '{"tasks": ' + "[" * 200_000 + "]" * 200_000 + "}",
    "deep_objects": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "huge_number": '{"tasks": [], "run": {"max_parallel": ' + "9" * 1_000_000 + "}}",
    "huge_number_yaml": "run: {title: T, max_parallel: " + "9" * 1_000_000 + "}\ntasks: []\n",
    "infinite": '{"run": {"title": "T", "max_parallel": 1e999}, "tasks": []}',
    "not_a_number": '{"run": {"title": "T", "max_parallel": NaN}, "tasks": []}',
    "object": "tasks: !!python/object/apply:os.system ['touch pwned']\n",
    "binary": "tasks: !!binary aGVsbG8=\n",
    "many_documents": "---\n" * 50_000,
    "many_anchors": "".join(f"- &a{n} x\n" for n in range(100_000)),
    "long_line": "tasks: '" + "x" * 8_000_000 + "'\n",
    "nul": "tasks: [a\0b]\n",
    "not_utf_8": b"tasks: [\xff\xfe]\n",
    "utf_16": "tasks: []\n".encode("utf-16"),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Enterprise:
    return Enterprise(tmp_path_factory.mktemp("bombs") / "project").tasks("first")


def bounded(project: Enterprise, *line: str, stdin: bytes, program: str = "orch") -> Outcome:
    """Run a command with limits on its memory and its time, which a bomb would exceed."""
    words = [command_path(program), "--json", *line]
    given = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": project.folder}
    process = Forked("command", words, **given)
    resource.prlimit(process.pid, resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    resource.prlimit(process.pid, resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    stdout, stderr = process.communicate(stdin, timeout=PATIENCE_SECONDS)
    return Outcome(process.wait(), stdout, stderr)


def as_bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("reader", ["plan", "config"])
def test_a_document_that_is_made_to_hurt_is_refused(project: Enterprise, name: str, reader: str):
    line = ("plan", "import", "-") if reader == "plan" else ("run", "init", "--title", "T")
    line += () if reader == "plan" else ("--config", "-")
    before = project.contents()

    ended = bounded(project, *line, stdin=as_bytes(DOCUMENTS[name]))

    assert (ended.code, ended.error["code"]) == (2, "usage"), ended.stdout[:500]
    assert len(ended.stdout) < 100_000
    assert not (project.folder / "pwned").exists()
    assert project.contents() == before


PAYLOADS = {
    "deep": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "deep_list": '{"a":' + "[" * 200_000 + "]" * 200_000 + "}",
    "huge_number": '{"a":' + "9" * 1_000_000 + "}",
    "infinite": '{"a": 1e999}',
    "not_a_number": '{"a": NaN}',
    "nul": '{"a": "\0"}',
    "lone_surrogate": '{"a": "\\ud800"}',
    "twice": '{"a": 1, "a": 2}',
}


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_payload_that_is_made_to_hurt_harms_nobody(project: Enterprise, tmp_path, name: str):
    """It is refused, or it comes back from every command that shows it."""
    file = tmp_path / "payload.json"
    file.write_text(PAYLOADS[name])
    line = ("send", "--to", "w9", "--subject", "s", "--agent", "leader")
    sent = bounded(project, *line, "--payload-file", str(file), stdin=b"", program="inbox")
    if sent.code == 0:
        shown = project.json("show", sent.data["thread"]["id"], "--full")
        assert shown.code == 0
        json.loads(shown.stdout, parse_constant=pytest.fail)
        exported = project.run("export")
        assert exported.code == 0
        for row in exported.text.splitlines():
            json.loads(row, parse_constant=pytest.fail)
    else:
        assert (sent.code, sent.error["code"]) == (2, "usage")


REPLIES = {
    "deep": '{"schema": "orch.council.reply/1", "recommendations": ' + "[" * 100_000,
    "deep_closed": '{"schema":"orch.council.reply/1","a":' + "[" * 50_000 + "]" * 50_000 + "}",
    "many_braces": "{" * 500_000,
    "many_fences": "```json\n{\n" * 50_000,
    "huge_number": '{"schema": "orch.council.reply/1", "round": ' + "9" * 100_000 + "}",
    "infinite": '{"schema": "orch.council.reply/1", "round": 1e999}',
    "quotes": '{"' * 200_000,
    "backslashes": '{"a": "' + "\\" * 500_001,
    "spaces": "{" + " " * 900_000 + "}",
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_that_is_made_to_hurt_is_read_quickly_and_is_no_reply(name: str):
    expected = replies.Expected("01ARZ3NDEKTSV4RRFFQ69G5FAV", 1, "ab" * 32)
    began = time.process_time()
    found = replies.read(REPLIES[name], reviewer="ada", expected=expected)
    assert found.state != "valid"
    assert found.reply is None
    assert time.process_time() - began < 10
    assert sum(map(len, found.errors)) < 20_000


@pytest.mark.parametrize(
    "path", ["../../etc/passwd", "/etc/passwd", "a/../../b", ".git/config", "./.git/hooks", "a\nb"]
)
def test_a_path_in_a_config_cannot_lead_out(project: Enterprise, path: str):
    config = json.dumps({"copy": [path]}).encode()
    ended = project.orch("run", "init", "--title", "T", "--config", "-", "--json", stdin=config)
    assert ended.error["code"] == "usage"


@pytest.mark.parametrize("name", ["../x", "a/b", "..", ".", "a\0b", "x" * 256])
def test_a_name_of_an_artifact_cannot_lead_out(project: Enterprise, name: str):
    with refused("usage"):
        check_artifact_name(name)


@pytest.mark.parametrize("key", ["../x", "a/b", ".", "-x", "a\n", "", "x" * 200])
def test_a_key_of_a_task_cannot_lead_out_of_the_worktrees(project: Enterprise, key: str):
    plan = json.dumps({"tasks": [{"task": key, "title": "T"}]}).encode()
    ended = project.orch("plan", "import", "-", "--json", stdin=plan)
    assert ended.error["code"] == "usage"
    assert Path(project.state).exists() is False or not list(Path(project.state).rglob("x"))
