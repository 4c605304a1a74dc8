"""The documentation is true: its commands run, its links lead somewhere, it is current."""

import contextlib
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.lengths import LONG
from support.rehearsals import LISTENED_TO, SHELLS, Script, bare, installed
from support.standins import stand_ins

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FIRST_PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "start").glob("*.md"))]
_BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")
_HEADING = re.compile(r"^#+ (.+?)\s*$", re.MULTILINE)
# `$(a | b)`, `eval "$(a)"`, and a variable called `status`, which zsh has itself.
_HIDING = re.compile(r"\$\([^()]*\|[^()]*\)|eval \"\$\(|^ *status=", re.MULTILINE)
# What stands where a command does, once what is in quotes is gone.
_CALLED = re.compile(
    r"(?:^|[|;&(]|\b(?:then|do|else)\b)[ ]*(?:\w+=\S*[ ]+)*([A-Za-z_][\w.-]*)(?![\w.=:-])", re.M
)
_QUOTED = re.compile(r"'[^']*'")
# The coding agents of the guide are not there in a test. This one does the task on its standard
# input, as each of them would: whatever it is to write, it writes.
_AGENT = """\
#!/bin/sh
name=$(sed -n 's/^Write //p')
echo "by ${0##*/}" > "$name"
echo "wrote $name"
"""
_AGENTS = ("claude", "codex", "gemini")


def blocks_of(page: Path) -> list[tuple[str, str]]:
    return _BLOCK.findall(page.read_text())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one commit, as a reader of the page would have."""
    folder = tmp_path / "project"
    folder.mkdir()
    for command in (
        ("init", "--quiet", "--initial-branch", "main"),
        ("commit", "--quiet", "--allow-empty", "--message", "Begin"),
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    """A folder with what stands in for the coding agents."""
    folder = tmp_path / "agents"
    folder.mkdir()
    for name in _AGENTS:
        (folder / name).write_text(_AGENT)
        (folder / name).chmod(0o755)
    return folder


def commands_for(page: Path, shell: str, folder: Path) -> contextlib.AbstractContextManager[str]:
    """Where a shell finds our commands: on the pages that everybody begins with, one shell has them
    as they are installed; otherwise warm processes stand in for them."""
    if shell == SHELLS[0] and page in FIRST_PAGES:
        return contextlib.nullcontext(str(Path(sys.executable).parent))
    return stand_ins(folder / "stand-ins")


@pytest.mark.parametrize("shell", SHELLS if LONG else SHELLS[:1])
@pytest.mark.parametrize(
    "page", [p for p in PAGES if blocks_of(p)], ids=lambda p: str(p.relative_to(ROOT))
)
def test_every_command_of_the_page_works_and_a_failure_of_any_ends_it(
    page: Path, shell: str, project: Path, agents: Path, tmp_path: Path
):
    """All blocks of a page, one after the other, in one project, for somebody with an empty home;
    then again for each command, which fails. In the short form one shell plays the page, and all
    others that are here rehearse it: they are told what the commands have said."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = ["set -eu", "export XDG_STATE_HOME=$PWD/../state"]
    if page.name == "python.md":
        script.append("inbox init")
    for number, (language, text) in enumerate(blocks_of(page)):
        if language == "sh":
            script.append(text)
        else:
            path = project.parent / f"block{number}.py"
            path.write_text(text)
            script.append(shlex.join([sys.executable, "-P", str(path)]))
    with commands_for(page, shell, tmp_path) as commands:
        rehearsed = Script(
            shell,
            ["-c", "\n".join(script)],
            project,
            path=os.pathsep.join((str(agents), commands, installed())),
            environment=bare({**os.environ}),
        )

        done = rehearsed.play()

    assert done.returncode == 0, done.stdout + done.stderr
    if page.name != "python.md":
        played = rehearsed.calls()
        if LONG:
            assert list(rehearsed.surprises(played)) == []
            return
        # Each shell that is here has its share of the commands.
        here = [each for each in SHELLS if shutil.which(each) is not None]
        before = rehearsed.files()
        assert rehearsed.differences(played) == []
        files = rehearsed.files()
        for number, each in enumerate(here):
            other = rehearsed.in_shell(each)
            other.put_back(before)
            assert (other.differences(played), other.files()) == ([], files), each
            surprises = other.surprises(played, first=number, step=len(here))
            assert list(surprises) == [], each


@pytest.mark.parametrize(
    "path",
    [*PAGES, ROOT / "docs" / "leader.sh"],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_every_program_of_a_page_is_one_that_can_be_made_to_fail(path: Path):
    """A shell's own commands end a script by themselves, and need no stand-in."""
    texts = [t for language, t in blocks_of(path) if language == "sh"]
    texts = [path.read_text()] if path.suffix == ".sh" else texts
    called = {word for text in texts for word in _CALLED.findall(_QUOTED.sub("''", text))}
    programs = {word for word in called if shutil.which(word, path=installed()) is not None}
    builtins = {"[", "cd", "echo", "export", "false", "kill", "printf", "read", "test", "true"}

    assert programs - builtins <= set(LISTENED_TO)
    assert (path.suffix == ".md" and not texts) or programs


@pytest.mark.parametrize(
    "path",
    [*PAGES, *sorted((ROOT / "docs").rglob("*.sh"))],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_no_script_hides_the_exit_code_of_a_command(path: Path):
    """Scripts within scripts are looked at, too, which no rehearsal fails."""
    text = path.read_text()
    texts = [text] if path.suffix == ".sh" else [t for _, t in blocks_of(path)]
    hidden = [each for text in texts for each in _HIDING.findall(text)]
    assert (path.suffix == ".md" and not blocks_of(path)) or hidden == []


def anchors_of(page: Path) -> set[str]:
    """What `#…` may name on a page, as both the site and the repository's viewers make it."""
    text = _FENCED.sub("", page.read_text())
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        for heading in _HEADING.findall(text)
    }


def is_broken(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    place = page.parent / path if path else page
    if not place.exists():
        return True
    return bool(anchor) and place.suffix == ".md" and anchor not in anchors_of(place)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_within_the_repository_leads_somewhere(page: Path):
    links = [a or b for a, b in _LINK.findall(_FENCED.sub("", page.read_text()))]
    broken = [link for link in links if "://" not in link and is_broken(page, link)]
    assert broken == []


def test_the_site_shows_every_page():
    """script/site says the same, and more; this does without what it needs."""
    text = (ROOT / "docs" / "mkdocs.yml").read_text()
    shown = set(re.findall(r"[\w/.-]+\.md", text.partition("\nnav:\n")[2]))
    from_top = {"index.md", "changelog.md", "contributing.md"}
    assert shown == from_top | {str(p.relative_to(ROOT / "docs")) for p in PAGES[1:]}


@pytest.mark.parametrize(
    "name, lines",
    [
        ("demo", ("kill -9: bob and his command are dead", "orch wait: the run has succeeded.")),
        ("blueprint", ("kill -9: the leader, ada", "orch drive: exit 0, the run has succeeded.")),
    ],
)
def test_the_picture_is_of_a_demonstration_that_succeeded(name: str, lines: tuple[str, ...]):
    text = re.sub(r"<[^>]+>", "", (ROOT / "docs" / "pictures" / f"{name}.svg").read_text())
    told = text.replace("&#160;", " ")
    assert [line for line in lines if line not in told] == []


def test_the_site_fetches_nothing_from_elsewhere():
    """Fonts and scripts are the theme's own; pictures bring theirs."""
    text = (ROOT / "docs" / "mkdocs.yml").read_text()
    assert "  font: false\n" in text
    assert "://" not in text
    for picture in (ROOT / "docs").rglob("*.svg"):
        told = re.findall(r"(?:url\(|href=|src=|@import)[^;>)]*", picture.read_text())
        assert [each for each in told if "//" in each] == []


def test_the_reference_is_what_the_commands_say():
    made = runpy.run_path(str(ROOT / "script" / "_reference.py"))["pages"]()
    stale = [path.name for path, text in made.items() if path.read_text() != text]
    assert stale == [], "run script/reference"
