"""Reading with a pattern that somebody has written: in a process of its own, with a limit of
computing time, since a regular expression alone can take years.

`python -m … SECONDS` is that process: it reads one line of JSON, what is to be read and how, and
behind it the text; it writes the reading as JSON.
"""

import json
import resource
import signal
import subprocess
import sys
from collections.abc import Generator
from typing import IO, TYPE_CHECKING

from inbox_orch.shared.processes.endings import Ending
from inbox_orch.shared.store.temporary import temporary_place

from . import turns
from .built_in import BUILT_IN
from .definitions import Gate
from .readers.read import read
from .readers.reading import PATTERN, UNREADABLE, Reading, suspect

if TYPE_CHECKING:
    from .running import Runner

CPU_SECONDS = 10
WALL_SECONDS = 120.0
"""On a machine that is busy the process gets its time late."""
_OUT_OF_TIME = (-signal.SIGXCPU, -signal.SIGKILL)
_MAY_BRANCH = frozenset("*+?{|")
_OWN = frozenset(gate.pattern for gate in BUILT_IN.values())


def has_to_be_apart(gate: Gate) -> bool:
    """Whether nobody knows how long the gate's pattern takes: it was written by somebody, and has
    more than one way to be found."""
    pattern = gate.pattern
    return pattern is not None and pattern not in _OWN and not _MAY_BRANCH.isdisjoint(pattern)


def read_apart(
    runner: "Runner", gate: Gate, ending: Ending, content: bytes, folder: str
) -> Generator[None, None, Reading]:
    """What `readers.read` says of the content, and a turn for the caller now and then; suspect,
    with `PATTERN` for its cause, where that takes longer than `CPU_SECONDS`. To close the generator
    ends the process. Raises `Interrupted`. Errors: those of the temporary folder."""
    from tempfile import TemporaryFile

    from .running import Interrupted

    place = temporary_place()
    asked = {"gate": gate.as_json(), "ending": list(ending), "folder": folder}
    with TemporaryFile(dir=place) as given, TemporaryFile(dir=place) as said:
        given.write(json.dumps(asked).encode() + b"\n" + content)
        given.seek(0)
        process = _started(given, said)
        if process is None:
            return suspect(UNREADABLE, "no process could be started to read its output")
        waited = 0.0
        try:
            while (status := _status(process, turns.SLICE.ms / 1000)) is None:
                if runner.told_to_end is not None:
                    raise Interrupted(runner.told_to_end)
                waited += turns.SLICE.ms / 1000
                if waited >= WALL_SECONDS:
                    status = -signal.SIGKILL
                    break
                yield
        finally:
            process.kill()
            process.wait()
        said.seek(0)
        return _reading(status, said.read())


def _started(given: IO[bytes], said: IO[bytes]) -> "subprocess.Popen[bytes] | None":
    command = (sys.executable, "-P", "-W", "ignore", "-m", __name__, str(CPU_SECONDS))
    try:
        return subprocess.Popen(
            command, stdin=given, stdout=said, stderr=subprocess.DEVNULL, start_new_session=True
        )
    except OSError:
        return None


def _status(process: "subprocess.Popen[bytes]", seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def _reading(status: int, said: bytes) -> Reading:
    if status in _OUT_OF_TIME:
        return suspect(PATTERN, f"its pattern took longer than {CPU_SECONDS} s on what it put out")
    if status != 0:
        return suspect(UNREADABLE, f"reading its output has failed (exit status {status})")
    return Reading(**json.loads(said))


def main() -> None:
    """Read what stands on standard input."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    seconds = int(sys.argv[1])
    soft = seconds if most == resource.RLIM_INFINITY else min(seconds, most)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, most))
    head, _, content = sys.stdin.buffer.read().partition(b"\n")
    asked = json.loads(head)
    gate, ending = Gate.from_json(asked["gate"]), Ending(*asked["ending"])
    reading = read(gate, ending, content, None, asked["folder"])
    sys.stdout.write(json.dumps(reading._asdict()))


if __name__ == "__main__":
    main()
