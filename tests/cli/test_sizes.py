"""What an agent has to read: the bytes of each output on a fixed scene, as docs/agents.md gives
them. An agent pays for each of them, so that they must not grow unnoticed."""

import re
from pathlib import Path

import pytest

from support.orch_matrix import Enterprise, git
from support.runs import add_task, run_init

PAGE = Path(__file__).resolve().parents[2] / "docs" / "agents.md"
BODY = (
    "Tabs in the source are lost when the lexer meets a comment. Keep them, add a test that fails "
    "without the change, and commit both. Do not touch the parser; ask if its tests have to change."
)
WORKER = ("--agent", "w1", "--mailbox", "workers")
MOST_GROWTH = 1.2


def sizes(folder: Path) -> dict[str, tuple[int, int]]:
    """(bytes with --json, bytes of the text for a pipe) of each command."""
    project = Enterprise(folder)
    for number in range(10):
        project.send(f"Fix the lexer, part {number}", BODY)
    measured: dict[str, tuple[int, int]] = {}

    def measure(name: str, *arguments: str, program: str = "inbox", code: int = 0) -> None:
        run = project.run if program == "inbox" else project.orch
        as_json, as_text = run(*arguments, "--json"), run(*arguments)
        assert (as_json.code, as_text.code) == (code, code), (as_json, as_text)
        measured[name] = len(as_json.stdout), len(as_text.stdout + as_text.stderr)

    measure("fetch", "fetch", *WORKER, "--peek")
    measure("claim", "claim", *WORKER)
    held = project.claim(project.send("Fix the lexer, part 10", BODY))
    with project.bus("w1") as bus:
        bus.ask(held.thread, held.token, body="Which of the two?", options=["this", "that"])
    measure("list", "list", "--mailbox", "workers", "--limit", "10")
    measure("show", "show", held.thread)
    project.run("reply", held.thread, "--agent", "leader", "--body", "The second.")
    measure("wait-reply", "wait-reply", *held.arguments, "--after", "0")
    measure("done", "done", *held.arguments, "--body", "Done, with a test.")
    _a_run(project)
    measure("orch wait", "wait", "--wait", "20", "--after", "0", program="orch")
    measure("orch status", "status", program="orch")
    measure("prime", "prime", "--agent", "w1")
    measure("orch prime", "prime", program="orch")
    measure("skill print", "skill", "print")
    measure("orch skill print", "skill", "print", program="orch")
    return measured


def _a_run(project: Enterprise) -> None:
    """A run of five tasks, one of which asks."""
    git(project.folder, "commit", "--allow-empty", "--quiet", "-m", "More")
    with project.scheduler() as scheduler:
        run_init(
            scheduler,
            title="A run",
            repository=str(project.folder),
            worktree_root=str(project.state),
        )
        for key in ("lexer", "parser", "printer", "manual", "release"):
            add_task(
                scheduler, scheduler.run(None), key_name=key, title=f"Do the {key}", mailbox="pool"
            )
        item = scheduler.dispatch(scheduler.run(None)).items[0]
    with project.bus("w2") as bus:
        token = bus.claim(item["thread"], mailboxes=["pool"]).lease.token
        bus.ask(item["thread"], str(token), body="Which of the two?")


def table() -> dict[str, tuple[int, int]]:
    """The sizes that the page gives."""
    rows = re.findall(
        r"^\| `([a-z -]+)` \| ([\d,]+) \| ([\d,]+) \|", PAGE.read_text(), re.MULTILINE
    )
    return {name: (int(a.replace(",", "")), int(b.replace(",", ""))) for name, a, b in rows}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, int]]:
    return sizes(tmp_path_factory.mktemp("sizes") / "project")


def test_the_page_gives_the_size_of_every_output(measured):
    assert set(table()) == set(measured), measured


@pytest.mark.parametrize("name", sorted(table()))
def test_no_output_has_grown_by_a_fifth(name: str, measured):
    for now, stated in zip(measured[name], table()[name], strict=True):
        assert now <= stated * MOST_GROWTH, (name, measured[name])
        assert now >= stated / MOST_GROWTH / 1.2, "it has become much smaller: correct the page"
