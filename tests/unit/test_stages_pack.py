"""What a context pack has in it: bounded, the same for the same, and never a key."""

import pytest

from inbox_orch.orch.stages import pack
from inbox_orch.orch.stages.model import Stage
from inbox_orch.orch.stages.pack import packed
from inbox_orch.orch.stages.texts import MAX_TEXT_BYTES, for_visit, size

PATHS = ["AGENTS.md", "a/AGENTS.md", "a/b/c.py", "a/b/d.py", "e/d.py", "README.md", ".env"]


@pytest.mark.parametrize(
    "text, named",
    [
        ("Mend a/b/c.py.", ["a/b/c.py"]),
        ("Mend `c.py:12`, then ./README.md", ["a/b/c.py", "README.md"]),
        ("d.py is in two places", []),
        ("b/d.py is in one", []),
        ("(see .env)", [".env"]),
        ("nothing, e.g. README", []),
    ],
)
def test_files_are_named_whole_or_by_what_only_one_has(text, named):
    assert pack.named_in(text, PATHS) == named


def test_the_nearest_instructions_come_first():
    assert pack.instructions_for(["a/b/c.py"], PATHS) == ["a/AGENTS.md", "AGENTS.md"]


@pytest.mark.parametrize(
    "path",
    [".env", ".env.local", "x/prod.env", "id_rsa", "k/server.pem", "secrets.yaml", ".ssh/config"],
)
def test_what_looks_like_a_file_of_secrets_is_left_out(path):
    found = packed([], [], [path, "a.py"], [(path, b"text\n")])

    assert path not in found.text
    assert found.manifest[0].fate == "out"


@pytest.mark.parametrize(
    "key",
    [
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "AKIA" + "A1" * 8,
        "ghp_" + "a1" * 18,
        "github_pat_" + "a1" * 20,
        "glpat-" + "a1" * 10,
        "sk-ant-" + "a1" * 20,
        "xoxb-" + "1234567890-abc",
        "AIza" + "a" * 35,
        "npm_" + "a1" * 18,
        "pypi-" + "Ag" * 30,
        "sk_live_" + "a1" * 12,
        "eyJ" + "a" * 20 + ".eyJ" + "b" * 20 + ".c",
    ],
)
def test_a_file_with_a_key_in_it_is_left_out(key):
    found = packed([], [("AGENTS.md", f"use {key}\n".encode())], ["AGENTS.md"], [])

    assert key not in found.text
    assert found.manifest == (("AGENTS.md", "out", "something in it looks like a key"),)


def test_it_is_bounded_and_says_what_was_cut():
    long = b"a line of some length\n" * 5000
    files = [(f"f{number}.py", long + str(number).encode()) for number in range(4)]
    every = [f"d{number}/{n}.py" for number in range(200) for n in range(100)]
    found = packed(["time"], [("AGENTS.md", long)], every, [*files, ("bin", b"\0"), ("no", None)])

    assert size(found.text) <= pack.MAX_PACK_BYTES
    fates = {each.path: each.fate for each in found.manifest}
    assert fates["AGENTS.md"] == fates["f0.py"] == "cut"
    assert fates["f1.py"] == fates["bin"] == fates["no"] == "out"
    assert found == packed(
        ["time"], [("AGENTS.md", long)], every, [*files, ("bin", b"\0"), ("no", None)]
    )


def test_the_same_instructions_are_told_once():
    found = packed([], [("AGENTS.md", b"x\n"), ("CLAUDE.md", b"x\n")], [], [])

    assert [each.fate for each in found.manifest] == ["in", "out"]


# -- the text of a visit -------------------------------------------------------------------


def test_what_is_to_be_done_is_never_cut_for_what_is_known_besides():
    stage = Stage("mend", "agent", goal="Mend it.")
    task = "task " * 6000
    text = for_visit(task, stage, ["old " * 4000, "NEWEST"], background=["b " * 9000])

    assert text.startswith(task)
    assert "This step: mend\n\nMend it.\n\nNEWEST" in text
    assert size(text) <= size(task) + MAX_TEXT_BYTES
    assert "old old" not in text and text.count("b ") < 9000


def test_what_fits_is_told_whole():
    stage = Stage("mend", "agent", goal="Mend it.")
    text = for_visit("T", stage, ["one", "two"], background=["known"])

    assert text.startswith("T\n\nknown\n\nThis step: mend\n\nMend it.\n\none\n\ntwo\n\n")
