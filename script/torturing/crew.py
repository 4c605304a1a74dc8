"""Everybody who works on the database, each by a name: whoever dies is born again."""

import contextlib
import signal
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import actors
from lives import Forked, Life, Spawned

CREW = {"sender": 6, "worker": 14, "reader": 3, "watcher": 1, "caretaker": 1, "shell": 1}
GIT_CREW = {"leader": 2, "coder": 2}
_STOP_SECONDS = 90.0


class Crew:
    """The processes. `crashes` are the ends of those whom nobody has killed, in words."""

    def __init__(
        self, folder: Path, seed: str, broken: str, roles: Mapping[str, int], times: int
    ) -> None:
        self.crashes: list[str] = []
        self._folder, self._seed, self._broken = folder, seed, broken
        self._lives: Counter[str] = Counter()
        names = [f"{role}{n}" for role, number in roles.items() for n in range(number * times)]
        self._processes = {name: self._born(name, None) for name in names}

    @property
    def names(self) -> list[str]:
        """Of all, always in the same order."""
        return sorted(self._processes)

    def kill(self, *names: str, environment: Mapping[str, str] | None = None) -> None:
        """All of them are gone before the first is born again; `environment` is what the next
        life gets on top of this one's."""
        for name in names:
            self._processes[name].kill()
            self._forget_silence(name)
        for name in names:
            self._processes[name] = self._born(name, environment)

    def send_signal(self, name: str, number: int) -> None:
        """To the present life."""
        self._processes[name].signal(number)

    def look_after(self) -> None:
        """Who has ended by itself has crashed."""
        for name, process in self._processes.items():
            if process.ended() is not None:
                self._ended(name, process)
                self._processes[name] = self._born(name, None)

    def stop(self) -> None:
        """Let everybody finish what it is doing. A caretaker's examination of a large database
        takes minutes, and is not waited for."""
        (self._folder / "stop").touch()
        for name in [name for name in self._processes if name.startswith("caretaker")]:
            self._processes.pop(name).kill()
        for name in self._processes:
            self.send_signal(name, signal.SIGCONT)
        deadline = time.monotonic() + _STOP_SECONDS
        for name, process in self._processes.items():
            if process.wait(max(0.0, deadline - time.monotonic())) is None:
                process.kill()
                self.crashes.append(f"{name} did not come to an end within {_STOP_SECONDS:g} s")
            else:
                self._ended(name, process)

    @property
    def lives(self) -> int:
        """How many there have been."""
        return self._lives.total()

    def _born(self, name: str, environment: Mapping[str, str] | None) -> Life:
        life = self._lives[name]
        self._lives[name] += 1
        given = (str(self._folder), name, str(life), self._seed, self._broken)
        output = self._words(name)
        if environment is None:
            return Forked(actors.live, given, output)
        return Spawned(Path(actors.__file__), given, output, environment)

    def _words(self, name: str) -> Path:
        return self._folder / "errors" / f"{name}.{self._lives[name] - 1}"

    def _ended(self, name: str, process: Life) -> None:
        status = process.ended()
        if status != 0:
            words = _read(self._words(name))[-600:]
            self.crashes.append(f"{name}#{self._lives[name] - 1} ended with {status}: {words}")
        self._forget_silence(name)

    def _forget_silence(self, name: str) -> None:
        """An hour has thousands of lives, and hardly one of them has anything to say."""
        with contextlib.suppress(FileNotFoundError):
            if self._words(name).stat().st_size == 0:
                self._words(name).unlink()


def _read(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def last_words(folder: Path) -> Iterable[str]:
    """What those who were killed had written to standard error."""
    for path in sorted((folder / "errors").iterdir()):
        yield f"{path.name}: {_read(path)[-600:]}"
