"""`orch purge` as it is called: values come from files, standard input and variables, and no output
has one."""

from pathlib import Path

import pytest

from support.orch_matrix import Enterprise

SECRET = "t0ken-0f-the-server"
KEY = "-----BEGIN-----\nabcdefgh\n-----END-----"


@pytest.fixture
def project(tmp_path: Path) -> Enterprise:
    made = Enterprise(tmp_path / "project")
    with made.bus("w1") as bus:
        bus.send(to="w2", subject="s", body=f"{SECRET} and\n{KEY}")
    return made


def body(project: Enterprise) -> str:
    with project.bus("w2") as bus:
        (thread,) = bus.list(mailboxes=["w2"]).items
        return str(bus.show(thread.id, full=True).messages[0].body)


def test_without_yes_it_tells_and_changes_nothing(project: Enterprise):
    ended = project.orch("purge", "--from", "-", stdin=f"{SECRET}\r\n\n".encode())
    assert ended.code == 0
    assert "rows\tmessage\t1\tfound\t" in ended.text
    assert SECRET not in ended.text
    assert SECRET in body(project)


def test_with_yes_it_is_taken_out_of_files_and_whole_variables(project: Enterprise):
    (project.folder / "values").write_text(f"\ufeff{SECRET}\nnowhere-at-all\n")
    words = ("--from", "values", "--env", "LEAKED", "--yes", "--json")
    ended = project.orch("purge", *words, LEAKED=KEY)
    assert ended.code == 0
    assert (ended.data["done"], ended.data["values"]) == (True, 3)
    assert body(project) == "***REMOVED*** and\n***REMOVED***"


def test_what_it_does_not_reach_is_said_with_the_whole_result(project: Enterprise):
    (project.folder / ".inbox" / "copy").write_text(SECRET)
    ended = project.orch("purge", "--from", "-", "--yes", "--json", stdin=SECRET.encode())
    assert (ended.code, ended.error["code"]) == (11, "degraded")
    kept = [item["kind"] for item in ended.value["data"]["items"] if item["action"] == "kept"]
    assert kept == ["files"]
    assert SECRET.encode() not in ended.stdout + ended.stderr
    assert SECRET not in body(project)


@pytest.mark.parametrize(
    "words, stdin, message",
    [
        ((), b"", "no value was given"),
        (("--from", "-"), b"\n \n", "no value to look for"),
        (("--from", "-"), b"sh0rt\n", "5 bytes"),
        (("--from", "-"), b"\xff" * 9, "not UTF-8: byte 0"),
        (("--from", "-"), b"x" * (1024 * 1024 + 1), "more than 1048576 bytes"),
        (("--env", SECRET), b"", "names no variable that is set"),
        (("--from", "missing"), b"", "cannot read missing"),
    ],
)
def test_what_is_no_value_is_refused_without_being_repeated(
    project: Enterprise, words: tuple[str, ...], stdin: bytes, message: str
):
    ended = project.orch("purge", *words, "--yes", "--json", stdin=stdin)
    assert (ended.code, ended.error["code"]) == (2, "usage")
    assert message in ended.error["message"]
    assert SECRET.encode() not in ended.stdout + ended.stderr
    assert b"sh0rt" not in ended.stdout + ended.stderr
