"""Bodies and artifacts come back as they went in, through the commands, in any locale."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from support.commands import Project, command_path, run
from support.contracts import validated
from support.lengths import LONG

SEND = ("send", "--to", "workers", "--subject", "s", "--agent", "leader")
AWKWARD = (
    "\r\nCRLF\r\n",
    "no final newline",
    "\n",
    "\ufeffmark",
    "line\u2028paragraph\u2029",
    "\u202eright to left \u05d0\u05d1",
    "\U0001f469\u200d\U0001f680 emoji",
    "\x01\x08\x0b\x1b[2J\x7f\x85\x9b",
    "\t tab and trailing space ",
    "\ufffe\uffff\U0010ffff",
    "e\u0301 \u00e9",
)
bodies = st.text(
    st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1
) | st.lists(st.sampled_from(AWKWARD), min_size=1).map("".join)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("bytes") / "project")


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def comes_back(project: Project, body: bytes, artifact: bytes, folder: Path) -> None:
    """By stdin and file in, by JSON, export and stdout out."""
    file = folder / "artifact.bin"
    file.write_bytes(artifact)
    sent = project.json(*SEND, "--body-file", "-", "--attach", str(file), stdin=body).data
    (attached,) = sent["message"]["artifacts"]
    thread = sent["thread"]["id"]
    assert sent["message"]["body_sha256"] == digest(body)
    assert (attached["sha256"], attached["bytes"]) == (digest(artifact), len(artifact))

    shown = project.json("show", thread, "--full")
    validated("show", shown.stdout)
    (message,) = shown.data["messages"]
    assert message["body"].encode() == body
    assert message["body_bytes"] == len(body)
    assert not message["body_truncated"]
    got = project.run("show", thread, "--artifact", "artifact.bin", "--output", "-")
    assert got.stdout == artifact
    out = folder / "out.bin"
    project.run("show", thread, "--artifact", "artifact.bin", "--output", str(out))
    assert out.read_bytes() == artifact


@settings(
    max_examples=12,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(body=bodies, artifact=st.binary())
@example(body="".join(AWKWARD), artifact=bytes(range(256)) * 3)
@example(body="x", artifact=b"")
def test_bodies_and_artifacts_come_back(project: Project, tmp_path: Path, body: str, artifact):
    comes_back(project, body.encode(), artifact, tmp_path)


def test_show_cuts_a_long_body_and_says_so(project: Project):
    body = "\u00e4" * 40_000 + "the end"
    thread = project.send(body=body)

    (cut,) = project.json("show", thread).data["messages"]
    assert cut["body_truncated"]
    assert (cut["body"], cut["body_bytes"]) == ("\u00e4" * 2048, 80_007)
    text = project.run("show", thread).text
    assert "\u2026 80007 bytes in all; --full shows them" in text
    assert "the end" not in text
    assert len(text.encode()) < 6_000

    (whole,) = project.json("show", thread, "--full").data["messages"]
    assert (whole["body"], whole["body_truncated"]) == (body, False)
    text = project.run("show", thread, "--full").text
    assert body in text
    assert "--full" not in text


def test_sixteen_mebibytes_come_back(project: Project, tmp_path: Path):
    whole = ("0123456789abcde\u00e9" * 1024 * 1024).encode()[: 16 * 1024 * 1024 - 2] + b"\r\n"
    body = whole.decode("utf-8", "ignore").encode()
    comes_back(project, body, os.urandom(16 * 1024 * 1024), tmp_path)


SHELL = b"`touch ran` $(touch ran) ${HOME} $HOME 'single' \"double\" \\ ; & | > ran * ? ~ ! #\n"


def test_nothing_in_a_body_is_run_or_replaced_by_a_shell(project: Project, tmp_path: Path):
    body = SHELL * (3 * 1024 * 1024 // len(SHELL))
    comes_back(project, body, SHELL, tmp_path)
    sent = project.json(*SEND[:1], "--to", "shell", *SEND[3:], "--body-file", "-", stdin=body)
    thread = sent.data["thread"]["id"]
    reading = 'cat > task; printf %s "$(wc -c < task)" > "$INBOX_RESULT"'
    worked = project.run(
        *("work", "--agent", "w1", "--mailbox", "shell", "--once", "--", "sh", "-c", reading)
    )
    assert worked.code == 0, worked
    shown = project.json("show", thread).data
    assert shown["thread"]["state"] == "done"
    assert shown["messages"][-1]["body"] == str(len(body))
    assert (project.folder / "task").read_bytes() == body
    assert not (project.folder / "ran").exists()


def test_a_long_body_on_the_command_line_is_not_cut(project: Project):
    body = "0123456789" * 12_000  # a word of a command line may have 128 KiB (execve(2))
    sent = project.json(*SEND, f"--body={body}").data
    assert sent["message"]["body_sha256"] == digest(body.encode())
    assert sent["message"]["body_bytes"] == len(body)


def test_a_body_on_the_command_line_is_taken_as_it_was_typed(project: Project):
    for body in AWKWARD:
        sent = project.json(*SEND, f"--body={body}").data
        assert sent["message"]["body"] == body
        assert sent["message"]["body_sha256"] == digest(body.encode())


def test_a_plain_pipe_can_be_undone(project: Project):
    """Tabs, line ends and backslashes of the text are escaped, so a line stays a line."""
    for body in AWKWARD:
        thread = project.json(*SEND, "--body-file", "-", stdin=body.encode()).data["thread"]["id"]
        lines = project.run("show", thread).text.split("\n")
        (line,) = [line for line in lines if line.startswith("#")]
        escaped = line.split("\t", 1)[1]
        restored = escaped.encode("raw_unicode_escape").decode("unicode_escape")
        assert restored == body


LOCALES = {
    "cp1252": {"PYTHONIOENCODING": "cp1252", "LC_ALL": "C"},
    "ascii": {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"},
    "no_coercion": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "utf16": {"PYTHONIOENCODING": "utf-16", "LC_ALL": "C"},
    "latin1_terminal": {"PYTHONIOENCODING": "latin-1", "FORCE_COLOR": "1"},
    "strict": {"PYTHONIOENCODING": "ascii:strict", "LANG": "POSIX", "LC_ALL": "POSIX"},
}
EMOJI = "\U0001f600 \u202e \u20ac \u05d0"
NAME = "\U0001f600 \u20ac \u05d0"  # what is a name must be printable


@pytest.fixture
def emoji(tmp_path: Path) -> Project:
    """A project in which everything that may be has an emoji in it."""
    project = Project(tmp_path / NAME / "project")
    (project.folder / f"{NAME}.txt").write_text(EMOJI)
    return project


def every_command(project: Project) -> list[tuple[str, ...]]:
    """One call of each command, all on emoji data, in an order in which all succeed."""
    asked = project.claim(project.send(EMOJI, EMOJI))
    with project.bus("w1") as bus:
        bus.ask(asked.thread, asked.token, body=EMOJI, options=[EMOJI])
    failing, released = (project.claim(project.send(EMOJI, EMOJI)) for _ in range(2))
    sealed, cancelled, waiting = project.send(EMOJI, sealed=True), project.send(), project.send()
    file = f"{NAME}.txt"
    return [
        ("init",),
        ("where",),
        ("send", "--to", "w9", "--subject", EMOJI, "--body", EMOJI, "--agent", "a", "--key", NAME),
        ("send", "--to", "w9", "--subject", "s", "--attach", file, "--agent", "a"),
        ("fetch", "--agent", "w1", "--mailbox", "workers"),
        ("reply", asked.thread, "--body", EMOJI, "--agent", "leader"),
        ("wait-reply", *asked.arguments, "--wait", "0"),
        ("renew", *asked.arguments),
        ("update", *asked.arguments, "--body", EMOJI, "--attach", file),
        ("ask", *asked.arguments, "--body", EMOJI, "--option", EMOJI),
        ("--agent", "leader"),
        ("done", *asked.arguments, "--body", EMOJI),
        ("fail", *failing.arguments, "--body", EMOJI),
        ("release", *released.arguments, "--body", EMOJI),
        ("claim", waiting, "--agent", "w1", "--mailbox", "workers"),
        ("claim", released.thread, "--agent", "w1", "--mailbox", "workers", "--export"),
        ("cancel", cancelled, "--agent", "leader", "--body", EMOJI),
        ("unseal", sealed, "--agent", "leader"),
        ("list",),
        ("show", asked.thread, "--full"),
        ("show", asked.thread, "--artifact", file),
        ("watch", "--after", "0", "--wait", "0"),
        ("work", "--agent", "w9", "--idle-exit", "0", "--", "cat"),
        ("stats",),
        ("doctor", "--verify"),
        ("backup", f"{NAME}.db"),
        ("export",),
        ("prune", "--older-than", "0", "--dry-run"),
        ("schema", "list"),
        ("prime",),
        ("guide",),
        ("skill", "print"),
        ("skill", "install"),
        ("setup", "claude"),
        ("hook", "session-start"),
        ("completion", "fish"),
        ("help", "environment"),
        ("mcp", "--tools"),
    ]


def test_the_list_of_calls_names_every_command(emoji: Project):
    from support.clicktree import NAMES

    assert {line[0] for line in every_command(emoji)} - {"--agent"} == set(NAMES)


# Text where the encoding is narrowest, and on a terminal; the long form tries the others, too.
TEXT_LOCALES = tuple(LOCALES) if LONG else ("ascii", "latin1_terminal")


@pytest.mark.parametrize(
    "name, as_json",
    [*((name, True) for name in LOCALES), *((name, False) for name in TEXT_LOCALES)],
)
def test_no_locale_breaks_a_command(emoji: Project, name: str, as_json: bool):
    for line in every_command(emoji):
        options = ("--json",) if as_json and "--export" not in line else ()
        ended = emoji.run(*options, *line, **LOCALES[name])
        assert ended.code == 0, (line, ended)
        assert b"Traceback" not in ended.stderr, (line, ended)
        if options and "--artifact" not in line:
            for each in ended.stdout.splitlines():
                json.loads(each.decode("utf-8"))


@pytest.mark.parametrize("name", LOCALES)
def test_exported_lines_lead_back_in_every_locale(emoji: Project, name: str):
    """The path of the database has an emoji in it, and the shell must get its bytes."""
    emoji.send()
    script = 'eval "$("$1" claim --agent w1 --mailbox workers --export)" && cd / && "$1" renew'
    ended = subprocess.run(
        ["sh", "-c", script, "sh", command_path()],
        cwd=emoji.folder,
        env={**os.environ, **LOCALES[name]},
        capture_output=True,
    )
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("name", LOCALES)
def test_paths_are_readable_in_every_locale(emoji: Project, name: str):
    path = str(emoji.path)
    assert emoji.json("where", **LOCALES[name]).data["path"] == path
    missing = emoji.json("list", "--db", f"{path}x", **LOCALES[name])
    assert missing.error["details"]["path"] == f"{path}x"


@pytest.mark.parametrize("name", LOCALES)
def test_text_survives_every_locale(emoji: Project, name: str):
    """What was typed in one locale is what another reads: the bytes count."""
    sent = emoji.json(*SEND, "--body", EMOJI, **LOCALES[name]).data
    assert sent["message"]["body_sha256"] == digest(EMOJI.encode())
    shown = emoji.json("show", sent["thread"]["id"], **LOCALES[name]).data
    assert shown["messages"][0]["body"] == EMOJI
    failed = emoji.json("show", EMOJI, **LOCALES[name])
    assert failed.error["code"] == "not_found"
    assert run("no-\U0001f600", **LOCALES[name]).code == 2
