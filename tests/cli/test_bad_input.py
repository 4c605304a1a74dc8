"""Bad bodies, payloads, attachments and targets: exit 2, one value, nothing changed."""

import os
import socket
from pathlib import Path

import pytest

from support.commands import ULID, Project

MEBIBYTE = 1024 * 1024
SEND = ("send", "--to", "workers", "--subject", "s", "--agent", "leader")


class Unchanged:
    """Nothing in the database and no file of the project is another afterwards."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def __enter__(self) -> None:
        self._before = (self._project.contents(), self._project.files())

    def __exit__(self, *exc_info: object) -> None:
        assert (self._project.contents(), self._project.files()) == self._before


BODIES = {
    "empty": (b"", "the body is empty"),
    "too_large": (b"x" * (16 * MEBIBYTE + 1), "more than 16777216"),
    "too_large_in_bytes": ("\u00e9" * (8 * MEBIBYTE) + "x").encode(),
    "nul": (b"a\0b", "NUL character at position 1"),
    "not_utf8": (b"abc\xff", "byte 3 is 0xff"),
    "half_a_character": ("abc\u20ac".encode()[:-1], "byte 3 is 0xe2"),
    "half_a_pair": (b"ab\xed\xa0\x80", "byte 2 is 0xed"),
    "overlong": (b"\xc0\xaf", "byte 0 is 0xc0"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_bad_body_on_stdin_is_refused(project: Project, name: str):
    given = BODIES[name]
    content, expected = (given, "more than") if isinstance(given, bytes) else given
    with Unchanged(project):
        ended = project.json(*SEND, "--body-file", "-", stdin=content)

    assert ended.error["code"] == "usage"
    assert expected in ended.error["message"]


def test_the_offset_of_a_wrong_byte_is_given(project: Project):
    ended = project.json(*SEND, "--body-file", "-", stdin=b"0123456\xfe")

    assert ended.error["details"]["offset"] == 7
    assert "--attach" in ended.error["hint"]


def test_the_largest_body_comes_back(project: Project):
    body = b"x" * (16 * MEBIBYTE)
    sent = project.json(*SEND, "--body-file", "-", stdin=body).data
    assert sent["message"]["body_bytes"] == len(body)
    assert sent["message"]["body_truncated"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("reply", "THREAD", "--agent", "leader"),
        ("update", "HELD"),
        ("ask", "HELD"),
        ("done", "HELD"),
        ("fail", "HELD"),
        ("release", "HELD"),
        ("cancel", "THREAD", "--agent", "leader"),
    ],
    ids=lambda arguments: arguments[0],
)
@pytest.mark.parametrize("body", [b"", b"a\0b", b"\xff"], ids=["empty", "nul", "not_utf8"])
def test_every_command_with_a_body_refuses_a_bad_one(project: Project, arguments, body: bytes):
    held = project.claim()
    named = {"THREAD": (held.thread,), "HELD": held.arguments}
    line = [part for word in arguments for part in named.get(word, (word,))]
    with Unchanged(project):
        ended = project.json(*line, "--body-file", "-", stdin=body)

    assert ended.error["code"] == "usage"


PAYLOADS = {
    "no_json": (b"{", "not JSON"),
    "no_object": (b"[1]", "must be a JSON object"),
    "nan": (b'{"a": NaN}', "NaN is not JSON"),
    "infinity": (b'{"a": 1e999}', "out of range"),
    "huge_integer": (b'{"a": ' + b"9" * 5000 + b"}", "a number has too many digits"),
    "half_a_pair": (b'{"a": "\\ud800"}', "half a surrogate pair"),
    "deep": (b'{"a":' * 5000 + b"1" + b"}" * 5000, "nested too deeply"),
    "not_utf8": (b'{"a": "\xff"}', "not UTF-8: byte 7"),
    "too_large": (b'{"a": "' + b"x" * MEBIBYTE + b'"}', "more than 1048576 bytes"),
    "empty": (b"", "not JSON"),
}


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_bad_payload_is_refused(project: Project, name: str):
    content, expected = PAYLOADS[name]
    with Unchanged(project):
        ended = project.json(*SEND, "--payload-file", "-", stdin=content)

    assert ended.error["code"] == "usage"
    assert expected in ended.error["message"]


def test_the_deepest_payload_that_is_taken_comes_back_everywhere(project: Project):
    """What is accepted at one depth of the stack must not fail at another, after the commit."""

    def accepted(depth: int) -> bool:
        text = b'{"a":' * depth + b"1" + b"}" * depth
        return project.json(*SEND, "--payload-file", "-", stdin=text).code == 0

    low, high = 50, 300
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if accepted(middle) else (low, middle)

    for item in project.json("list").data["items"]:
        assert project.json("show", item["id"]).data["messages"][0]["payload"]
        assert project.run("show", item["id"]).code == 0
    assert project.run("export").code == 0
    assert project.json("doctor", "--verify").data["problems"] == 0


ATTACHMENTS = {
    "missing": "No such file",
    "folder": "it is a folder",
    "fifo": "not a regular file",
    "socket": "not a regular file",
    "/dev/null": "not a regular file",
    "/dev/zero": "not a regular file",
    "bad\nname": "cannot be the name of an artifact",
    "loop": "symbolic links",
}


@pytest.mark.parametrize("name", ATTACHMENTS)
def test_what_cannot_be_attached_is_refused_at_once(project: Project, tmp_path: Path, name: str):
    place = tmp_path / "files"
    (place / "folder").mkdir(parents=True)
    os.mkfifo(place / "fifo")
    (place / "loop").symlink_to("loop")
    (place / "bad\nname").write_text("x")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place / "socket"))
        with Unchanged(project):
            ended = project.json(*SEND, "--attach", str(place / name))

    assert ended.error["code"] == "usage"
    if name != "socket":  # open(2) itself refuses a socket
        assert ATTACHMENTS[name] in ended.error["message"]


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs /proc")
def test_a_file_that_fails_while_it_is_read_is_named_itself(project: Project):
    """Nobody can read the first page of a process."""
    before = project.contents()
    error = project.json(*SEND, "--attach", "/proc/self/mem").error

    assert project.contents() == before
    assert error["code"] == "io_error"
    assert "/proc/self/mem" in error["message"]
    assert error["details"]["path"] == "/proc/self/mem"
    assert ".inbox" not in error["message"]


def test_what_cannot_be_printed_is_escaped_once(project: Project, tmp_path: Path):
    (tmp_path / "bad\x1bname").write_text("x")
    error = project.json(*SEND, "--attach", str(tmp_path / "bad\x1bname")).error
    assert "'bad\\x1bname'" in error["message"]
    error = project.json("list", "--mailbox", "it's \x1b").error
    assert '"it\'s \\x1b"' in error["message"]


def test_a_name_of_any_kind_reaches_the_receiver_and_no_other_place(project: Project, tmp_path):
    for name in ("a b", "..txt", "-x", "\u202eexe.txt"[1:], "\U0001f600", "[red]", "%s"):
        (tmp_path / name).write_bytes(name.encode())
        held = project.json(*SEND, "--attach", str(tmp_path / name)).data
        assert [a["name"] for a in held["message"]["artifacts"]] == [name]
        thread = held["thread"]["id"]
        shown = project.run("show", thread, f"--artifact={name}", "--output", "-")
        assert shown.stdout == name.encode()


def test_an_artifact_is_written_to_a_device_and_never_in_its_place(project: Project, tmp_path):
    """A rename onto /dev/null would replace it for everybody."""
    (tmp_path / "f").write_bytes(b"content")
    thread = project.json(*SEND, "--attach", str(tmp_path / "f")).data["thread"]["id"]
    fifo, link, real = tmp_path / "fifo", tmp_path / "link", tmp_path / "real"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    real.write_text("old")
    link.symlink_to(real)

    for target in (fifo, link):
        assert project.json("show", thread, "--artifact", "f", "--output", str(target)).data
    content = os.read(reader, 100)
    os.close(reader)

    assert content == b"content"
    assert fifo.is_fifo()
    assert link.is_symlink()
    assert real.read_bytes() == b"content"


@pytest.mark.parametrize("target", ["folder", "missing/f", ""], ids=["folder", "missing", "empty"])
def test_a_target_that_cannot_be_written_is_refused(project: Project, tmp_path: Path, target: str):
    (tmp_path / "folder").mkdir()
    (tmp_path / "f").write_bytes(b"content")
    thread = project.json(*SEND, "--attach", str(tmp_path / "f")).data["thread"]["id"]
    path = str(tmp_path / target) if target else ""
    before = sorted(tmp_path.iterdir())
    ended = project.json("show", thread, "--artifact", "f", "--output", path)

    assert ended.error["code"] == "usage"
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "name", ["", " ", "..", ".a", "-a", "a b", "a/b", "a\n", "\u00e9", "a" * 65]
)
def test_a_bad_name_is_refused_wherever_one_is_given(
    project: Project, call, monkeypatch: pytest.MonkeyPatch, name: str
):
    monkeypatch.chdir(project.folder)
    with Unchanged(project):
        for line in (
            ("send", f"--to={name}", "--subject", "s", "--agent", "leader"),
            ("send", "--to", "workers", "--subject", "s", f"--agent={name}"),
            ("fetch", "--agent", "w1", f"--mailbox={name}"),
            ("claim", "--agent", "w1", f"--mailbox={name}"),
            ("stats", f"--mailbox={name}"),
        ):
            assert call(*line).error["code"] == "usage"


@pytest.mark.parametrize("thread", ["x", ULID[:-1], ULID + "0", "../../etc", "I" * 26, ULID])
def test_an_id_that_no_thread_has_is_not_found(
    project: Project, call, monkeypatch: pytest.MonkeyPatch, thread: str
):
    monkeypatch.chdir(project.folder)
    with Unchanged(project):
        for line in (
            ("show", thread),
            ("cancel", thread, "--agent", "leader"),
            ("unseal", thread, "--agent", "leader"),
            ("reply", thread, "--agent", "leader", "--body", "b"),
        ):
            ended = call(*line)
            assert ended.code == 3, (line, ended)


def test_an_id_may_be_typed_in_small_letters(project: Project):
    thread = project.send()
    assert project.json("show", thread.lower()).data["thread"]["id"] == thread


@pytest.mark.parametrize(
    "line",
    [
        ("send", "--to", "w", "--subject", "s"),
        ("fetch",),
        ("claim",),
        ("reply", ULID, "--body", "b"),
        ("cancel", ULID),
        ("unseal", ULID),
        (),
    ],
    ids=lambda line: line[0] if line else "inbox",
)
def test_whoever_acts_needs_a_name(project: Project, line):
    with Unchanged(project):
        ended = project.json(*line)
    assert ended.error["code"] == "usage"
    assert "INBOX_AGENT" in ended.error["hint"]


@pytest.mark.parametrize("value", ["x", "-1", "nan", "1e9", "0x1"])
def test_a_bad_busy_timeout_is_named(project: Project, value: str):
    ended = project.json("list", INBOX_BUSY_TIMEOUT=value)
    assert ended.error["code"] == "usage"
    assert "INBOX_BUSY_TIMEOUT" in ended.error["message"]
