"""The wheel holds the four source folders, all of them, and nothing else; the sdist makes it, and
holds all that the project needs to be worked on."""

import importlib.util
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.once import once

SOURCES = ("inbox", "migrations", "orch", "shared")
TOPS = (*SOURCES, "docs", "script", "tests")
AT_THE_TOP = (
    *("AGENTS.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "MANIFEST.in", "README.md"),
    *("pyproject.toml", "setup.py"),
)


def source_files(root: Path) -> dict[str, Path]:
    """The files of the source folders, by the path that each has in the wheel."""
    return {
        f"inbox_orch/{path.relative_to(root).as_posix()}": path
        for name in SOURCES
        for path in (root / name).rglob("[!.]*")
        if path.is_file() and path.suffix != ".pyc"
    }


def project_files(root: Path) -> set[str]:
    """The files of the project, whether or not git is there to list them."""
    below = (path for name in TOPS for path in (root / name).rglob("*"))
    files = (path for path in below if path.is_file() and "__pycache__" not in path.parts)
    return {*AT_THE_TOP, *(path.relative_to(root).as_posix() for path in files)}


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an sdist, and of a wheel that was made from it."""
    return once(tmp_path_factory, "source", lambda folder: build(root, folder)) / "dist"


@pytest.fixture(scope="module")
def wheel(built: Path) -> Iterator[zipfile.ZipFile]:
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


@pytest.fixture(scope="module")
def sdist(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked sdist."""
    (path,) = built.glob("*.tar.gz")
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
    (top,) = folder.iterdir()
    return top


def build(root: Path, copy: Path) -> None:
    """From a copy: a build in place would pick up what an older one left."""
    for name in AT_THE_TOP:
        shutil.copy(root / name, copy)
    for name in TOPS:
        shutil.copytree(root / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-P", "-m", "build", "--no-isolation", str(copy)]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr


def metadata(wheel: zipfile.ZipFile, name: str) -> str:
    (path,) = (path for path in wheel.namelist() if path.endswith(f".dist-info/{name}"))
    return wheel.read(path).decode()


def test_wheel_holds_every_source_file_and_nothing_else(root: Path, wheel: zipfile.ZipFile):
    packaged = {path for path in wheel.namelist() if ".dist-info/" not in path}

    assert packaged == set(source_files(root))


def test_wheel_installs_one_folder_beside_its_metadata(wheel: zipfile.ZipFile):
    tops = {path.partition("/")[0] for path in wheel.namelist()}

    assert {top for top in tops if not top.endswith(".dist-info")} == {"inbox_orch"}


def test_listed_packages_are_those_of_the_tree(root: Path):
    listed = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {path.rpartition("/")[0] for path in source_files(root) if path.endswith(".py")}

    assert sorted(listed) == sorted(folder.replace("/", ".") for folder in folders)


def test_every_package_says_what_it_owns(root: Path):
    folders = {path.parent for path in source_files(root).values() if path.suffix == ".py"}
    silent = [
        str(folder.relative_to(root))
        for folder in sorted(folders)
        if not (folder / "__init__.py").is_file()
        or not (folder / "__init__.py").read_text().startswith('"""')
    ]

    assert silent == []


def test_the_package_is_a_namespace_with_typed_parts(wheel: zipfile.ZipFile):
    assert "inbox_orch/__init__.py" not in wheel.namelist()
    assert {f"inbox_orch/{name}/py.typed" for name in SOURCES} <= set(wheel.namelist())


def test_wheel_brings_both_commands_and_the_licence(wheel: zipfile.ZipFile):
    assert metadata(wheel, "entry_points.txt").split("\n")[:3] == [
        "[console_scripts]",
        "inbox = inbox_orch.inbox.__main__:main",
        "orch = inbox_orch.orch.__main__:main",
    ]
    assert metadata(wheel, "licenses/LICENSE").startswith("MIT License")


def test_the_readme_describes_the_package(root: Path, wheel: zipfile.ZipFile):
    told, _, description = metadata(wheel, "METADATA").partition("\n\n")

    assert "\nDescription-Content-Type: text/markdown\n" in told
    assert description.strip() == as_on_an_index(root, None).strip()
    assert "## What it promises" in description
    assert [link for link in links(description) if "://" not in link and link[0] != "#"] == []


def as_on_an_index(root: Path, source: str | None) -> str:
    described: Any = runpy.run_path(str(root / "setup.py"))["description"]
    return str(described((root / "README.md").read_text(), source, "1.2.3"))


def links(text: str) -> list[str]:
    """What a page links to and shows, in its order."""
    return [a or b for a, b in re.findall(r'\]\(([^)\s]+)|(?:src|href)="([^"]+)', text)]


def test_with_an_address_every_link_and_picture_leads_to_the_version(root: Path):
    before = (root / "README.md").read_text()
    after = as_on_an_index(root, "https://host.example/us/inbox-orch/")

    was = [link for link in links(before) if "://" not in link]
    now = [link for link in links(after) if "/us/inbox-orch/" in link]
    assert len(was) == len(now) > 20
    for link, absolute in zip(was, now, strict=True):
        kind = "raw" if link.endswith(".svg") and f'src="{link}"' in before else "blob"
        assert absolute == f"https://host.example/us/inbox-orch/{kind}/v1.2.3/{link}"


def test_the_sdist_holds_the_pages_the_tests_and_the_scripts(root: Path, sdist: Path):
    assert project_files(root) - project_files(sdist) == set()
    assert project_files(sdist) - project_files(root) == set()
    for script in (root / "script").iterdir():
        assert (sdist / "script" / script.name).stat().st_mode & 0o111 == (
            script.stat().st_mode & 0o111
        )


def test_tests_run_where_the_sdist_was_unpacked(sdist: Path):
    some = [f"tests/unit/test_{name}.py" for name in ("ids", "tables", "failure_modes")]
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", *some]
    ran = subprocess.run(command, cwd=sdist, capture_output=True, text=True)

    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_version_stands_in_one_place_and_in_the_changelog(root: Path, wheel: zipfile.ZipFile):
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", (root / "CHANGELOG.md").read_text(), re.M)
    said = [name for name, path in source_files(root).items() if version in path.read_text()]

    assert f"\nVersion: {version}\n" in metadata(wheel, "METADATA")
    assert released[:1] == [version]
    assert said == []


@pytest.mark.parametrize("name", SOURCES)
def test_source_folders_are_never_packages_of_their_own(name: str):
    assert importlib.util.find_spec(name) is None
    found = importlib.util.find_spec(f"inbox_orch.{name}")
    assert found is not None
    assert "site-packages" in str(found.origin)
