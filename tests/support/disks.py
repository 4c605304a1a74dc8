"""The small disk of `script/torture`, which can run full and be made read-only."""

import contextlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_PROGRAM = Path(__file__).resolve().parents[2] / "script" / "torturing" / "disk.py"


@contextmanager
def small_disk(path: Path) -> Iterator[Any]:
    """A disk at `path`; the test is skipped where none can be mounted."""
    spec = importlib.util.spec_from_file_location("disk", _PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.Disk(path)
    made.make()
    if not made.mounted:
        pytest.skip("nobody may mount here")
    try:
        yield made
    finally:
        made.take_away()


@contextmanager
def filled(path: Path) -> Iterator[None]:
    """Not a byte is left on the disk of this file."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    yield
    path.unlink()
