"""Processes that are forked from one that has the program imported, by the thousand.

Starting Python and importing the product takes far longer than most commands do. A process from
here is one of its own, with its own descriptors, folder, environment and end; only that beginning
is not repeated, but for once in every locale. What depends on it otherwise (a module that has to be
missing, say) is tried with a program that is started anew.
"""

import atexit
import contextlib
import ctypes
import fcntl
import functools
import gc
import importlib
import json
import math
import os
import pkgutil
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

_TESTS = str(Path(__file__).resolve().parent.parent)

# What the interpreter or a library looks at while it starts: for each of these locales there is
# one that has started so; what has the others is started anew.
_LOCALE = ("LANG", "LC_", "PYTHONCOERCECLOCALE", "PYTHONIOENCODING", "PYTHONUTF8")
_READ_AT_THE_START = ("GIT_PYTHON", "LD_", "PATH", "PYTHON", "TZ")


def is_enough(environment: Mapping[str, str]) -> bool:
    """Whether a process with these changes to the environment may be forked."""
    return not any(
        name.startswith(_READ_AT_THE_START) and not name.startswith(_LOCALE) for name in environment
    )


class Forked:
    """A process, with what of `subprocess.Popen` the tests need.

    `role` is what it does (`command` or `code`), `arguments` what that is given, and `descriptors`
    by their numbers what it has besides its standard streams; it starts without those of the
    standard streams that are `closed`.
    """

    def __init__(
        self,
        role: str,
        arguments: Sequence[str],
        *,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.PIPE,
        stderr: int | None = None,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        descriptors: Sequence[int] = (),
        closed: Sequence[int] = (),
    ) -> None:
        self.args = [role, *arguments]
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None
        self.stderr: IO[bytes] | None = None
        given: dict[int, int] = {number: number for number in descriptors}
        with contextlib.ExitStack() as passed:

            def pipe(number: int, mode: str) -> IO[bytes]:
                ours, theirs = os.pipe() if mode == "rb" else reversed(os.pipe())
                passed.callback(os.close, theirs)
                given[number] = theirs
                return os.fdopen(ours, mode, 0 if mode == "rb" else -1)

            if stdin == subprocess.PIPE:
                self.stdin = pipe(0, "wb")
            elif stdin == subprocess.DEVNULL:
                given[0] = os.open(os.devnull, os.O_RDWR)
                passed.callback(os.close, given[0])
            else:
                given[0] = stdin
            if stdout == subprocess.PIPE:
                self.stdout = pipe(1, "rb")
            else:
                given[1] = stdout
            if stderr == subprocess.PIPE:
                self.stderr = pipe(2, "rb")
            else:
                given[2] = 2 if stderr is None else stderr
            self._told = pipe(-1, "rb")
            whole = os.environ if environment is None else environment
            locale = ((name, whole[name]) for name in sorted(whole) if name.startswith(_LOCALE))
            program = "orch" if role == "command" and Path(arguments[0]).name == "orch" else "inbox"
            _server(os.getpid(), program, tuple(locale)).ask(
                {
                    "role": role,
                    "arguments": [_as_text(word) for word in arguments],
                    "folder": _as_text(cwd or Path.cwd()),
                    "closed": list(closed),
                    "umask": _umask(),
                    "environment": {_as_text(k): _as_text(v) for k, v in whole.items()},
                },
                given,
            )
        self.pid = int(self._hear())

    def _hear(self) -> bytes:
        said = b""
        while not said.endswith(b"\n"):
            byte = self._told.read(1)
            assert byte, "the server of warm processes has ended"
            said += byte
        return said

    def fileno(self) -> int:
        """What select(2) waits at for its end."""
        return self._told.fileno()

    def poll(self) -> int | None:
        """Its exit code, negative for the number of a signal, or None while it lives."""
        if self.returncode is None and select.select([self._told], [], [], 0)[0]:
            self.returncode = int(self._hear())
            self._told.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has one."""
        if self.returncode is None:
            ready, _, _ = select.select([self._told], [], [], timeout)
            if not ready:
                raise subprocess.TimeoutExpired("a warm process", timeout or 0)
        code = self.poll()
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        """To a process that lives."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, given: bytes = b"", timeout: float | None = None) -> tuple[bytes, bytes]:
        """Give it its input, and take its two outputs to their ends; it has ended then."""
        try:
            return self._communicate(given, timeout)
        finally:
            if self.stdin is not None:  # it has ended without reading everything
                self.stdin.close()
                self.stdin = None

    def _communicate(self, given: bytes, timeout: float | None) -> tuple[bytes, bytes]:
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        outputs: dict[Any, bytearray] = {self.stdout: bytearray()}
        if self.stderr is not None:
            outputs[self.stderr] = bytearray()
        left, reading = memoryview(given), list(outputs)
        if self.stdin is not None:
            os.set_blocking(self.stdin.fileno(), False)
        while reading:
            writing = [self.stdin] if self.stdin is not None else []
            readable, writable, _ = select.select(reading, writing, [], _until(deadline))
            if not readable and not writable:
                self.kill()
                raise subprocess.TimeoutExpired("a warm process", timeout or 0)
            if writable:
                assert self.stdin is not None
                try:
                    left = left[os.write(self.stdin.fileno(), left[:65536]) if left else 0 :]
                except BrokenPipeError:
                    left = left[:0]
                if not left:
                    self.stdin.close()
                    self.stdin = None
            for stream in readable:
                chunk = os.read(stream.fileno(), 1 << 20)
                outputs[stream] += chunk
                if not chunk:
                    stream.close()
                    reading.remove(stream)
        self.wait(_until(deadline))
        return tuple(bytes(output) for output in (*outputs.values(), b""))[:2]  # type: ignore[return-value]


def _until(deadline: float) -> float | None:
    return None if deadline == math.inf else max(0.0, deadline - time.monotonic())


def _as_text(word: str | Path) -> str:
    """The bytes of an argument, in a form that JSON has: what they mean depends on the locale."""
    return os.fsencode(word).decode("latin-1")


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


# -- the server ------------------------------------------------------------------------------


@functools.cache
def _server(asking_process: int, program: str, locale: tuple[tuple[str, str], ...]) -> "_Server":
    """The one of this process: two would write into each other's requests."""
    return _Server(program, locale)


class _Server:
    """The process that has a program imported; it ends with the one that asks it."""

    def __init__(self, program: str, locale: Iterable[tuple[str, str]]) -> None:
        others = {k: v for k, v in os.environ.items() if not k.startswith(_LOCALE)}
        self._socket, theirs = socket.socketpair()
        code = f"import sys; sys.path.insert(0, {_TESTS!r}); from support.warm import serve; "
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", f"{code}serve({program!r}, {theirs.fileno()})"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            cwd="/",
            env={**others, **dict(locale)},
        )
        theirs.close()
        self._one_at_a_time = threading.Lock()
        atexit.register(self._close)

    def _close(self) -> None:
        self._socket.close()
        self._process.wait()

    def ask(self, request: dict[str, object], descriptors: Mapping[int, int]) -> None:
        """For a process that has these as its descriptors, by number; -1 tells of its life."""
        request["numbers"] = list(descriptors)
        content = json.dumps(request).encode()
        with self._one_at_a_time:
            socket.send_fds(self._socket, [_LENGTH.pack(len(content))], [*descriptors.values()])
            self._socket.sendall(content)


_LENGTH = struct.Struct("!I")
_MOST_DESCRIPTORS = 32
_LARGE = 2 << 20
_MADV_COLLAPSE = 25


def serve(program: str, descriptor: int) -> None:
    """Fork whatever is asked for, and tell when it has ended, until nobody can ask any more."""
    _import_whole(program)
    # What is there now stays, so that no process copies it in order to look for garbage.
    gc.collect()
    gc.freeze()
    _in_large_pages()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asking = socket.socket(fileno=descriptor)
    hears, ended = os.pipe()
    os.set_blocking(ended, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(ended)
    lives: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([asking, hears], [], [])
        if hears in ready:
            os.read(hears, 4096)
            _bury(lives)
        if asking in ready:
            length, received, _, _ = socket.recv_fds(asking, _LENGTH.size, _MOST_DESCRIPTORS)
            if not length:
                return
            request = json.loads(asking.recv(_LENGTH.unpack(length)[0], socket.MSG_WAITALL))
            given = dict(zip(request["numbers"], received, strict=True))
            teller = given.pop(-1)
            process = os.fork()
            if process == 0:
                signal.set_wakeup_fd(-1)
                for number in (hears, ended, teller, *lives.values()):
                    os.close(number)
                asking.close()
                _become(request, given)
            lives[process] = teller
            os.write(teller, b"%d\n" % process)
            for number in given.values():
                os.close(number)


def _import_whole(program: str) -> None:
    """What a command of the program may load, also what most load late. Every fork pays for what
    is there: the schemas of `inbox` and the protocol of `mcp` are larger than all the rest, and
    few commands want them."""
    rare = {"__main__", "mcp", "schema", "serving"}
    for package in ("shared", "inbox"):
        _import_all(f"inbox_orch.{package}", {*rare, "schemas"})
    if program == "orch":
        _import_all("inbox_orch.orch", rare)
        for name in ("git", "rich.console", "rich.table", "ulid", "yaml"):
            importlib.import_module(name)
    assert "mcp" not in sys.modules


def _import_all(name: str, rare: set[str]) -> None:
    """A module and what is in it, but for modules with these names."""
    module = importlib.import_module(name)
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if found.name not in rare:
            _import_all(f"{name}.{found.name}", rare)


def _in_large_pages() -> None:
    """A third of what a fork takes is the copying of its page table, which is shorter then. Where
    the kernel has no large pages to give, or not this call (madvise(2)), all stays as it is."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for line in Path("/proc/self/maps").read_text().splitlines():
        place, rights, _, _, number, *name = line.split()
        if "w" in rights and number == "0" and name in ([], ["[heap]"]):
            first, last = (int(address, 16) for address in place.split("-"))
            first, last = -(-first // _LARGE) * _LARGE, last // _LARGE * _LARGE
            if first < last:
                libc.madvise(first, last - first, _MADV_COLLAPSE)


def _bury(lives: dict[int, int]) -> None:
    while lives:
        process, status = os.waitpid(-1, os.WNOHANG)
        if process == 0:
            return
        teller = lives.pop(process)
        with contextlib.suppress(BrokenPipeError):
            os.write(teller, b"%d\n" % os.waitstatus_to_exitcode(status))
        os.close(teller)


def _become(request: dict[str, Any], given: dict[int, int]) -> NoReturn:
    """What a process is when its program starts: its descriptors, its place, its signals."""
    # First out of the way of the numbers that are wanted.
    free = max(*given, *given.values()) + 1
    moved = {number: fcntl.fcntl(place, fcntl.F_DUPFD, free) for number, place in given.items()}
    for place in given.values():
        os.close(place)
    for number, place in moved.items():
        os.dup2(place, number)
        os.close(place)
    for number in request["closed"]:
        os.close(number)
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)
    os.umask(request["umask"])
    os.chdir(_bytes(request["folder"]))
    os.environ.clear()
    os.environb.update({_bytes(k): _bytes(v) for k, v in request["environment"].items()})
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path.remove(_TESTS)
    _ROLES[request["role"]](*(os.fsdecode(_bytes(word)) for word in request["arguments"]))
    _leave()


def _leave() -> NoReturn:
    """End well, without the tidying up of all that was imported, which takes longer than most of
    what is done here: every page of it is copied for that."""
    if threading.active_count() > 1:
        sys.exit(0)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    os._exit(0)


def _bytes(text: str) -> bytes:
    return text.encode("latin-1")


def _command(path: str, *arguments: str) -> None:
    """The program of that name."""
    sys.argv = [path, *arguments]
    name = Path(path).name
    if sys.platform == "linux":
        Path("/proc/self/comm").write_text(name)
    importlib.import_module(f"inbox_orch.{name}.__main__").main()


def _code(text: str, *arguments: str) -> None:
    """`python -c`."""
    sys.argv = ["-c", *arguments]
    exec(compile(text, "<string>", "exec"), {"__name__": "__main__"})


_ROLES: dict[str, Callable[..., None]] = {"command": _command, "code": _code}
