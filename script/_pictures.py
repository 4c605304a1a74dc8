"""Makes docs/pictures/demo.svg, blueprint.svg, do.svg and drive.svg: what `orch` prints on a
terminal, in real runs.

Run through `script/pictures`. Draws nothing itself: rich turns the output into a picture. The frame
around it is ours, since rich's own fetches its font from a server when it is looked at.
"""

import fcntl
import io
import os
import pty
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "pictures"
LINES, COLUMNS = 40, 98
# What follows it (the commits, and what had to hold) would make the picture too high.
LAST_LINE = "Commits:"
DEMONSTRATIONS = {"demo": ("orch", "demo"), "blueprint": ("orch", "demo", "--blueprint")}
# How `orch drive` takes back a line that it has drawn: one up, and that one is erased.
TAKEN_BACK = "\x1b[F\x1b[2K"

AGENT = """\
#!/bin/sh
# Stands for a coding agent: reads its task, and leaves a file uncommitted.
set -eu
title=$(head -n 1)
sleep 1
printf '%s\\n' "$title" > "$(printf '%s' "$title" | tr -c 'a-z' '-').txt"
echo "I wrote it down."
"""
PLAN = """\
run: {title: A parser}
tasks:
  - {task: tokens, title: list the tokens}
  - {task: lexer, title: write the lexer, depends_on: [tokens]}
  - {task: parser, title: write the parser, depends_on: [tokens]}
  - {task: errors, title: name the errors}
  - {task: guide, title: explain it all, depends_on: [lexer, parser, errors]}
"""
# Each begins in a repository with one commit, and with an empty HOME.
PLAYED = {
    "do": ("orch do 'say hello' --check 'test -s say-hello.txt' -- ../agent.sh",),
    "drive": (
        "inbox init",
        "orch plan import ../plan.yaml --new-run",
        "orch drive --worker ../agent.sh --slots 3",
        "orch integrate --onto main",
    ),
}

FRAME = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<!-- Made by script/pictures from a real run. -->
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px;
  line-height: {line_height}px;
}}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, words in DEMONSTRATIONS.items():
        keep(name, shlex.join(words), shown_part(words, demonstration(words)))
    for name, commands in PLAYED.items():
        begun = time.monotonic()
        output = played(commands)
        keep(name, f"orch {name}", output)
        print(f"  played in {time.monotonic() - begun:.1f} s")


def keep(name: str, title: str, output: str) -> None:
    """Write one picture."""
    path = FOLDER / f"{name}.svg"
    path.write_text(picture(name, title, output), encoding="utf-8")
    print(path.relative_to(ROOT))


def demonstration(words: tuple[str, ...]) -> str:
    """What `orch demo` prints on a terminal of so many columns."""
    orch = Path(sys.executable).with_name(words[0])
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    done = subprocess.run(
        [str(orch), *words[1:]], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def shown_part(words: tuple[str, ...], output: str) -> str:
    """The beginning of the output, up to the table of tasks."""
    told, found, _ = output.partition(f"\n{LAST_LINE}\n")
    if not found:
        raise SystemExit(f"the demonstration did not print the line {LAST_LINE!r}")
    return f"$ {shlex.join(words)}\n{told.rstrip()}"


def played(commands: tuple[str, ...]) -> str:
    """What the commands leave on a terminal, one after another in a new repository."""
    with tempfile.TemporaryDirectory() as folder:
        repository, environment = ground(Path(folder))
        shown = []
        for command in commands:
            shown += [f"$ {command}", what_stays(on_terminal(command, repository, environment))]
    return "\n".join(shown)


def ground(folder: Path) -> tuple[Path, dict[str, str]]:
    """A repository with one commit, beside it the agent and the plan; and an environment in which
    nobody has set anything up."""
    repository, home = folder / "project", folder / "home"
    home.mkdir()
    (folder / "agent.sh").write_text(AGENT)
    (folder / "agent.sh").chmod(0o755)
    (folder / "plan.yaml").write_text(PLAN)
    path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"])
    environment = {"PATH": path, "HOME": str(home), "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    first = ("-c", "user.name=You", "-c", "user.email=you@example.invalid", "commit")
    for words in (
        ("init", "--quiet", "--initial-branch=main", str(repository)),
        ("-C", str(repository), *first, "--quiet", "--allow-empty", "--message=Begin"),
    ):
        subprocess.run(["git", *words], env=environment, check=True)
    return repository, environment


def on_terminal(command: str, folder: Path, environment: dict[str, str]) -> str:
    """Everything that a command writes to a terminal; ends this script when it fails."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    written = bytearray()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        while part := read(terminal):
            written += part
    if process.wait() != 0:
        raise SystemExit(f"`{command}` ended with {process.returncode}:\n{written.decode()}")
    return written.decode().replace("\r\n", "\n")


def read(terminal: io.FileIO) -> bytes:
    """What comes next; nothing once everybody has closed the other side, which Linux says by an
    error."""
    try:
        return terminal.read(65536) or b""
    except OSError:
        return b""


def what_stays(output: str) -> str:
    """The lines that are left when everything has been drawn."""
    stays, *later = output.split(TAKEN_BACK)
    for text in later:
        above, _, _ = stays.rpartition("\n")
        stays = above[: above.rfind("\n") + 1] + text
    return stays.rstrip("\n")


def picture(name: str, title: str, output: str) -> str:
    """The output as SVG that needs nothing from elsewhere."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(output))
    made = console.export_svg(title=title, theme=MONOKAI, code_format=FRAME, unique_id=name)
    return "\n".join(line.strip() for line in made.splitlines() if line.strip()) + "\n"


if __name__ == "__main__":
    main()
