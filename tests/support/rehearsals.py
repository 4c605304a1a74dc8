"""Scripts whose commands are listened to, and fail on demand: a script is run once as it is, and
what each command printed is kept; then it is run again for each of them, which fails, while the
others only say what they said. So it is seen where a script stops."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from support.timing import PATIENCE_SECONDS

SHELLS = ("bash", "dash", "zsh")
INJECTED = 42
"""The exit code of the command that is made to fail."""
_LISTENED_TO = (
    *("inbox", "orch", "git", "python3", "sh", "cat", "mv", "cp", "rm", "ls", "chmod", "mkdir"),
    *("sed", "grep", "wc", "cut", "head", "tail", "tr", "cksum"),
)
# A call is known by its words, and by which call with these words it is. A worker in the background
# is itself what is killed later; in a rehearsal it is not there for long.
_LISTENER = """\
#!/bin/sh
name=${0##*/}
PATH=$REHEARSAL_PATH
key=$(printf '%s\\0' "$name" "$@" | cksum)
key=${key%% *}
number=1
until mkdir "$REHEARSAL/calls/$key.$number" 2>/dev/null; do number=$((number + 1)); done
call=$key.$number
printf '%s\\n' "$call" >>"$REHEARSAL/log"
printf '%s ' "$name" "$@" >"$REHEARSAL/calls/$call/words"
kept=$REHEARSAL/kept/$call
case "$name $*" in
*--once*) ;;
"inbox work "*) [ -z "$REHEARSAL_FAILS" ] && exec "$name" "$@" || exec sleep 5 ;;
esac
if [ -z "$REHEARSAL_FAILS" ]; then
    code=0
    "$name" "$@" >"$kept.out" || code=$?
    echo "$code" >"$kept.code"
elif [ "$call" = "$REHEARSAL_FAILS" ]; then
    exit 42
fi
cat "$kept.out"
exit "$(cat "$kept.code")"
"""


class Script:
    """A script in a shell, whose commands are found in the folders of `path`."""

    def __init__(
        self,
        shell: str,
        words: Sequence[str],
        folder: Path,
        *,
        path: str,
        environment: dict[str, str],
    ) -> None:
        self.line = [shell, *words]
        self.folder = folder
        self._place = folder.parent / "rehearsal"
        shims = self._place / "bin"
        shims.mkdir(parents=True)
        (self._place / "kept").mkdir()
        for name in _LISTENED_TO:
            (shims / name).write_text(_LISTENER)
            (shims / name).chmod(0o755)
        self._environment = {
            **environment,
            "PATH": f"{shims}{os.pathsep}{path}",
            "REHEARSAL": str(self._place),
            "REHEARSAL_PATH": path,
        }

    def play(self, fails: str = "") -> "subprocess.CompletedProcess[str]":
        """The script, once; with `fails` only as a rehearsal in which that call fails."""
        shutil.rmtree(self._place / "calls", ignore_errors=True)
        (self._place / "calls").mkdir()
        (self._place / "log").write_text("")
        if fails:
            self._make_folders()
        return subprocess.run(
            self.line,
            cwd=self.folder,
            env={**self._environment, "REHEARSAL_FAILS": fails},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )

    def _make_folders(self) -> None:
        """Folders of which a command has told by their paths alone: a redirection may go there,
        and in a rehearsal nobody has made them."""
        for kept in (self._place / "kept").glob("*.out"):
            line = kept.read_bytes().decode(errors="replace").strip()
            is_here = line.startswith(f"{self.folder.parent}{os.sep}") and "\n" not in line
            if is_here and not os.path.lexists(line):
                Path(line).mkdir(parents=True)

    def calls(self) -> list[str]:
        """The calls of the last run, without those in the background."""
        calls = (self._place / "log").read_text().split()
        return [call for call in calls if not self._is_behind(call)]

    def words(self, call: str) -> str:
        """The words of a call of the last run."""
        return (self._place / "calls" / call / "words").read_text()

    def _is_behind(self, call: str) -> bool:
        words = self.words(call)
        return words.startswith("inbox work ") and "--once" not in words

    def surprises(self, *, first: int = 0, step: int = 1) -> Iterator[str]:
        """What is wrong with how the script ends when one of its commands fails: for each, or from
        the `first` on for every one in `step`."""
        played = self.calls()
        told = {call: self.words(call) for call in played}
        for at, call in [*enumerate(played)][first::step]:
            ended = self.play(call)
            seen = self.calls()
            if ended.returncode != INJECTED:
                yield f"exit code {ended.returncode} after {told[call]}: {ended.stderr[-300:]}"
            elif seen != played[: at + 1]:
                later = [told.get(each, each) for each in seen if each not in played[: at + 1]]
                yield f"went on after {told[call]}: {later}"


def installed() -> str:
    """PATH with the commands that the tests meet first."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def bare(environment: dict[str, str]) -> dict[str, str]:
    """The environment of somebody who has told git no name, and has an empty home."""
    return {name: value for name, value in environment.items() if not _tells_who(name)}


def _tells_who(name: str) -> bool:
    return name.startswith(("GIT_AUTHOR_", "GIT_COMMITTER_"))
