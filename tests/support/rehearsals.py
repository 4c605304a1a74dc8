"""Scripts whose commands are listened to, and fail on demand: a script is run once as it is, and
what each command printed is kept; then it is run again for each of them, which fails, while the
others only say what they said. So it is seen where a script stops."""

import copy
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from support.timing import PATIENCE_SECONDS

SHELLS = ("bash", "dash", "zsh")
INJECTED = 42
"""The exit code of the command that is made to fail."""
LISTENED_TO = (
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
printf '%s\\0' "$name" "$@" >"$REHEARSAL/calls/$call/words"
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
# The same of a call that was heard, without another process: a script of a hundred commands is
# rehearsed with some thousand calls. With words that are new it becomes the listener above.
_PROMPTER = """\
#!/bin/sh
PATH=$REHEARSAL_PATH
IFS='{between}'
case "$#{between}$*" in
{heard}
*) exec {listener} "$@" ;;
esac
set -C
number=1
until {{ true >"$REHEARSAL/calls/$key.$number"; }} 2>/dev/null; do number=$((number + 1)); done
printf '%s\\n' "$key.$number" >>"$REHEARSAL/log"
[ -z "$is_behind" ] || exec sleep 5
[ "$key.$number" != "$REHEARSAL_FAILS" ] || exit {injected}
trap '' PIPE
. "$REHEARSAL/kept/$key.$number.sh"
"""
_BETWEEN = "\x1f"


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
        for name in ("listeners", "prompters", "kept"):
            (self._place / name).mkdir(parents=True)
        for name in LISTENED_TO:
            _program(self._place / "listeners" / name, _LISTENER)
        self._path = path
        self._environment = {
            **environment,
            "REHEARSAL": str(self._place),
            "REHEARSAL_PATH": path,
        }
        self._heard: dict[str, list[str]] = {}
        self._folders: list[Path] = []

    def play(self) -> "subprocess.CompletedProcess[str]":
        """The script, once; what its commands say is kept."""
        done = self._run("listeners", fails="")
        self._heard = {}
        for call in (self._place / "log").read_text().split():
            self._heard[_key(call)] = self.words(call)
            self._keep(call)
        for name in LISTENED_TO:
            _program(self._place / "prompters" / name, self._prompter(name))
        self._folders = self._told_folders()
        return done

    def in_shell(self, shell: str) -> "Script":
        """The same script in another shell, with what was heard of it."""
        other = copy.copy(self)
        other.line = [shell, *self.line[1:]]
        return other

    def rehearse(self, fails: str = "") -> "subprocess.CompletedProcess[str]":
        """The script once more, in which that call fails (none, unless it is named) and the others
        say what they said."""
        for folder in self._folders:
            if not os.path.lexists(folder):
                folder.mkdir(parents=True)
        return self._run("prompters", fails)

    def _run(self, programs: str, fails: str) -> "subprocess.CompletedProcess[str]":
        shutil.rmtree(self._place / "calls", ignore_errors=True)
        (self._place / "calls").mkdir()
        (self._place / "log").write_text("")
        first = f"{self._place / programs}{os.pathsep}{self._path}"
        return subprocess.run(
            self.line,
            cwd=self.folder,
            env={**self._environment, "PATH": first, "REHEARSAL_FAILS": fails},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )

    def words(self, call: str) -> list[str]:
        """The words of a call of the last run."""
        if _key(call) in self._heard:
            return self._heard[_key(call)]
        told = (self._place / "calls" / call / "words").read_bytes()
        return [os.fsdecode(word) for word in told.split(b"\0")[:-1]]

    def _keep(self, call: str) -> None:
        """How the prompter says what a call has said; one in the background has said nothing."""
        kept = self._place / "kept" / call
        if not self._is_behind(call):
            said = kept.with_name(f"{call}.out").read_bytes()
            code = kept.with_name(f"{call}.code").read_text().strip()
            say = f"printf %s {shlex.quote(os.fsdecode(said))} 2>/dev/null"
            if b"\0" in said:
                say = f"cat {shlex.quote(f'{kept}.out')}"
            kept.with_name(f"{call}.sh").write_bytes(os.fsencode(f"{say}\nexit {code}\n"))

    def _prompter(self, name: str) -> str:
        heard = [
            f"{shlex.quote(_BETWEEN.join((str(len(words)), *words)))})"
            f" key={key} is_behind={'yes' if _works_on([name, *words]) else ''} ;;"
            for key, (called, *words) in self._heard.items()
            if called == name
        ]
        listener = shlex.quote(str(self._place / "listeners" / name))
        return _PROMPTER.format(
            between=_BETWEEN, heard="\n".join(heard), listener=listener, injected=INJECTED
        )

    def _told_folders(self) -> list[Path]:
        """Folders of which a command has told by their paths alone: a redirection may go there,
        and in a rehearsal nobody has made them."""
        told = [
            kept.read_bytes().decode(errors="replace").strip()
            for kept in (self._place / "kept").glob("*.out")
        ]
        here = f"{self.folder.parent}{os.sep}"
        return [Path(line) for line in told if line.startswith(here) and "\n" not in line]

    def calls(self) -> list[str]:
        """The calls of the last run, without those in the background."""
        calls = (self._place / "log").read_text().split()
        return [call for call in calls if not self._is_behind(call)]

    def _is_behind(self, call: str) -> bool:
        return _works_on(self.words(call))

    def differences(self, played: Sequence[str]) -> list[str]:
        """What a shell makes otherwise of a script in which no command fails, when it is said what
        the calls of another shell, `played`, have said."""
        ended = self.rehearse()
        found = [] if ended.returncode == 0 else [f"exit {ended.returncode}: {ended.stderr[-300:]}"]
        told = {call: " ".join(self.words(call)) for call in self.calls()}
        found += [f"called {words}" for call, words in told.items() if call not in played]
        return found + [f"did not call {self.words(call)}" for call in played if call not in told]

    def files(self) -> dict[str, bytes]:
        """What lies in the folder, but for what git and the bus keep there: a redirection has
        written it, also in a rehearsal."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file() and not {".git", ".inbox"} & {*path.relative_to(self.folder).parts}
        }

    def put_back(self, files: dict[str, bytes]) -> None:
        """The same files again: the next rehearsal may append to them."""
        now = self.files()
        for name in now.keys() - files.keys():
            (self.folder / name).unlink()
        for name, content in files.items():
            if now.get(name) != content:
                (self.folder / name).write_bytes(content)

    def surprises(self, played: Sequence[str], *, first: int = 0, step: int = 1) -> Iterator[str]:
        """What is wrong with how the script ends when one of its commands, the calls `played`,
        fails: for each, or from the `first` on for every one in `step`."""
        told = {call: " ".join(self.words(call)) for call in played}
        for at, call in [*enumerate(played)][first::step]:
            ended = self.rehearse(call)
            seen = self.calls()
            if ended.returncode != INJECTED:
                yield f"exit code {ended.returncode} after {told[call]}: {ended.stderr[-300:]}"
            elif seen != played[: at + 1]:
                later = [told.get(each, each) for each in seen if each not in played[: at + 1]]
                yield f"went on after {told[call]}: {later}"


def _key(call: str) -> str:
    """What all calls with the same words have in common."""
    return call.partition(".")[0]


def _works_on(words: Sequence[str]) -> bool:
    """Whether it is a worker in the background."""
    return list(words[:2]) == ["inbox", "work"] and not any("--once" in word for word in words)


def _program(path: Path, text: str) -> None:
    path.write_bytes(os.fsencode(text))
    path.chmod(0o755)


def installed() -> str:
    """PATH with the commands that the tests meet first."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def bare(environment: dict[str, str]) -> dict[str, str]:
    """The environment of somebody who has told git no name, and has an empty home."""
    return {name: value for name, value in environment.items() if not _tells_who(name)}


def _tells_who(name: str) -> bool:
    return name.startswith(("GIT_AUTHOR_", "GIT_COMMITTER_"))
