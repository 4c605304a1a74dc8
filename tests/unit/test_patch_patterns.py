"""Patterns of paths mean what git's own do, and take no time."""

import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inbox_orch.orch.patches.patterns import Patterns, fault


@pytest.mark.parametrize(
    "pattern, path, fits",
    [
        ("src/", "src/a/b", True),
        ("src/", "x/src/a", True),
        ("src/", "src", False),
        ("/src", "x/src/a", False),
        ("src/**", "src/a", True),
        ("src/**", "src", False),
        ("a/b", "x/a/b", False),
        ("**/a/b", "x/a/b/c", True),
        ("*.py", "a/b/c.py", True),
        ("*.py", "a.py/b", True),
        ("/*.py", "a/b.py", False),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a?c", "a/c", False),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", False),
        ("[]x]y", "]y", True),
        ("[ab", "[ab", True),
        (r"\*", "*", True),
        (r"\*", "a", False),
        (r"\!a", "!a", True),
        ("a[", "a[", True),
        ("docs/**", "docs/排查.md", True),
        ("**", "any/thing\nat all", True),
    ],
)
def test_a_pattern_fits_as_in_gitignore(pattern: str, path: str, fits: bool):
    assert (Patterns([pattern]).found(path) is not None) is fits


def test_the_last_pattern_decides_but_not_below_a_folder_that_is_fitted():
    assert Patterns(["*", "!keep"]).found("keep") is None
    assert Patterns(["*", "!keep"]).found("x/keep") == "*"
    assert Patterns(["a/**", "!a/b", "a/b/c"]).found("a/b/c") == "a/b/c"


_TEXT = st.text(alphabet="ab*?/[]!-\\c.", min_size=1, max_size=8)
_PATHS = st.text(alphabet="abc.!*-]", min_size=1, max_size=3).filter(
    lambda name: name.strip(".") != ""
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ignoring")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    patterns=st.lists(_TEXT, min_size=1, max_size=3),
    paths=st.lists(
        st.lists(_PATHS, min_size=1, max_size=3).map("/".join),
        min_size=20,
        max_size=40,
        unique=True,
    ),
)
def test_git_says_the_same(repository: Path, patterns: list[str], paths: list[str]):
    patterns = [pattern for pattern in patterns if fault(pattern) is None]
    (repository / ".git" / "info" / "exclude").write_text("".join(f"{p}\n" for p in patterns))
    done = subprocess.run(
        ["git", "-C", str(repository), "check-ignore", "--no-index", "-z", "--stdin"],
        input="\0".join(paths),
        stdout=subprocess.PIPE,
        text=True,
    )
    ours = Patterns(patterns)

    ignored = set(done.stdout.split("\0")) - {""}

    assert {path for path in paths if ours.found(path) is not None} == ignored


def test_on_the_safe_side_where_case_does_not_count():
    forbidden, allowed = Patterns(["Secret/", "*.PEM"], "found"), Patterns(["src/"], "allowed")

    assert forbidden.found("a/SECRET/x") and forbidden.found("a.pem")
    assert allowed.found("src/x") and not allowed.found("SRC/x")
    assert Patterns(["*", "!README"], "found").found("readme") == "*"


@pytest.mark.parametrize(
    "path",
    ["bad.txt.", "BAD.txt ", "bad.txt::$DATA", "x/bad.txt:y", "ba\u200cd.txt", "bad.txt. /x",
     "\ufeffbad.TXT"],
)  # fmt: skip
def test_what_some_disk_takes_for_a_forbidden_path_is_found(path: str):
    assert Patterns(["bad.txt"], "found").found(path) == "bad.txt"
    assert Patterns(["bad.*"], "found").found(path) == "bad.*"
    assert Patterns(["bad.txt"], "allowed").found(path) is None
    assert Patterns(["bad.txt"]).found(path) is None


def test_names_are_the_same_however_their_letters_are_composed():
    assert Patterns(["caf\u00e9"], "found").found("cafe\u0301")
    assert Patterns(["cafe\u0301"], "found").found("CAF\u00c9/x")


@pytest.mark.parametrize(
    "pattern, path, found",
    [
        ("credentials.json", "CREDEN~1.JSO", True),
        ("credentials.json", "creden~2.jso", True),
        ("credentials.json", "CREDE~12.JSO", True),
        ("credentials.json", "CR1A2B~1.JSO", True),
        ("credentials.json", "CRED~1.JSO", False),
        ("credentials.json", "CREDEN~1.TXT", False),
        ("credentials.json", "creden~1", False),
        ("credentials.json", "creden~x.jso", False),
        ("bad.txt", "BAD~1.TXT", False),
        ("bad.text", "BAD~1.TEX", True),
        (".claude/", "CLAUDE~1/x", True),
        (".gitmodules", "GITMOD~1", True),
        ("/.github/workflows/", "GITHUB~1/WORKFL~1/x", True),
        ("two words/*.md", "TWOWOR~1/a.md", True),
        ("*.json5", "CONFIG~1.JSO", True),
        ("*.pem", "CONFIG~1.JSO", False),
        ("secret*", "SECRET~1.TXT", True),
        ("secret*", "PUBLIC~1.TXT", False),
        ("gr\u00fcn.html", "GRN~1.HTM", True),
        ("src/**", "SRC~1/x", False),
    ],
)
def test_a_short_name_stands_for_the_long_one(pattern: str, path: str, found: bool):
    assert (Patterns([pattern], "found").found(path) is not None) is found
    assert Patterns([pattern], "allowed").found(path) is None


def test_what_is_excepted_is_so_by_its_other_names_too():
    patterns = Patterns(["*.txt", "!ok.txt"], "found")

    assert patterns.found("ok.txt.") is None and patterns.found("no.txt.") == "*.txt"


@pytest.mark.parametrize(
    "path", ["2024-01-01T10:00.log", "notes~", "~/x", "a ~ b", "v1.2~rc1.txt", "x. y", "notes~1.md"]
)
def test_names_that_only_look_odd_are_no_others(path: str):
    patterns = Patterns(["2024.log", "notes.txt", "version-of-it.text", "notes.md"], "found")

    assert patterns.found(path) is None


def test_many_stars_and_deep_folders_take_no_time():
    pattern = "**/a*/" * 40 + "*" * 40 + "x"
    began = time.process_time()

    assert Patterns([pattern]).found("a/" * 2000 + "b") is None
    assert Patterns(["*a" * 100]).found("a" * 4000 + "b") is None
    assert Patterns(["x/"]).found("d/" * 2000 + "b") is None
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "pattern", ["", " ", "#a", "!", "/", "../a", "a/../b", "./a", "a//b", "a\nb", "a\\"]
)
def test_a_pattern_that_says_nothing_is_refused(pattern: str):
    assert fault(pattern)
