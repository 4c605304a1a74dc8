"""What is judged is what git has: neither attributes nor names nor the history hide anything."""

import subprocess
from pathlib import Path

import pytest

from inbox_orch.orch.git import history
from inbox_orch.orch.git.added import added
from inbox_orch.orch.git.sealed import sealed_folder
from inbox_orch.orch.patches import examine as examining
from inbox_orch.orch.patches.examine import Told, examine, examine_told
from inbox_orch.orch.patches.policy import Examined, Layer, Policy
from inbox_orch.orch.runs.policies import layers_of
from inbox_orch.shared.errors import InboxOrchError
from support.keys import KEYS
from support.runs import git
from support.trees import Files, Trees, plain

FLOOR = Policy()
KEY = KEYS["npm token"]


def run(given: dict) -> Policy:
    """As a run with this policy has it."""
    return Policy(tuple(Layer(*named) for named in layers_of(given)))


@pytest.fixture
def trees(tmp_path: Path) -> Trees:
    return Trees(tmp_path)


class Examining:
    """Judges trees by a policy."""

    def __init__(self, trees: Trees) -> None:
        self.trees = trees

    def __call__(self, before: Files, after: Files, policy: Policy = FLOOR, **options) -> Examined:
        base, head = self.trees.write(before), self.trees.write(after)
        return examine(self.trees.repository, base, head, policy, **options)


@pytest.fixture
def examined(trees: Trees) -> Examining:
    return Examining(trees)


def rules(found: Examined) -> dict[str, str]:
    return {objection.rule: objection.outcome for objection in found.objections}


def link(target: str) -> tuple[str, bytes]:
    return ("120000", target.encode())


HOSTILE = {
    "a link out": ({}, {"a": link("/etc/passwd")}, "link_outside"),
    "a link that is retargeted": ({"a": link("b")}, {"a": link("../b")}, "link_outside"),
    "a link by way of another": (
        {"d/e/l": link("../..")},
        {"d/e/l": link("../.."), "x": link("d/e/l/../y")},
        "link_outside",
    ),
    "a link into git's own": ({}, {"a": link(".git/config")}, "link_outside"),
    "case alone": ({"read.me": plain("")}, {"read.me": plain(""), "READ.me": plain("")},
                   "name_collision"),
    "case of a folder": ({"src/a": plain("")}, {"src/a": plain(""), "SRC/b": plain("")},
                         "name_collision"),
    "a short name of git's folder": ({}, {"GIT~1/config": plain("")}, "git_folder"),
    "an unseen letter": ({}, {".g\u200cit/config": plain("")}, "git_folder"),
    "a nested repository": ({}, {"sub": ("160000", b"1" * 40)}, "nested_repository"),
    "one that is named wrongly": (
        {},
        {"sub": ("160000", b"1" * 40), ".gitmodules": plain('[submodule "a"]\npath = other\n')},
        "nested_repository",
    ),
    "a backslash": ({}, {"..\\x": plain("")}, "outside"),
    "a long name": ({}, {"x" * 300: plain("")}, "name_length"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_the_floor_is_held_without_a_policy(examined: Examining, case: str):
    before, after, rule = HOSTILE[case]

    found = examined(before, after)

    assert rules(found) == {rule: "denied"}
    assert found.objections[0].layer == "floor"


def test_what_is_allowed_is_let_in(examined: Examining):
    module = {
        "sub": ("160000", b"1" * 40), ".gitmodules": plain('[submodule "s"]\n\tpath = sub\n')
    }  # fmt: skip
    # That one name is another in other case was so before.
    there = {"A": plain("1"), "a": plain("2"), "out": link("../x")}

    assert examined({}, {**module, "l": link("docs/排查.md")}).objections == ()
    assert examined(there, {**there, "A": plain("3"), "b": plain("")}).objections == ()
    assert examined(module, {**module, "sub": ("160000", b"2" * 40)}).objections == ()


def test_no_attribute_hides_lines_or_secrets(examined: Examining):
    many = "".join(f"{n}\n" for n in range(500)) + f"token = '{KEY}'\n"
    attributes = "* -diff -text binary\n"
    folder = examined.trees.folder
    (folder / ".gitattributes").write_text(attributes)
    (folder / ".git" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "info" / "attributes").write_text(attributes)
    git(folder, "config", "diff.noprefix", "true")
    git(folder, "config", "diff.context", "9")

    found = examined({}, {"a.py": plain(many)}, run({"max_lines": 500}))

    assert rules(found) == {"max_lines": "denied", "secrets": "denied"}
    (secret,) = [o for o in found.objections if o.rule == "secrets"]
    assert "a.py:501 (npm token)" in secret.text
    assert KEY not in repr(found)


def test_a_key_is_found_in_added_lines_alone_and_told_with_its_line(examined: Examining):
    before = {"a": plain(f"1\n{KEY}\n3\n"), 'odd "na\tme\n': plain("x\n")}
    gone = examined(before, {**before, "a": plain("1\n3\n")}, run({}))
    moved = examined(
        before, {**before, 'odd "na\tme\n': plain(f"x\ny\nz {KEY}\n")}, run({"secrets": "ask"})
    )

    assert gone.outcome == "allowed"
    assert rules(moved) == {"secrets": "asked"}
    assert ":3 (npm token)" in moved.reason and "\\n" in moved.objections[0].paths[0]


@pytest.mark.parametrize("kind", KEYS)
def test_every_format_is_refused_and_masked(examined: Examining, kind: str):
    found = examined({}, {"a": plain(f"x = {KEYS[kind]}\n")}, run({}))

    assert rules(found) == {"secrets": "denied"}
    assert f"a:1 ({kind})" in found.reason
    assert KEYS[kind].splitlines()[0] not in repr(found)


def test_a_key_in_binary_content_and_in_wide_letters_is_found(examined: Examining):
    contents = {
        "zero": b"\0\n" + KEY.encode(), "wide": f"key = {KEY}".encode("utf-16"),
        "plain": b"\0\1\2" * 100,
    }  # fmt: skip
    after = {name: ("100644", content) for name, content in contents.items()}

    found = examined({}, after, run({}))

    (secret,) = found.objections
    assert set(secret.paths) == {"zero", "wide"}


def test_the_values_of_secrets_are_found_and_told_nowhere(examined: Examining):
    value = "correct horse"
    found = examined({}, {f"{value}.txt": plain(f"say {value}\n")}, run({}), secrets=[value])

    assert rules(found) == {"secrets": "denied"}
    assert value not in repr(found)
    assert found.summary.paths == ("***.txt",)


def test_messages_are_read_too(trees: Trees):
    base = trees.commit(trees.write({"a": plain("1\n")}))
    tree = trees.write({"a": plain("2\n")})
    head = trees.commit(tree, base, message=f"Use {KEY}")
    fine = trees.commit(tree, base, message="Mend it, for #17")

    found = examine(trees.repository, base, head, run({"issue_ref": True}))
    assert rules(found) == {"issue_ref": "denied", "secrets": "denied"}
    assert f"the message of {head[:12]} (npm token)" in repr(found)
    assert KEY not in repr(found)
    assert examine(trees.repository, base, fine, run({"issue_ref": True})).outcome == "allowed"
    later = examine_told(trees.repository, base, tree, run({}), Told(messages=(f"with {KEY}",)))
    assert rules(later) == {"secrets": "denied"}


def test_what_came_and_went_counts_where_the_history_is_kept(trees: Trees):
    first = {"a": plain("1\n")}
    base = trees.commit(trees.write(first))
    with_key = trees.commit(trees.write({**first, "k": plain(f"{KEY}\n")}), base)
    side = trees.commit(trees.write({**first, ".git~": plain(""), "up": link("../x")}), base)
    merge = trees.commit(trees.write(first), base, side, message="Merge")
    head = trees.commit(trees.write({"a": plain("2\n")}), with_key)

    assert examine(trees.repository, base, head, run({})).outcome == "allowed"
    kept = examine(trees.repository, base, head, run({"history": "keep"}))
    assert rules(kept) == {"secrets": "denied"}
    assert f"in the commit {with_key[:12]}" in kept.reason
    merged = examine(trees.repository, base, merge, run({"history": "keep"}))
    assert rules(merged) == {"link_outside": "denied", "symlinks": "asked"}


def test_a_rename_is_a_delete_an_addition_and_a_rename(examined: Examining):
    content = plain("".join(f"{n}\n" for n in range(50)))
    given = {"renames": "ask", "deletes": "deny", "forbid_paths": ["new"]}

    found = examined({"old": content}, {"new": content}, run(given))

    assert rules(found) == {"forbid_paths": "denied", "deletes": "denied", "renames": "asked"}


def test_sizes_are_those_of_the_result(examined: Examining):
    given = {"max_file_bytes": 1000, "max_patch_bytes": 30, "ascii_only": True}
    after = {"big": ("100644", b"\0" * 2000), "t": plain("0123456789\nä\n" * 3)}

    found = examined({}, after, run(given))

    assert rules(found) == dict.fromkeys(
        ("max_file_bytes", "max_patch_bytes", "ascii_only"), "denied"
    )
    assert "42 bytes of text" in repr(found)
    assert "t:2 (added line), t:4 (added line)" in repr(found)


def test_more_text_than_can_be_read_is_denied(examined: Examining, monkeypatch):
    monkeypatch.setattr(examining, "MOST_TEXT_BYTES", 1000)

    found = examined({}, {"a": plain("x\n" * 1000)}, run({}))

    assert rules(found) == {"unjudged": "denied"}


def test_an_error_while_it_is_judged_is_a_denial(trees: Trees, monkeypatch):
    tree = trees.write({})
    found = examine(trees.repository, tree, "1" * 40, FLOOR)
    assert rules(found) == {"unjudged": "denied"}
    assert "could not be judged" in found.reason

    def wrong(*_: object) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr(examining, "judged", wrong)
    monkeypatch.setattr(examining, "unjudged", lambda why: why)
    assert examine(trees.repository, tree, tree, FLOOR) == "KeyError: 'surprise'"

    def full(*_: object) -> None:
        raise InboxOrchError("disk_full", "no space")

    monkeypatch.setattr(examining, "judged", full)
    with pytest.raises(InboxOrchError, match="no space"):
        examine(trees.repository, tree, tree, FLOOR)


def test_who_wrote_it_cannot_approve_and_is_named(examined: Examining):
    found = examined({}, {"a": plain("")}, run({"min_reviewers": 1}), author="bot-1")

    assert rules(found) == {"min_reviewers": "asked"}
    assert "bot-1 cannot" in found.objections[0].remedy


# -- what git tells --------------------------------------------------------------------------


def test_added_lines_have_their_places(trees: Trees):
    before = trees.write({"a": plain("1\n2\n3\n4"), "b": plain("x\n"), "c": plain("-- y\n")})
    after = trees.write({"a": plain("1\n++ two\n3\n4\n5"), "ü\n": plain("n"), "c": plain("z\n")})
    with sealed_folder(trees.repository) as sealed:
        found = added(sealed, before, after, 10**6)

    lines = {b"+++ two": ("a", 2), b"+4": ("a", 4), b"+5": ("a", 5), b"+z": ("c", 1),
             b"+n": ("ü\n", 1), b"+++ b/a": None, b"--- y": None, b"@@": None}  # fmt: skip
    assert {line: found.place(found.diff.index(b"\n" + line) + 1) for line in lines} == lines
    assert all(line in found.lines() for line, place in lines.items() if place is not None)
    assert b"y" not in found.lines() and b"index" not in found.lines()
    removed, plus = b"2\n4x\n-- y\n", b"++ two\n4\n5z\nn"
    assert found.whole and found.text_bytes() == len(removed + plus) + 3


def test_a_diff_that_is_cut_ends_with_a_line(trees: Trees):
    before, after = trees.write({}), trees.write({"a": plain("one\ntwo\nthree\n")})
    with sealed_folder(trees.repository) as sealed:
        whole = added(sealed, before, after, 10**6)
        for most in range(0, whole.total, 7):
            cut = added(sealed, before, after, most)
            assert not cut.whole and cut.text_bytes() == cut.total == whole.total
            assert whole.diff.startswith(cut.diff) and cut.diff.endswith(b"\n")


@pytest.mark.parametrize("options", [(), ("--object-format=sha256",)])
def test_what_lies_beside_is_read_from_the_folders_on_the_way(tmp_path: Path, options):
    trees = Trees(tmp_path, *options)
    paths = ["a/b/c", "a/b/d", "a/e", "f", "g/h", "a\n/x", "é/x"]
    tree = trees.write({path: plain(path) for path in paths})
    with sealed_folder(trees.repository) as sealed:
        near = history.beside(sealed, tree, ["a/b/c", "not/there"])
        deep = history.beside(sealed, tree, ["a\n/x"])

    assert sorted(near) == sorted(["a", "a\n", "f", "g", "é", "a/b", "a/e", "a/b/c", "a/b/d"])
    assert sorted(deep) == sorted(paths)


def test_too_many_commits_are_told(trees: Trees, monkeypatch):
    monkeypatch.setattr(history, "MOST_COMMITS", 2)
    tree = trees.write({})
    base = head = trees.commit(tree)
    for _ in range(3):
        head = trees.commit(tree, head)

    found = examine(trees.repository, base, head, run({}))

    assert rules(found) == {"unjudged": "denied"}


def test_nothing_of_the_repository_is_changed(examined: Examining):
    trees, words = examined.trees, ["ls", "-lAR", examined.trees.folder / ".git"]
    base = trees.write({})
    head = trees.write({"a": plain(KEY), "l": link("a"), "m": ("160000", b"1" * 40)})
    before = subprocess.run(words, stdout=subprocess.PIPE).stdout

    examine(trees.repository, base, head, run({"renames": "ask", "history": "keep"}))

    assert subprocess.run(words, stdout=subprocess.PIPE).stdout == before
