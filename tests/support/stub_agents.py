"""Programs that behave like coding agents: they edit only with their flag, print their JSON, and
meet a limit of use, a missing log-in or a refusal when a file beside them says so."""

import os
from pathlib import Path

_CLAUDE = r"""#!/bin/sh
# Like `claude -p --output-format json`. Reads what it is to meet from the files beside it.
here=$(dirname -- "$0")
[ "$1" = --version ] && { echo '9.9.9 (Claude Code)'; exit 0; }
[ "$1 $2" = 'auth status' ] && { [ ! -e "$here/logged-out" ]; exit; }
printf '%s\n' "$*" >> "$here/called"
task=$(cat)
printf '%s\n' "$task" > "$here/task"
session= previous=
for word; do
    [ "$previous" != --resume ] || session=$word
    previous=$word
done
mkdir -p "$here/sessions"
if [ -n "$session" ] && [ ! -e "$here/sessions/$session" ]; then
    echo "No conversation found with session ID: $session" >&2; exit 1
fi
resumed=$session
[ -n "$session" ] || session=s-$(($(ls "$here/sessions" | wc -l) + 1))
printf '%s\n' "$task" >> "$here/sessions/$session"
[ ! -e "$here/forgetful" ] || rm "$here/sessions/$session"
answer() { # ERROR SUBTYPE STOP COST TEXT
    printf '{"type":"result","is_error":%s,"subtype":"%s","stop_reason":"%s",' "$1" "$2" "$3"
    printf '"session_id":"%s","total_cost_usd":%s,"result":"%s",' "$session" "$4" "$5"
    printf '"usage":{"input_tokens":10,"output_tokens":5}}\n'
}
if [ -e "$here/logged-out" ]; then
    answer true success stop_sequence 0 'Not logged in · Please run /login'; exit 1
fi
if [ -e "$here/limited" ]; then
    rm "$here/limited"
    answer true success stop_sequence 0 "You've hit your session limit · resets 3:45pm"; exit 1
fi
if [ -e "$here/out-of-turns" ]; then
    answer true error_max_turns tool_use 0.5 ''; exit 1
fi
if [ -e "$here/refuses" ] && [ "${task#*Since then}" = "$task" ]; then
    answer false success refusal 0.01 'I will not do that.'; exit 0
fi
[ ! -e "$here/leaves-a-server" ] || sleep 600 &
case " $* " in
*' --permission-mode acceptEdits '*)
    echo "edited${resumed:+ again}" > "${PWD##*/}.txt"
    said='I edited the file.'
    ;;
*) said='I may not edit files.' ;;
esac
[ ! -e "$here/says" ] || said=$(cat "$here/says")
case $task in *'cannot be taken in'*)
    [ ! -e "$here/breaks" ] || { answer true success stop_sequence 0 'API Error: 500'; exit 1; }
    [ ! -e "$here/mends" ] || said=$(cat "$here/mends")
    ;;
esac
answer false success end_turn 0.25 "$said"
"""


class Stub:
    """The agent `claude` in a folder that can stand on PATH."""

    def __init__(self, folder: Path, says: str | None = None) -> None:
        """`says` is its final message, without quotes, instead of its own."""
        folder.mkdir()
        self.folder = folder
        program = folder / "claude"
        program.write_text(_CLAUDE)
        program.chmod(0o755)
        if says is not None:
            (folder / "says").write_text(says)

    @property
    def path(self) -> str:
        """A PATH on which it is found first."""
        return f"{self.folder}{os.pathsep}{os.environ['PATH']}"

    def meets(self, *what: str) -> None:
        """From now on: `limited` (once), `logged-out`, `out-of-turns`, `refuses`,
        `leaves-a-server` that has the agent's output open, `forgetful` (of its sessions),
        `breaks` (when it is asked once more)."""
        for name in what:
            (self.folder / name).touch()

    def recovers(self) -> None:
        """Nothing is in its way any more."""
        for name in ("limited", "logged-out", "out-of-turns", "refuses"):
            (self.folder / name).unlink(missing_ok=True)

    def mends(self, text: str) -> None:
        """What it answers instead, once it is asked to put its answer right."""
        (self.folder / "mends").write_text(text)

    def says(self, text: str) -> None:
        """What it answers from now on."""
        (self.folder / "says").write_text(text)

    def heard(self, session: str) -> str:
        """All that it was told in a session."""
        return (self.folder / "sessions" / session).read_text()

    @property
    def calls(self) -> list[str]:
        """The arguments of each call."""
        file = self.folder / "called"
        return file.read_text().splitlines() if file.exists() else []
