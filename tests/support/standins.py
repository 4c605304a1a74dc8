"""`inbox` and `orch` on PATH that warm processes carry out, for scripts with dozens of calls.

What a script calls is a small shell, which tells its number and waits. Its words, its environment,
its folder and its very descriptors (pidfd_getfd(2)) are handed to a fork of `support.warm`, and it
ends as that does. Needs Linux; elsewhere the commands are called themselves.
"""

import contextlib
import ctypes
import os
import select
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

from support import warm
from support.commands import command_path

# A worker is killed by its number, so that it has to be itself. Its own descriptors a shell changes
# while it writes and reads: those that are handed on are copies.
_STAND_IN = """\
#!/bin/sh
[ "$1" != work ] || exec '{real}' "$@"
exec 7<&0 8>&1 9>&2
answer='{folder}'/$$
mkfifo "$answer"
echo "$$" >'{folder}/calls'
read -r code <"$answer"
exit "$code"
"""
_PIDFD_GETFD = 438
_END = "end"


@contextlib.contextmanager
def stand_ins(folder: Path) -> Iterator[str]:
    """The folder of the two, which begins a PATH; that of the commands themselves where a process
    cannot be asked for its descriptors."""
    if not _can_be_asked():
        yield str(Path(command_path("orch")).parent)
        return
    folder.mkdir()
    for name in ("inbox", "orch"):
        (folder / name).write_text(_STAND_IN.format(real=command_path(name), folder=folder))
        (folder / name).chmod(0o755)
    os.mkfifo(folder / "calls")
    with (folder / "calls").open("r+b", buffering=0) as calls:
        answering = threading.Thread(target=_answer, args=(folder, calls.fileno()))
        answering.start()
        try:
            yield str(folder)
        finally:
            calls.write(f"{_END}\n".encode())
            answering.join()


def _answer(folder: Path, calls: int) -> None:
    """Answer every call, each in a thread of its own, until the end is told."""
    threads = []
    with os.fdopen(os.dup(calls), encoding="ascii") as lines:
        for line in lines:
            if line.strip() == _END:
                break
            threads.append(threading.Thread(target=_carry_out, args=(folder, int(line))))
            threads[-1].start()
    for thread in threads:
        thread.join()


def _carry_out(folder: Path, caller: int) -> None:
    """What a stand-in was called for; it has ended when this returns."""
    answer = folder / str(caller)
    handle = os.pidfd_open(caller)
    # Open until it has read: what is in a pipe that nobody has open is lost.
    told = os.open(answer, os.O_RDWR)
    try:
        process = _forked(caller, handle)
        ready, _, _ = select.select([process, handle], [], [])
        if process not in ready:
            process.send_signal(signal.SIGTERM)
        code = process.wait()
        os.write(told, b"%d\n" % (code if code >= 0 else 128 - code))
        select.select([handle], [], [])
    finally:
        os.close(told)
        os.close(handle)
        answer.unlink()


def _forked(caller: int, handle: int) -> warm.Forked:
    """The warm process for a stand-in."""
    place = Path("/proc", str(caller))
    _, path, *words = _texts(place / "cmdline")
    pairs = (text.partition("=") for text in _texts(place / "environ"))
    with contextlib.ExitStack() as held:
        descriptors = [_taken(handle, number) for number in (7, 8, 9)]
        for descriptor in descriptors:
            held.callback(os.close, descriptor)
        return warm.Forked(
            "command",
            [command_path(Path(path).name), *words],
            stdin=descriptors[0],
            stdout=descriptors[1],
            stderr=descriptors[2],
            cwd=(place / "cwd").readlink(),
            environment={name: value for name, _, value in pairs},
        )


def _texts(path: Path) -> list[str]:
    return [os.fsdecode(text) for text in path.read_bytes().split(b"\0")[:-1]]


def _taken(handle: int, number: int) -> int:
    """A descriptor of another process, as our own."""
    libc = ctypes.CDLL(None, use_errno=True)
    taken = libc.syscall(_PIDFD_GETFD, handle, number, 0)
    if taken < 0:
        raise OSError(ctypes.get_errno(), f"descriptor {number}")
    return int(taken)


def _can_be_asked() -> bool:
    try:
        handle = os.pidfd_open(os.getpid())
    except (AttributeError, OSError):
        return False
    try:
        os.close(_taken(handle, 0))
    except OSError:
        return False
    finally:
        os.close(handle)
    return True
