"""Where temporary files go, and what is said when they can go nowhere."""

import ast
import errno
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from inbox_orch.orch.demo.workshop import Workshop
from inbox_orch.orch.git import commands, failures
from inbox_orch.shared.store import temporary
from inbox_orch.shared.tools import tool_calls
from support.buses import refused

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(
    params=[(errno.ENOSPC, "disk_full"), (errno.EROFS, "read_only"), (errno.EIO, "io_error")]
)
def nowhere(request, monkeypatch, tmp_path):
    """No folder can be used; the code that this is to have."""
    number, code = request.param
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "none")])
    failed = OSError(number, os.strerror(number))
    monkeypatch.setattr(temporary, "_why_not", lambda folder: failed)
    return code


def _file_for_git():
    with commands._readable(b"content"):
        pass


def _folder_for_git():
    with failures.temporary_folder():
        pass


@pytest.mark.parametrize(
    "make",
    [
        temporary.temporary_place,
        lambda: temporary.make_temporary_folder("x"),
        _file_for_git,
        _folder_for_git,
        lambda: tool_calls._in_a_file(ExitStack(), "text"),
        lambda: Workshop(keep=False),
    ],
)
def test_without_a_folder_for_temporary_files_the_reason_has_its_name(nowhere, make):
    with refused(nowhere) as failure:
        make()
    assert failure.value.exit_code == 6
    assert "TMPDIR" in failure.value.hint


def test_why_a_folder_serves_not_is_found_by_trying(tmp_path):
    assert temporary._why_not(str(tmp_path)) is None
    assert temporary._why_not(str(tmp_path / "not there")).errno == errno.ENOENT
    assert list(tmp_path.iterdir()) == []


def test_nothing_else_asks_python_for_a_temporary_folder():
    left_to_python = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for folder in ("inbox", "orch", "shared", "migrations")
        for path in (ROOT / folder).rglob("*.py")
        # The probe is run by the interpreter of somebody else's tests, which has nothing of ours.
        if path.name not in ("temporary.py", "probe.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "tempfile"
        and "dir" not in {keyword.arg for keyword in call.keywords}
    ]
    assert left_to_python == []
