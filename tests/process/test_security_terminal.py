"""Nothing that anybody wrote drives the terminal of whoever reads it: titles, bodies, names of
files and branches, what git and commands say, the texts of a council."""

import json
import os
import re
from pathlib import Path

import pytest

from support.orch_matrix import Enterprise, the_run
from support.runs import add_task, commit, git
from support.terminals import SGR, show

# A clear screen, a title, a link, a clipboard write, a reversal, markup, a carriage return.
NASTY = (
    "[red]x[/red] \x1b[2J \x1b]0;t\x07 \x1b]8;;http://e\x1b\\l\x1b]8;;\x1b\\"
    " \x1b]52;c;eA==\x07 \u202e \x9b31m \x08\r [/] \u2066 \u061c \u2028"
)
# Where control characters are refused, the rest is not.
LINE = "[red]x[/red] [link=http://e]l[/link] :smile: \u202e \u2066 \u061c [/]"
BRANCH = "side-\u202e\x9b\u2066-]red"
PLACING = re.compile(r"\x1b\[F\x1b\[2K")
DRIVING = {*"\x1b\x07\x08\x9b\r\u202e\u2066\u061c\u2028\x85"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory):
    """Runs in which everything has been said that one can say."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        for role in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{role}_NAME", "Tester")
            patch.setenv(f"GIT_{role}_EMAIL", "tester@example.invalid")
        yield _filled(Enterprise(tmp_path_factory.mktemp("nasty") / "project"))


def _filled(project: Enterprise) -> Enterprise:
    git(project.folder, "branch", BRANCH)
    project.open_run()
    with project.scheduler() as scheduler:
        run = the_run(scheduler)
        for key in ("asks", "fails", "dirty", "checked", "waits", "one", "two"):
            add_task(
                scheduler,
                run,
                key_name=key,
                title=f"{LINE} {key}",
                body=NASTY,
                depends_on=["fails"] if key == "waits" else (),
                checks=["printf '%s' \"$NASTY\"; exit 1"] if key == "checked" else None,
                max_attempts=1,
            )
        items = {i["key"]: i for i in scheduler.dispatch(run, base=BRANCH).as_json()["items"]}
    for key, item in items.items():
        _worked(project, key, item)
    os.environ["NASTY"] = NASTY.replace("\0", "")
    try:
        with project.scheduler() as scheduler:
            scheduler.reconcile(the_run(scheduler))
            scheduler.integrate(the_run(scheduler))
    finally:
        del os.environ["NASTY"]
    return project


def _worked(project: Enterprise, key: str, item: dict) -> None:
    worktree = Path(item["worktree"])
    with project.bus("w1") as bus:
        held = (
            item["thread"],
            str(bus.claim(item["thread"], mailboxes=["workers"]).lease.token),
        )
        if key == "asks":
            bus.update(*held, body=NASTY, progress=5)
            bus.ask(*held, body=NASTY, options=[NASTY, LINE])
        elif key == "fails":
            bus.fail(*held, body=NASTY, fatal=True)
        else:
            name = {"one": "same", "two": "same"}.get(key, key)
            commit(worktree, f"\x1b[2J{name}\u202e\r", f"{key}\n")
            if key == "dirty":
                (worktree / "\x1b]0;t\x07\u202e").write_text("not committed")
            bus.done(*held, body=NASTY)


CALLS = {
    "run list": (),
    "run show": (),
    "status": (),
    "ready": (),
    "blocked": (),
    "graph": (),
    "graph --format mermaid": (),
    "graph --format dot": (),
    "graph --format svg": (),
    "timeline": (),
    "timeline --format svg": (),
    "critical-path": (),
    "attempt list": (),
    "attempt show asks": (),
    "attempt show fails": (),
    "attempt show dirty": (),
    "attempt show checked": (),
    "attempt show one": (),
    "attempt show two": (),
    "task show asks": (),
    "task show waits": (),
    "conflicts": (),
    "integrate --dry-run": (),
    "cleanup --dry-run": (),
    "plan export": (),
    "plan export --format json": (),
    "doctor --verify": (),
    "dispatch --dry-run": (),
    "drive --wait 0 --no-verify": (),
    "wait --wait 0 --after 0": (),
    "reconcile": (),
}


def calls(name: str) -> tuple[str, ...]:
    return tuple(name.split())


@pytest.mark.parametrize("name", CALLS)
def test_no_output_of_orch_drives_a_terminal(project: Enterprise, name: str):
    state = {"XDG_STATE_HOME": str(project.state)}
    piped = project.orch(*calls(name))
    assert piped.code in (0, 8, 9, 11), piped
    shown = show(*calls(name), folder=project.folder, program="orch", **state)

    assert DRIVING & set(piped.stdout.decode()) == set()
    assert DRIVING & set(piped.stderr.decode()) == set()
    # What `drive` keeps at the lower end of the terminal takes its own place again.
    assert DRIVING & set(PLACING.sub("", SGR.sub("", shown.text))) == set()
    assert DRIVING & set(shown.stderr) == set()
    # Markup is text: what looks like a tag is there to be read.
    if "[red]x[/red]" in piped.stdout.decode() and "graph" not in name:
        assert "[red]" in shown.plain


@pytest.mark.parametrize("name", ["status", "attempt show asks", "attempt show dirty", "blocked"])
def test_json_drives_no_terminal_and_says_the_same(project: Enterprise, name: str):
    line = (*calls(name), "--json")
    piped = project.orch(*line)
    shown = show(*line, folder=project.folder, program="orch", XDG_STATE_HOME=str(project.state))
    assert DRIVING & set(piped.stdout.decode() + shown.text) == set()
    assert json.loads(shown.text)["data"].keys() == piped.data.keys()


@pytest.mark.parametrize("more", [(), ("--mailbox", "workers")])
def test_an_artifact_is_printed_on_a_terminal_only_when_that_is_asked_for(
    tmp_path: Path, more: tuple[str, ...]
):
    own = Enterprise(tmp_path / "own")
    (own.folder / "art.txt").write_text(NASTY)
    with own.bus("leader") as bus:
        sent = bus.send(to="workers", subject="s", body="b", attach=[str(own.folder / "art.txt")])
    line = ("show", sent.thread.id, "--artifact", "art.txt", *more)

    shown = show(*line, folder=own.folder)
    assert (shown.code, shown.text) == (2, "")
    assert "--output FILE" in shown.stderr and "--output -" in shown.stderr
    assert own.run(*line).stdout == NASTY.encode()
    assert own.run(*line, FORCE_COLOR="1").stdout == NASTY.encode()
    assert "\x1b[2J" in show(*line, "--output", "-", folder=own.folder).text
    assert show(*line, "--json", folder=own.folder).code == 0


def test_what_claim_exports_drives_no_terminal(tmp_path: Path):
    own = Enterprise(tmp_path / "own \x1b[2J\u202e")
    for _ in range(2):
        own.send()
    line = ("claim", "--export", "--agent", "w1", "--mailbox", "workers")

    assert "\x1b[2J\u202e" in own.run(*line).text
    shown = show(*line, folder=own.folder)
    assert shown.code == 0 and "export INBOX_TOKEN=" in shown.text
    assert DRIVING & set(shown.text) == set()


def test_text_is_the_same_after_the_way_through_json(tmp_path: Path):
    own = Enterprise(tmp_path / "own")
    thread = own.send(body=NASTY)
    ended = own.json("show", thread)
    assert ended.data["messages"][0]["body"] == NASTY
    assert DRIVING & set(ended.stdout.decode()) == set()


def test_what_git_says_drives_no_terminal(project: Enterprise, tmp_path: Path):
    """A filter's complaint is part of the error that is stored and shown."""
    own = Enterprise(tmp_path / "own")
    commit(own.folder, ".gitattributes", "*.txt filter=loud\n")
    commit(own.folder, "a.txt", "text\n")
    (tmp_path / "said").write_text(NASTY)
    git(own.folder, "config", "filter.loud.smudge", f"cat '{tmp_path / 'said'}' >&2; exit 1")
    git(own.folder, "config", "filter.loud.clean", "cat")
    git(own.folder, "config", "filter.loud.required", "true")
    own.tasks("a")
    for line in (("dispatch",), ("attempt", "show", "a"), ("status",)):
        piped = own.orch(*line)
        shown = show(
            *line, folder=own.folder, program="orch", XDG_STATE_HOME=str(own.state), columns=300
        )
        assert DRIVING & set((piped.stdout + piped.stderr).decode()) == set(), line
        assert DRIVING & set(SGR.sub("", shown.text) + shown.stderr) == set(), line


@pytest.mark.parametrize(
    "line",
    [
        ("run", "show", "--run", NASTY),
        ("task", "show", NASTY),
        ("run", "init", "--title", "T", "--base", NASTY),
        ("integrate", "--onto", NASTY),
        ("plan", "import", NASTY),
        ("run", "init", "--title", "T", "--repo", NASTY),
        ("run", "init", "--title", "T", "--config", NASTY),
        ("run", "init", "--title", NASTY),
        ("attempt", "restore", NASTY),
        ("attempt", "restore", "fails/1", "--into", NASTY),
        (NASTY,),
    ],
    ids=lambda line: " ".join(word for word in line if word != NASTY) or "command",
)
def test_an_error_of_orch_drives_no_terminal(project: Enterprise, line: tuple[str, ...]):
    piped = project.orch(*line)
    shown = show(*line, folder=project.folder, program="orch", XDG_STATE_HOME=str(project.state))
    assert piped.code != 0 and piped.code != 1
    assert DRIVING & set((piped.stdout + piped.stderr).decode()) == set()
    assert DRIVING & set(shown.text + shown.stderr) == set()


@pytest.fixture(scope="module")
def council(tmp_path_factory: pytest.TempPathFactory) -> Enterprise:
    """A council whose brief and replies try everything."""
    project = Enterprise(tmp_path_factory.mktemp("council") / "project")
    brief = project.folder / "brief.md"
    brief.write_text(f"# {LINE}\n\n## S1 One\n{NASTY}\n<script>alert(1)</script>\n")
    started = project.orch(
        *("council", "start", "--brief-file", str(brief), "--json"),
        *("--reviewers", "ada,bob"),
        *("--decision", "D1=[red]Which[/red] store?:yes|no"),
    )
    about = started.data["council"]
    for name in ("ada", "bob"):
        with project.bus(name) as bus:
            claimed = bus.claim()
            held = (claimed.thread.id, str(claimed.lease.token))
            recommendation = {
                "id": "wal",
                "title": f"{LINE} {name}",
                "proposal": NASTY.replace("\0", ""),
                "rationale": NASTY,
                "keywords": ["wal", "[red]"],
                "stance": "do" if name == "ada" else "avoid",
                "about": "S1",
            }
            value = {
                "schema": "orch.council.reply/1",
                "council_id": about["id"],
                "round": 1,
                "brief_sha256": about["brief_sha256"],
                "checked": [NASTY],
                "decisions": [{"decision": "D1", "choice": "yes", "why": NASTY}],
                "recommendations": [recommendation],
                "strengths": [NASTY],
                "questions": [NASTY],
                "verdict": "approve_with_changes",
            }
            bus.done(*held, payload=json.dumps(value))
    return project


@pytest.mark.parametrize(
    "line",
    [
        ("council", "list"),
        ("council", "show"),
        ("council", "tally"),
        ("council", "report"),
        ("council", "report", "--format", "json"),
        ("council", "suggest"),
        ("status",),
        ("blocked",),
        ("task", "show", "ada-1"),
    ],
    ids=" ".join,
)
def test_no_text_of_a_council_drives_a_terminal(council: Enterprise, line: tuple[str, ...]):
    piped = council.orch(*line)
    assert piped.code in (0, 3, 8, 11), piped
    shown = show(*line, folder=council.folder, program="orch", XDG_STATE_HOME=str(council.state))
    assert DRIVING & set((piped.stdout + piped.stderr).decode()) == set()
    assert DRIVING & set(SGR.sub("", shown.text) + shown.stderr) == set()
