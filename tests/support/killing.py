"""Killing a process before each of its steps, one process for each step.

A step is a statement that SQLite executes, a call of the operating system that changes a file
or a folder, half of a write, a batch of a backup. `kill_at_every_step` runs in a process of its
own (a test starts it with `python -c`), because it forks and takes functions apart.
"""

import gc
import io
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from sqlite import outside

KILL_EVERY = int(os.environ.get("KILL_EVERY", "61"))
"""What steps long operations of the scheduler are killed at: 1 is every one, which takes minutes.
A prime number, so that it has no part in how the steps repeat."""

RARELY = 1 if KILL_EVERY == 1 else 3 * KILL_EVERY
"""The same for operations of thousands of steps."""

EVERY_STEP_UNTIL = 20
"""Up to here every step of an operation of the bus is tried, also in the short form."""

_write = os.write


class Scenario(Protocol):
    """One operation to be killed in. Facts are whatever `prepare` wants to hand on."""

    def prepare(self, folder: Path) -> Any:
        """Make the state in which the operation starts; everything is closed afterwards."""

    def act(self, folder: Path, facts: Any, returned: Callable[[], None]) -> None:
        """Do it, and call `returned` when the caller would have its result."""

    def check(self, folder: Path, facts: Any, *, returned: bool) -> None:
        """Judge what the kill has left behind, and that a repeat leads to the right end."""


class Deaths(NamedTuple):
    """How often the operation was killed, and after how many of those it had returned."""

    steps: int
    after_return: int


def kill_at_every_step(scenario: Scenario, folder: Path) -> Deaths:
    """Kill the operation before its first step, before its second, until it survives; in the
    short form before every second one after EVERY_STEP_UNTIL."""
    prepared, work = folder / "prepared", folder / "work"
    prepared.mkdir()
    facts = scenario.prepare(prepared)
    settle()
    step, after_return, tried = 1, 0, 0
    while True:
        shutil.copytree(prepared, work, symlinks=True)
        survived, returned = _run(scenario, work, facts, step)
        try:
            scenario.check(work, facts, returned=returned)
        except BaseException as error:
            error.add_note(f"killed before step {step}; returned: {returned}")
            raise
        shutil.rmtree(work)
        if survived:
            return Deaths(tried, after_return)
        after_return += returned
        tried += 1
        step += 1 if step < EVERY_STEP_UNTIL or KILL_EVERY == 1 else 2


def settle() -> None:
    """Before many forks: what is there now stays, so that no fork copies it in order to look for
    garbage."""
    gc.collect()
    gc.freeze()


def killed_before(step: int, act: Callable[[], None], *, changes: bool = False) -> bool:
    """Act in a process that kills itself before its step; whether it was killed. With `changes`
    only those are counted that change something (see `install`)."""
    process = os.fork()
    if process == 0:
        try:
            install(step, changes=changes)
            act()
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert status == 0
    return False


def steps_of(act: Callable[[], None]) -> int:
    """How many steps that change something there are in what a process of its own does."""
    hear, tell = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            count = install(0, changes=True)
            act()
            _write(tell, str(count()).encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(tell)
    said = os.read(hear, 20)
    os.close(hear)
    assert os.waitpid(process, 0)[1] == 0
    return int(said)


def _run(scenario: Scenario, folder: Path, facts: Any, step: int) -> tuple[bool, bool]:
    """(it came to its end, it had returned before it was killed)."""
    hear, tell = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            install(step)
            scenario.act(folder, facts, lambda: _tell(tell))
            os._exit(0)
        except BaseException as error:  # noqa: BLE001 - the parent sees the exit code
            _write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
    os.close(tell)
    _, status = os.waitpid(process, 0)
    returned = os.read(hear, 1) == b"r"
    os.close(hear)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert killed or status == 0, f"the operation failed before step {step}: {status}"
    return not killed, returned


def _tell(descriptor: int) -> None:
    _write(descriptor, b"r")
    # A step of its own, so that one kill comes between the result and whatever follows it.
    os.close(os.open(os.devnull, os.O_RDONLY))


_CALLS = (
    *("open", "write", "fsync", "rename", "link", "unlink", "mkdir", "mkfifo", "chmod", "rmdir"),
    "close",
)
_READING = ("fsync", "close")
_WRITING_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def install(kill_before: int, *, changes: bool = False) -> Callable[[], int]:
    """From here on this process kills itself before its step number `kill_before`; what is returned
    tells how many there were.

    With `changes` a step is a call that changes a file or a folder, or a COMMIT. Whoever is killed
    before anything else leaves behind what it would if it were killed before the next of these:
    what a transaction has written is gone with its process.
    """
    count = 0

    def step(*_: object) -> None:
        nonlocal count
        count += 1
        if count == kill_before:
            os.kill(os.getpid(), signal.SIGKILL)

    def commit(*said: object) -> None:
        if said and str(said[0]).lstrip()[:6].upper() == "COMMIT":
            step()

    for name in _CALLS:
        if not changes or name not in _READING:
            seen = _may_write if changes and name == "open" else None
            setattr(os, name, _stepping(getattr(os, name), step, seen))
    _install_writes(step)
    _install_sqlite(step, commit if changes else step)
    return lambda: count


def _may_write(*arguments: Any) -> bool:
    """Whether a call of `os.open` may change something."""
    return len(arguments) > 1 and bool(arguments[1] & _WRITING_FLAGS)


def _stepping(
    call: Callable[..., Any], step: Callable[..., None], counts: Callable[..., bool] | None
) -> Callable[..., Any]:
    def stepped(*args: Any, **kwargs: Any) -> Any:
        if counts is None or counts(*args):
            step()
        return call(*args, **kwargs)

    return stepped


def _install_writes(step: Callable[..., None]) -> None:
    """Files that are written through an object: every write is two, with a step between."""

    class HalfAtATime(io.FileIO):
        def write(self, content: Any) -> int:
            step()
            view = memoryview(content)
            return super().write(view[: (len(view) + 1) // 2])

    original = os.fdopen

    def fdopen(descriptor: int, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if mode == "wb" and kwargs.get("buffering") == 0:
            return HalfAtATime(descriptor, mode)
        return original(descriptor, mode, *args, **kwargs)

    os.fdopen = fdopen  # type: ignore[assignment]


def _install_sqlite(step: Callable[..., None], said: Callable[..., None]) -> None:
    from inbox_orch.shared.store.sqlite import copies

    outside.step_at_every_statement(said)
    copies._PAGES_AT_ONCE = 8
    copies._hear_signals = step  # type: ignore[assignment]
