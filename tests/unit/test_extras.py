"""How an optional part is added to the installation that there is."""

import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

from inbox_orch.shared.shell import extras


def test_what_an_extra_needs_is_what_the_package_asks_for():
    needed = extras.needed_by("mcp")

    assert any(each.startswith("mcp>=") for each in needed)
    assert not any("extra" in each or each.startswith("pytest") for each in needed)
    assert extras.needed_by("no-such-part") == []


@pytest.mark.parametrize(
    "pip, uv, begins",
    [
        (True, False, [sys.executable, "-m", "pip", "install"]),
        (False, True, ["uv", "pip", "install", "--python", sys.executable]),
        (False, False, ["pip", "--python", sys.executable, "install"]),
    ],
)
def test_it_is_added_by_what_can_install_into_this_python(
    monkeypatch: pytest.MonkeyPatch, pip: bool, uv: bool, begins: list[str]
):
    monkeypatch.setattr(extras, "find_spec", lambda name: object() if pip else None)
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/uv" if uv else None)

    words = shlex.split(extras.install_line("mcp"))

    assert words == [*begins, *extras.needed_by("mcp")]


@pytest.mark.skipif(find_spec("mcp") is None, reason="the optional part `mcp` is not installed")
def test_the_command_works_here():
    line = shlex.split(extras.install_line("mcp"))

    ran = subprocess.run([*line, "--dry-run", "--no-index"], capture_output=True, text=True)

    assert ran.returncode == 0, "all of it is there already, so no index is asked: " + ran.stderr
