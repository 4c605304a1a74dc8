"""The documentation is true: its commands run, its links lead somewhere, it is current."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")


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


@pytest.mark.parametrize(
    "page", [p for p in PAGES if blocks_of(p)], ids=lambda p: str(p.relative_to(ROOT))
)
def test_every_command_of_the_page_works(page: Path, project: Path):
    """All blocks of a page, one after the other, in one project."""
    script = ["set -eu", "export XDG_STATE_HOME=$PWD/../state"]
    if page.name == "python.md":
        script.append("inbox init")
    for number, (language, text) in enumerate(blocks_of(page)):
        if language == "sh":
            script.append(text)
        else:
            path = project.parent / f"block{number}.py"
            path.write_text(text)
            script.append(f"{sys.executable} -P {path}")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=project,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_within_the_repository_leads_somewhere(page: Path):
    broken = [
        target
        for target in _LINK.findall(page.read_text())
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert broken == []


def test_the_reference_is_what_the_commands_say():
    made = runpy.run_path(str(ROOT / "script" / "_reference.py"))["pages"]()
    stale = [path.name for path, text in made.items() if path.read_text() != text]
    assert stale == [], "run script/reference"
