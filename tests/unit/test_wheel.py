"""The wheel holds the four source folders, all of them, and nothing else; the sdist makes it."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.once import once

SOURCES = ("inbox", "migrations", "orch", "shared")


def source_files(root: Path) -> dict[str, Path]:
    """The files of the source folders, by the path that each has in the wheel."""
    return {
        f"inbox_orch/{path.relative_to(root).as_posix()}": path
        for name in SOURCES
        for path in (root / name).rglob("[!.]*")
        if path.is_file() and path.suffix != ".pyc"
    }


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """A wheel made from an sdist, which is made from a copy: a build in place would pick up what an
    older one left."""
    copy = once(tmp_path_factory, "source", lambda folder: build(root, folder))
    (path,) = (copy / "dist").glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def build(root: Path, copy: Path) -> None:
    for name in ("LICENSE", "README.md", "pyproject.toml"):
        if (root / name).exists():
            shutil.copy(root / name, copy)
    for name in SOURCES:
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
    assert description.strip() == (root / "README.md").read_text().strip()


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
