"""The folder of a demonstration: a repository, the commands on PATH, worker processes."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

from inbox_orch.inbox import Bus
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes.signals import postponed
from inbox_orch.shared.store.folders import file_failure
from inbox_orch.shared.store.temporary import make_temporary_folder, temporary_place

COMMAND_SECONDS = 180.0
TRY_AGAIN = "try again on a machine with less to do; --keep leaves the folder to look at"
LEASE_SECONDS, SHORT_LEASE_SECONDS = 60, 2


def _made_folder() -> Path:
    """A new temporary folder; error `disk_full`, `read_only` or `io_error`."""
    place = temporary_place()
    try:
        return Path(make_temporary_folder("inbox-orch-demo-"))
    except OSError as error:
        raise file_failure(place, error) from error


class Workshop:
    """A temporary project with workers. Leaves no process behind, and no file unless `keep`."""

    def __init__(self, *, keep: bool) -> None:
        self.folder = _made_folder()
        self.repository = self.folder / "project"
        self._keep = keep
        # Workers by their names, and the command that is being waited for.
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._environment = self._make_environment()

    def __enter__(self) -> "Workshop":
        try:
            self._make_commands()
            self._make_repository()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        try:
            for name in list(self._running):
                self.stop_worker(name)
            self._kill_the_rest()
        finally:
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
        try:
            done = subprocess.run(
                ["git", *arguments],
                cwd=self.repository,
                env=self._environment,
                capture_output=True,
                timeout=COMMAND_SECONDS,
            )
        except FileNotFoundError as error:
            raise InboxOrchError(
                "git_missing", "git could not be started", hint="install git and put it on PATH"
            ) from error
        if done.returncode != 0:
            words = done.stderr.decode("utf-8", "replace").strip()
            raise InboxOrchError(
                "git_failed", f"git {arguments[0]} failed: {words[:2000]}", hint=TRY_AGAIN
            )
        return done.stdout.decode("utf-8", "replace").rstrip("\n")

    def verified(self) -> bool:
        """Whether both doctors fold the events and find what the tables hold."""
        threads = self.inbox("doctor", "--verify", accepted=(0, 11))
        runs = self.orch("doctor", "--verify", accepted=(0, 11))
        return bool(threads["problems"] == runs["problems"] == 0)

    def open_bus(self, agent: str) -> Bus:
        """The project's bus, in this process."""
        return Bus.open(self.repository / ".inbox" / "bus.db", agent=agent)

    def _run(
        self, program: str, arguments: tuple[str, ...], accepted: tuple[int, ...]
    ) -> dict[str, Any]:
        process = self._start(
            [str(self.folder / "bin" / program), *arguments, "--json"],
            f"{program} {shlex.join(arguments)}",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        out, error = process.communicate(timeout=COMMAND_SECONDS)
        del self._running[f"{program} {shlex.join(arguments)}"]
        if process.returncode not in accepted:
            raise InboxOrchError(
                "internal",
                f"`{program} {shlex.join(arguments)}` ended with {process.returncode}: "
                + out.decode("utf-8", "replace")[:2000]
                + error.decode("utf-8", "replace")[:2000],
                hint=TRY_AGAIN,
            )
        data = json.loads(out).get("data")
        assert isinstance(data, dict)
        return data

    def _start(self, command: list[str], name: str, **options: Any) -> "subprocess.Popen[bytes]":
        """A process that is known to us before a signal can make us forget it."""
        with postponed():
            process = subprocess.Popen(
                command,
                cwd=self.repository,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                **options,
            )
            self._running[name] = process
        return process

    # -- workers -----------------------------------------------------------------------------

    def start_worker(
        self,
        name: str,
        *mailboxes: str,
        slots: int = 1,
        script: str = "worker.sh",
        lease_seconds: int = LEASE_SECONDS,
    ) -> None:
        """Start `inbox work` as a process of its own."""
        named = [word for mailbox in mailboxes for word in ("--mailbox", mailbox)]
        with open(self.folder / f"{name}.log", "wb") as log:
            self._start(
                [
                    str(self.folder / "bin" / "inbox"),
                    *("work", "--agent", name, *named),
                    *("--lease", str(lease_seconds), "--slots", str(slots), "--", "sh"),
                    str(self.folder / script),
                ],
                name,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def start_leader(self, name: str) -> "subprocess.Popen[bytes]":
        """Start `orch drive` as a process of its own."""
        with open(self.folder / f"{name}.log", "ab") as log:
            command = [str(self.folder / "bin" / "orch"), "drive"]
            return self._start(command, name, stdout=log, stderr=log, start_new_session=True)

    def ended(self, name: str, process: "subprocess.Popen[bytes]") -> int:
        """Wait until a process has ended by itself; returns its exit code."""
        code = process.wait(COMMAND_SECONDS)
        del self._running[name]
        return code

    def kill_worker(self, name: str) -> None:
        """`kill -9` for the worker process and for the command that it runs."""
        process = self._running.pop(name)
        process.kill()
        process.wait()
        self._kill_the_rest()

    def stop_worker(self, name: str) -> None:
        """Ask a worker to stop, as Ctrl-C would; it hands back what it holds."""
        process = self._running.pop(name)
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
        """The caller's, without what would change how git and our commands behave."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("GIT_", "INBOX_", "ORCH_")) or name == "GIT_EXEC_PATH"
        }
        for name in ("FORCE_COLOR", "XDG_CONFIG_HOME"):
            kept.pop(name, None)
        return kept | {
            "HOME": str(self.folder),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "TMPDIR": str(self.folder / "tmp"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "DEMO": str(self.folder),
        }

    def _make_commands(self) -> None:
        """`inbox` and `orch` on PATH, run by the Python that runs this."""
        (self.folder / "bin").mkdir()
        (self.folder / "tmp").mkdir()
        for name in ("inbox", "orch"):
            path = self.folder / "bin" / name
            call = f"{shlex.quote(sys.executable)} -P -m inbox_orch.{name}"
            path.write_text(f'#!/bin/sh\nexec {call} "$@"\n')
            path.chmod(0o755)
        for name in ("worker.sh", "reviewer.sh", "mender.sh"):
            script = resources.files(__package__).joinpath(name).read_text()
            (self.folder / name).write_text(script)

    def _make_repository(self) -> None:
        self.repository.mkdir()
        self.git("init", "--quiet", "--initial-branch", "main")
        # Newer gits look after a repository in the background, where it is to be gone at the end.
        self.git("config", "maintenance.auto", "false")
        self.git("config", "user.name", "Demo")
        self.git("config", "user.email", "demo@example.invalid")
        (self.repository / "README.md").write_text("A small project.\n")
        self.git("add", "README.md")
        self.git("commit", "--quiet", "--message", "Begin")
