"""The screens of a board as they are to be seen, in text: small, of today's and of yesterday's
sizes, with few tasks and with many, and an open question.

`WRITE_SCREENS=1` writes them anew into tests/data/board, to be looked at and committed.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from inbox_orch.orch.runs.model import Run
from support.runs import Site, add_task, commit
from support.screens import Here, play, press, seen

DATA = Path(__file__).parents[1] / "data" / "board"
SIZES = ((80, 24), (120, 40), (60, 16))
QUESTION = (
    "The old grammar has two forms of the semicolon, and 3 callers depend on the second one.\n\n"
    "Which one is to stay?"
)


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, tuple[Site, Run]]]:
    """A run with 3 tasks, and one with 200."""
    made = {number: Site(tmp_path_factory.mktemp(f"run{number}")) for number in (3, 200)}
    yield {number: (site, _filled(site, number)) for number, site in made.items()}
    for site in made.values():
        site.close()


def _filled(site: Site, number: int) -> Run:
    run = site.open_run(title="Move the callers to the new parser")
    titles = {"parser": "Write the parser", "lexer": "Write the lexer for the semicolon"}
    titles["manual"] = "Write the manual"
    titles |= {f"caller-{n:03}": f"Move caller number {n} to it" for n in range(4, number + 1)}
    for place, (key, title) in enumerate(titles.items()):
        after = ["parser"] if place > 20 else []
        add_task(site.scheduler, run, key_name=key, title=title, body="Do it.", depends_on=after)
    items = site.dispatch(run, *list(titles)[:8])
    anna, bob = site.office.bus("anna"), site.office.bus("bob")
    bob.claim(items["parser"]["thread"], mailboxes=["workers"])
    site.clock.advance(301)
    item = items["lexer"]
    held = item["thread"], str(anna.claim(item["thread"], mailboxes=["workers"]).lease.token)
    anna.update(*held, body="reading the grammar", progress=20)
    anna.ask(*held, body=QUESTION, options=["the new one", "both, with a warning"])
    site.clock.advance(150)  # no time that is shown is near the end of a minute
    item = items["parser"]
    claimed = anna.claim(item["thread"], mailboxes=["workers"], lease_seconds=330)
    token = str(claimed.lease.token)
    commit(item["worktree"], "src/parser.py", "line\n" * 40)
    anna.update(item["thread"], token, body="moving the callers: 12 of 30", progress=40)
    if number > 3:
        _ended(site, run, items)
    site.scheduler.reconcile(run)
    return run


def _ended(site: Site, run: Run, items: dict) -> None:
    site.deliver(items["caller-004"], "four.txt")
    site.fail(items["caller-005"], "its callers are generated", fatal=True)


async def at_rest(app, pilot, rows: int) -> list[str]:
    """What is to be seen once the screen has so many rows, and stays the same for three looks."""
    looks: list[list[str]] = []
    while len(looks) < 3 or len(looks[-1]) != rows or not looks[-3] == looks[-2] == looks[-1]:
        await pilot.pause()
        looks.append(seen(app))
    return looks[-1]


@pytest.mark.parametrize("tasks", [3, 200])
def test_a_board_looks_as_it_did(sites: dict[int, tuple[Site, Run]], tasks: int):
    site, run = sites[tasks]
    drawn: dict[str, list[str]] = {}

    async def playing(app, pilot):
        for columns, rows in SIZES:
            await pilot.resize_terminal(columns, rows)
            drawn[f"{tasks}-{columns}x{rows}"] = await at_rest(app, pilot, rows)
            if tasks == 3:
                await press(pilot, "a")
                drawn[f"answer-{columns}x{rows}"] = await at_rest(app, pilot, rows)
                await press(pilot, "escape", "enter")
                drawn[f"detail-{columns}x{rows}"] = await at_rest(app, pilot, rows)
                await press(pilot, "escape")

    play(Here(site.scheduler), run, playing, SIZES[0])

    for name, lines in drawn.items():
        path = DATA / f"{name}.txt"
        if os.environ.get("WRITE_SCREENS"):
            path.write_text("\n".join(lines) + "\n")
        assert lines == path.read_text().splitlines(), name
        assert len(lines) == int(name.rpartition("x")[2])
