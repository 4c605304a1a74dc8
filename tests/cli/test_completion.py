"""Completion in real shells: commands, options, and the names that are in the database."""

import os
import pty
import select
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from inbox_orch.shared.shell.completion import SHELLS
from sqlite import outside
from support.commands import command_path, locked_by_another, run
from support.orch_matrix import Enterprise
from support.terminals import Viewed
from support.timing import PATIENCE_SECONDS

# Each prints one candidate a line for the words after its name, as its shell would offer them.
SCRIPTS = {
    "bash": """
        eval "$(cat {completion})"
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _{program}_completion {program}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """,
    # The widget's own builtins work only while a line is edited; they are given others here.
    "zsh": """
        compdef() {{ }}
        _describe() {{ local each; for each in ${{(P)3}}; do print -r -- ${{each//\\\\:/:}}; done }}
        compadd() {{ local name=$argv[-1]; print -rl -- ${{(P)name}} }}
        eval "$(cat {completion})"
        words=("$@"); CURRENT=$#
        _{program}_completion
    """,
    "fish": """
        cat {completion} | source
        complete -C (string join ' ' -- $argv)
    """,
}
NAMED = pytest.mark.parametrize("shell", SHELLS)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Enterprise:
    """Threads in several states, a run with two tasks, one of which has an attempt."""
    made = Enterprise(tmp_path_factory.mktemp("completion") / "project")
    made.tasks("lexer", "parser")
    with made.scheduler() as scheduler:
        scheduler.dispatch(scheduler.run(None))
    return made


def offered(project: Enterprise, shell: str, typed: str, **environment: str) -> list[str]:
    """The names that a shell offers for a line that ends where the cursor is."""
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    words = typed.split(" ")
    completion = project.folder.parent / f"{words[0]}.{shell}"
    if not completion.exists():
        completion.write_text(run("completion", shell, program=words[0]).text)
    script = SCRIPTS[shell].format(program=words[0], completion=completion)
    line = [found, "-c", script, *([shell] if shell != "fish" else []), *words]
    if shell == "zsh":
        line.insert(1, "-f")
    path = f"{Path(command_path()).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        line,
        cwd=project.folder,
        env={**os.environ, "PATH": path, "HOME": str(project.folder.parent), **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.stderr == "", done.stderr
    offers = [row.split("\t")[0] for row in done.stdout.splitlines() if row]
    # zsh has the description behind a colon; no name here has one, but for `task:`.
    return [o if shell != "zsh" or "task:" in o else o.split(":")[0] for o in offers]


@NAMED
@pytest.mark.parametrize("typed, expected", [
    ("inbox wait", ["wait-reply"]),
    ("inbox skill ", ["print", "install"]),
    ("inbox help exit", ["exit-codes"]),
    ("inbox schema hook s", ["session-start", "stop"]),
    ("inbox list --state pen", ["pending"]),
    ("inbox claim --mailbox wor", ["workers"]),
    ("inbox send --to w", ["workers"]),
    ("inbox fetch --agent lea", ["leader"]),
    ("orch status --run ", ["RUN"]),
    ("orch status ", ["RUN"]),
    ("orch run close ", ["RUN"]),
    ("orch task show ", ["lexer", "parser"]),
    ("orch task add --depends-on pa", ["parser"]),
    ("orch dispatch lexer pa", ["parser"]),
    ("orch dispatch lexer le", []),
    ("orch attempt show lexer/", ["lexer/1"]),
    ("orch wait --until task:p", ["task:parser"]),
    ("orch drive --to wo", ["workers"]),
])  # fmt: skip
def test_names_are_offered(project: Enterprise, shell: str, typed: str, expected: list[str]):
    with project.scheduler() as scheduler:
        expected = [scheduler.run(None).name if name == "RUN" else name for name in expected]
    found = offered(project, shell, typed)
    if typed.startswith("orch wait") and shell == "zsh":
        found = [name.rsplit(":", 2)[0] if name.count(":") > 1 else name for name in found]
    assert sorted(found) == sorted(expected)


@NAMED
def test_threads_are_offered_where_something_can_be_done_with_them(tmp_path: Path, shell: str):
    project = Enterprise(tmp_path / "project")
    pending, sealed = project.send("A subject"), project.send(sealed=True)
    held = project.claim().thread

    assert offered(project, shell, "inbox claim ") == [pending]
    assert offered(project, shell, "inbox done ") == [held]
    assert set(offered(project, shell, "inbox show ")) == {pending, held}
    assert offered(project, shell, f"inbox show {pending[:25].lower()}") in ([], [pending])
    assert sealed in offered(project, shell, "inbox show ", INBOX_AGENT="leader")


EDITORS = {
    "bash": (["--norc", "-i"], 'PS1="> "'),
    "zsh": (["-f", "-i"], 'PS1="> "; autoload -U compinit; compinit -u -D'),
}


def typed_at(shell: str, folder: Path, keys: bytes, awaited: bytes) -> bytes:
    """What a shell with a line editor shows after these keys, up to what is awaited."""
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    options, begin = EDITORS[shell]
    path = f"{Path(command_path()).parent}{os.pathsep}{os.environ['PATH']}"
    terminal, inside = pty.openpty()
    process = subprocess.Popen(
        [found, *options],
        cwd=folder,
        env={**os.environ, "PATH": path, "TERM": "xterm", "HOME": str(folder)},
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
    )
    os.close(inside)
    try:
        load = f'{begin}; eval "$(inbox completion {shell})"; echo rea""dy\n'
        os.write(terminal, load.encode())
        _read_until(terminal, b"ready")
        os.write(terminal, keys)
        return _read_until(terminal, awaited)
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def _read_until(terminal: int, awaited: bytes) -> bytes:
    shown, end = b"", time.monotonic() + PATIENCE_SECONDS
    while awaited not in shown:
        left = end - time.monotonic()
        assert left > 0, shown
        assert select.select([terminal], [], [], left)[0], shown
        shown += os.read(terminal, 65536)
    return shown


@pytest.mark.parametrize("shell", EDITORS)
def test_a_key_completes_a_name_while_a_line_is_edited(project: Enterprise, shell: str):
    shown = typed_at(shell, project.folder, b"inbox claim --mailbox wor\t", b"workers")

    assert b"rror" not in shown


def test_a_key_completes_a_name_in_fish(project: Enterprise):
    found = shutil.which("fish")
    if found is None:
        pytest.skip("fish is not installed")
    path = f"{Path(command_path()).parent}{os.pathsep}{os.environ['PATH']}"
    prompt = 'function fish_prompt; echo -n "> "; end'
    line = [found, "--no-config", "--interactive", "--init-command", prompt]
    # Unlike the other two it wants a terminal that is its own.
    fish = Viewed(*line, folder=project.folder, PATH=path, HOME=str(project.folder))
    try:
        fish.until(lambda _: "> " in fish.sent)
        fish.type('inbox completion fish | source; echo rea""dy\n')
        fish.until(lambda _: "ready" in fish.sent)
        before = len(fish.sent)
        fish.type("inbox claim --mailbox wor\t")
        fish.until(lambda _: "kers" in fish.sent[before:])
        assert "rror" not in fish.sent[before:]
    finally:
        fish.close()


@pytest.mark.parametrize("trouble", ["none", "damaged", "newer", "locked"])
def test_completion_is_silent_in_any_trouble(tmp_path: Path, trouble: str):
    project = Enterprise(tmp_path / "project")
    typed, environment = "inbox claim ", {}
    if trouble == "none":
        environment["INBOX_DB"] = str(tmp_path / "nowhere.db")
    elif trouble == "damaged":
        damaged = tmp_path / "damaged.db"
        damaged.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
        environment["INBOX_DB"] = str(damaged)
    elif trouble == "newer":
        outside.written(project.path, "PRAGMA user_version = 9999")
    thread = project.send() if trouble == "locked" else None
    if thread is None:
        assert offered(project, "bash", typed, **environment) == []
    else:
        with locked_by_another(project.path):
            assert offered(project, "bash", typed) == [thread]


def test_names_that_would_drive_a_terminal_are_harmless(tmp_path: Path):
    project = Enterprise(tmp_path / "project")
    project.send("a \u202e \x9b31m subject")
    line = {"_INBOX_COMPLETE": "fish_complete", "COMP_WORDS": "inbox claim ", "COMP_CWORD": ""}

    said = project.run(**line).text

    assert "subject" in said
    assert not {"\u202e", "\x9b", "\x1b"} & set(said)


def test_a_file_is_left_to_the_shell(tmp_path: Path):
    project = Enterprise(tmp_path / "project")
    line = {
        "_INBOX_COMPLETE": "bash_complete",
        "COMP_WORDS": shlex.join(("inbox", "send", "--attach", "")),
        "COMP_CWORD": "3",
    }
    assert project.run(**line).text == "file,\n"
