"""The folder of a demonstration: a repository, the commands on PATH, worker processes."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

from inbox_orch.inbox import Bus
from inbox_orch.shared.errors import InboxOrchError

COMMAND_SECONDS = 60.0
LEASE_SECONDS = 2


class Workshop:
    """A temporary project with workers. Leaves no process behind, and no file unless `keep`."""

    def __init__(self, *, keep: bool) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="inbox-orch-demo-"))
        self.repository = self.folder / "project"
        self._keep = keep
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._environment = self._make_environment()
        self._make_commands()
        self._make_repository()

    def __enter__(self) -> "Workshop":
        return self

    def __exit__(self, *exc_info: object) -> None:
        for name in list(self._workers):
            self.stop_worker(name)
        self._kill_the_rest()
        if not self._keep:
            shutil.rmtree(self.folder)

    # -- commands ----------------------------------------------------------------------------

    def orch(self, *arguments: str, accepted: tuple[int, ...] = (0,)) -> dict[str, Any]:
        """Run `orch … --json` in the repository; returns its `data`."""
        return self._run("orch", arguments, accepted)

    def inbox(self, *arguments: str, accepted: tuple[int, ...] = (0,)) -> dict[str, Any]:
        """Run `inbox … --json` in the repository; returns its `data`."""
        return self._run("inbox", arguments, accepted)

    def git(self, *arguments: str) -> str:
        """The output of git in the repository."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.repository,
            env=self._environment,
            capture_output=True,
            timeout=COMMAND_SECONDS,
            check=True,
        )
        return done.stdout.decode("utf-8", "replace").rstrip("\n")

    def open_bus(self, agent: str) -> Bus:
        """The project's bus, in this process."""
        return Bus.open(self.repository / ".inbox" / "bus.db", agent=agent)

    def _run(
        self, program: str, arguments: tuple[str, ...], accepted: tuple[int, ...]
    ) -> dict[str, Any]:
        done = subprocess.run(
            [str(self.folder / "bin" / program), *arguments, "--json"],
            cwd=self.repository,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=COMMAND_SECONDS,
        )
        if done.returncode not in accepted:
            raise InboxOrchError(
                "internal",
                f"`{program} {shlex.join(arguments)}` ended with {done.returncode}: "
                + done.stdout.decode("utf-8", "replace")[:2000]
                + done.stderr.decode("utf-8", "replace")[:2000],
            )
        data = json.loads(done.stdout).get("data")
        assert isinstance(data, dict)
        return data

    # -- workers -----------------------------------------------------------------------------

    def start_worker(self, name: str, *mailboxes: str, slots: int = 1) -> None:
        """Start `inbox work` as a process of its own."""
        named = [word for mailbox in mailboxes for word in ("--mailbox", mailbox)]
        script = str(self.folder / "worker.sh")
        with open(self.folder / f"{name}.log", "wb") as log:
            self._workers[name] = subprocess.Popen(
                [
                    str(self.folder / "bin" / "inbox"),
                    *("work", "--agent", name, *named),
                    *("--lease", str(LEASE_SECONDS), "--slots", str(slots), "--", "sh", script),
                ],
                cwd=self.repository,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill_worker(self, name: str) -> None:
        """`kill -9` for the worker process and for the command that it runs."""
        process = self._workers.pop(name)
        process.kill()
        process.wait()
        self._kill_the_rest()

    def stop_worker(self, name: str) -> None:
        """Ask a worker to stop, as Ctrl-C would; it hands back what it holds."""
        process = self._workers.pop(name)
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(COMMAND_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _kill_the_rest(self) -> None:
        """The command of a killed worker goes on by itself; it has written its number down."""
        for path in self.folder.glob("*.pid"):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(int(path.read_text()), signal.SIGKILL)
            path.unlink()

    # -- making it ---------------------------------------------------------------------------

    def _make_environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("GIT_", "INBOX_", "ORCH_")) or name == "GIT_EXEC_PATH"
        }
        return kept | {
            "HOME": str(self.folder),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "DEMO": str(self.folder),
        }

    def _make_commands(self) -> None:
        """`inbox` and `orch` on PATH, run by the Python that runs this."""
        (self.folder / "bin").mkdir()
        for name in ("inbox", "orch"):
            path = self.folder / "bin" / name
            call = f"{shlex.quote(sys.executable)} -P -m inbox_orch.{name}"
            path.write_text(f'#!/bin/sh\nexec {call} "$@"\n')
            path.chmod(0o755)
        script = resources.files(__package__).joinpath("worker.sh").read_text()
        (self.folder / "worker.sh").write_text(script)

    def _make_repository(self) -> None:
        self.repository.mkdir()
        self.git("init", "--quiet", "--initial-branch", "main")
        self.git("config", "user.name", "Demo")
        self.git("config", "user.email", "demo@example.invalid")
        (self.repository / "README.md").write_text("A small project.\n")
        self.git("add", "README.md")
        self.git("commit", "--quiet", "--message", "Begin")
