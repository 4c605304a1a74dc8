"""The facts of a change are read on its result, and nothing that comes with it has a say."""

from pathlib import Path

import pytest

from inbox_orch.orch.git import facts as reading
from inbox_orch.orch.git.facts import diff_text, facts
from inbox_orch.shared.errors import InboxOrchError
from support.runs import git
from support.trees import Trees, plain


@pytest.fixture
def trees(tmp_path: Path) -> Trees:
    return Trees(tmp_path)


def test_each_kind_of_change(trees: Trees):
    before = trees.write(
        {
            "gone": plain("1\n2\n"),
            "mode": plain("x\n"),
            "text": plain("1\n2\n3\n"),
            "turned": plain("x\n"),
            "renamed-from": plain("the same\n"),
        }
    )
    after = trees.write(
        {
            "added": plain("1\n2\n3"),
            "mode": ("100755", b"x\n"),
            "text": plain("1\ntwo\n3\n4\n"),
            "turned": ("120000", b"../../outside"),
            "renamed-to": plain("the same\n"),
        }
    )

    found = trees.facts(before, after)

    told = {p: (c.status, c.size, c.binary, c.insertions, c.deletions) for p, c in found.items()}
    assert told == {
        "added": ("A", 5, False, 3, 0),
        "gone": ("D", 0, False, 0, 2),
        "mode": ("M", 2, False, 0, 0),
        "renamed-from": ("D", 0, False, 0, 1),
        "renamed-to": ("A", 9, False, 1, 0),
        "text": ("M", 10, False, 2, 1),
        "turned": ("T", 13, False, 1, 1),
    }
    assert (found["mode"].old_mode, found["mode"].new_mode) == ("100644", "100755")
    assert found["mode"].old_blob == found["mode"].new_blob
    assert (found["turned"].new_mode, found["turned"].link_target) == ("120000", "../../outside")
    assert (found["added"].old_mode, found["added"].old_blob) == (None, None)
    assert (found["gone"].new_mode, found["gone"].new_blob) == (None, None)
    assert found["text"].link_target is None
    assert facts(trees.repository, after, after) == ((), 0, 0)


def test_no_attributes_and_no_settings_have_a_say(trees: Trees, tmp_path: Path):
    many = "".join(f"{n}\n" for n in range(5000))
    before = trees.write({})
    after = trees.write({".gitattributes": plain("* -diff binary\n"), "a.py": plain(many)})
    attributes = "* -diff\n*.py diff=spy\n"
    (trees.folder / ".gitattributes").write_text(attributes)
    (trees.folder / ".git" / "info").mkdir(exist_ok=True)
    (trees.folder / ".git" / "info" / "attributes").write_text(attributes)
    ran = tmp_path / "ran"
    for name, value in {
        "diff.spy.textconv": f"touch {ran}; true",
        "diff.spy.command": f"touch {ran}; true",
        "diff.external": f"touch {ran}; true",
        "core.bigFileThreshold": "1",
        "diff.noprefix": "true",
        "diff.orderFile": "/nonexistent",
        "diff.renames": "copies",
        "core.attributesFile": str(trees.folder / ".gitattributes"),
    }.items():
        git(trees.folder, "config", name, value)

    found = trees.facts(before, after)
    text = diff_text(trees.repository, before, after, 10**6)

    assert (found["a.py"].insertions, found["a.py"].binary) == (5000, False)
    assert text.count("\n+") == 5002 + 2 - 1  # two names of files, and the line of the attributes
    assert "diff --git a/a.py b/a.py" in text
    assert not ran.exists()


def test_binary_is_counted_in_the_content_itself(trees: Trees, monkeypatch):
    late = b"text\n" * 2000 + b"\0\n"  # git looks at the first 8,000 bytes alone
    before = trees.write({"was": ("100644", b"\0\n\n"), "same": plain("x\n")})
    after = trees.write(
        {
            "early": ("100644", b"\0" + b"line\n" * 50),
            "late": ("100644", late),
            "same": plain("x\n"),
            "was": plain("text\n"),
        }
    )
    wanted = {"early": (True, 50, 0), "late": (True, 2001, 0), "was": (True, 1, 2)}

    def told() -> dict[str, tuple[bool, int, int]]:
        found = trees.facts(before, after)
        return {p: (c.binary, c.insertions, c.deletions) for p, c in found.items()}

    assert told() == wanted
    monkeypatch.setattr(reading, "BATCH_BYTES", 100)
    monkeypatch.setattr("inbox_orch.orch.git.restoring.BATCH_BYTES", 100)
    assert told() == wanted


def test_names_of_every_kind_and_submodules(trees: Trees):
    odd = b"not\xffutf".decode("utf-8", "surrogateescape")
    names = ["line\nend", 'quo"te', "-dash", "tab\tbed", "Case", "case", odd, ":100644"]
    before = trees.write({})
    commit = git(trees.folder, "rev-parse", "HEAD")
    modules = {"sub": ("160000", commit.encode())}
    after = trees.write({**{name: plain(f"{len(name)}\n") for name in names}, **modules})

    found = trees.facts(before, after)

    assert set(found) == {*names, "sub"}
    assert all(found[name].insertions == 1 for name in names)
    assert (found["sub"].new_mode, found["sub"].new_blob) == ("160000", commit)
    assert (found["sub"].size, found["sub"].binary) == (0, False)


def test_longer_ids_and_another_format_of_refs(tmp_path: Path):
    trees = Trees(tmp_path, "--object-format=sha256")
    before, after = trees.write({}), trees.write({"a": plain("1\n")})
    assert len(after) == 64
    assert trees.facts(before, after)["a"].insertions == 1


def test_what_a_ref_replaces_is_what_it_was(trees: Trees):
    before, after = trees.write({}), trees.write({"a": plain("1\n")})
    other = trees.write({"a": plain("1\n2\n")})
    git(trees.folder, "replace", after, other)

    assert trees.facts(before, after)["a"].insertions == 1


def test_a_diff_ends_at_a_line_and_says_so(trees: Trees):
    before = trees.write({})
    after = trees.write({"a": ("100644", b"".join(b"line %d \xff\n" % n for n in range(1000)))})
    whole = diff_text(trees.repository, before, after, 10**6)
    assert "+line 999 \\xff\n" in whole

    cut = diff_text(trees.repository, before, after, 1000)

    length = len(whole.replace("\\xff", "?"))
    kept, told = cut.removesuffix("\n").rsplit("\n", 1)
    assert told == f"(cut: the whole diff has {length} bytes)"
    assert whole.startswith(kept + "\n")
    assert 900 < len(kept.replace("\\xff", "?")) < 1000


def test_a_tree_that_is_not_there_is_told(trees: Trees):
    with pytest.raises(InboxOrchError, match="git diff-tree failed"):
        facts(trees.repository, "1" * 40, trees.write({}))
