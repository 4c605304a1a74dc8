"""Operations that run out of room: at every size that a file may have, on a disk with any little
that is left. The operations, and what must hold after each, are those of `crashes`.

Runs in a process of its own (a test starts it with `python -c`), because it forks and sets limits.
"""

import functools
import json
import os
import resource
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inbox_orch.shared.errors import InboxOrchError
from support.crashes import SCENARIOS
from support.killing import Scenario
from support.lengths import LONG

# What a shortage may be called. Whatever else comes is a bug.
NAMED = ("disk_full", "io_error")
_REFUSED = 3
_STEP_BYTES = 4096 if LONG else 8192
# Those that write the whole file take many steps, each of which is much like the next.
_COARSE = {"init": 5, "backup": 7, "migration": 3}


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """No file may become larger (RLIMIT_FSIZE); for a process that ends afterwards."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    yield


@contextmanager
def little_room(disk: Path, size: int) -> Iterator[None]:
    """So much is left on the disk."""
    filler = disk / "filler"
    free = os.statvfs(disk)
    with open(filler, "wb") as file:
        file.write(bytes(max(0, free.f_bavail * free.f_frsize - size)))
    try:
        yield
    finally:
        filler.unlink()


def run_short(
    scenario: Scenario,
    folder: Path,
    shortage: Callable[[int], Any],
    *,
    inside: bool,
    step: int,
) -> dict[str, int]:
    """Do the operation with no room, with a little, with more, until it is enough; returns how
    often it was refused, by code. `inside` is whether the shortage is of the operation's own
    process."""
    prepared, work = folder / "prepared", folder / "work"
    prepared.mkdir()
    facts = scenario.prepare(prepared)
    refused: dict[str, int] = {}
    size, enough = 0, 0
    # Once more after it was enough: more room must not make it fail again.
    while enough < 2:
        shutil.copytree(prepared, work, symlinks=True)
        if inside:
            code = _run(scenario, work, facts, functools.partial(shortage, size))
        else:
            with shortage(size):
                code = _run(scenario, work, facts, None)
        try:
            scenario.check(work, facts, returned=code is None)
        except BaseException as error:
            error.add_note(f"with {size} bytes: {code or 'returned'}")
            raise
        shutil.rmtree(work)
        if code is None:
            enough += 1
        else:
            assert enough == 0, f"enough with less than {size} bytes"
            refused[code] = refused.get(code, 0) + 1
        size += step
    return refused


def _run(
    scenario: Scenario, folder: Path, facts: Any, shortage: Callable[[], Any] | None
) -> str | None:
    """The code of the refusal, None when it returned."""
    hear, tell = os.pipe()
    process = os.fork()
    if process == 0:
        _act(scenario, folder, facts, shortage, tell)
    os.close(tell)
    with open(hear, encoding="utf-8") as said:
        text = said.read()
    _, status = os.waitpid(process, 0)
    if status == 0:
        return None
    assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == _REFUSED, (status, text)
    assert text in NAMED, text
    return text


def _act(
    scenario: Scenario,
    folder: Path,
    facts: Any,
    shortage: Callable[[], Any] | None,
    tell: int,
) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        if shortage is not None:
            with shortage():
                scenario.act(folder, facts, lambda: None)
        else:
            scenario.act(folder, facts, lambda: None)
    except InboxOrchError as error:
        os.write(tell, error.code.encode())
        os._exit(_REFUSED)
    except BaseException:  # noqa: BLE001 - the parent tells
        os.write(tell, traceback.format_exc().encode())
        os._exit(1)
    os._exit(0)


def main() -> None:
    """`files|disk OPERATION FOLDER`: print how often it was refused."""
    kind, operation, folder = sys.argv[1:]
    inside = kind == "files"
    shortage = small_files if inside else functools.partial(little_room, Path(folder))
    step = _STEP_BYTES * _COARSE.get(operation, 1)
    scenario = SCENARIOS[operation]()
    found = run_short(scenario, Path(folder), shortage, inside=inside, step=step)
    sys.stdout.write(json.dumps(found))
