"""`orch council tally`."""

import click

from inbox_orch.shared.shell.blocks import Block, Sentence, Table
from inbox_orch.shared.shell.commandline import Number, Verb, shell_of

from ...council.count import Counted, shortfall
from ...council.settling import find_group
from ..parts.council_base import chosen_council, council_blocks, in_words, one_council

REVISION = Number(1, 1_000_000, whole=True)


@click.command(
    "tally",
    cls=Verb,
    agent=True,
    examples=("orch council tally --json", "orch council tally --explain ada/wal"),
)
@one_council
@click.option("--explain", metavar="GROUP", help="Why this group is one: every merge, its score.")
@click.option("--no-overrides", is_flag=True, help="As it was before anything was settled.")
@click.option("--revision", type=REVISION, metavar="N", help="An earlier revision.")
@click.pass_context
def command(
    context: click.Context,
    council_name: str | None,
    explain: str | None,
    no_overrides: bool,
    revision: int | None,
) -> None:
    """Print what the replies come to: consensus, majority, minority, contested.

    Counted against the declared seats: a missing one never makes an agreement larger. Exit 0
    only when every seat is valid; 11 when not, with the whole result; 8 while the round is open.
    """
    scheduler, run = chosen_council(context, council_name, shows=True)
    counted = scheduler.tally_of(run, overrides=not no_overrides, revision=revision)
    data = counted.as_json() | {"explained": None}
    blocks = _blocks(counted)
    output = shell_of(context).output
    if explain is not None:
        group = find_group(counted.tally, explain)
        data["explained"] = group.as_json()
        whole = counted.tally.whole_words() if output.terminal else {}
        rows = tuple(
            (*merge.items, merge.rule, merge.score, in_words(merge.shared, whole))
            for merge in group.merges
        )
        headings = ("ITEM", "ITEM", "RULE", "SCORE", "SHARED")
        blocks = [
            Sentence(f"{group.id}: {group.title}", (group.id, group.bucket, group.title)),
            Table(headings, rows, "one item, no merge", (0, 1), (4,)),
        ]
    error = shortfall(counted)
    if error is None:
        output.result(data, *blocks)
    else:
        error.data = data
        output.outcome(error, *blocks)


def _blocks(counted: Counted) -> list[Block]:
    tally = counted.tally
    groups = tuple(
        (
            f"G{number}",
            group.bucket or "item",
            "contested" if group.contested else "",
            group.title,
            group.raised_by,
            group.endorsed_by,
            group.id,
        )
        for number, group in enumerate(tally.groups, start=1)
    )
    blocks: list[Block] = [
        *council_blocks(counted.view),
        *(Sentence(banner, ("banner", banner)) for banner in tally.banners),
        Table(
            ("GROUP", "BUCKET", "", "TITLE", "RAISED BY", "ENDORSED BY", "ITEM"),
            groups,
            "no recommendations",
            fixed=(0, 1),
            folded=(3,),
            sparse=(2, 5),
        ),
    ]
    for decision in tally.decisions:
        votes = ", ".join(f"{choice} {len(who)}" for choice, who in decision.choices.items())
        text = f"{decision.decision.id} {decision.decision.question} {votes}"
        counts = (f"{choice}={len(who)}" for choice, who in decision.choices.items())
        values = (decision.decision.id, *counts)
        blocks.append(Sentence(text, values))
    if tally.possible_duplicates:
        number = len(tally.possible_duplicates)
        pairs = "1 pair" if number == 1 else f"{number} pairs"
        text = f"{pairs} may be one recommendation: `orch council suggest` tells which"
        blocks.append(Sentence(text, ("possible_duplicates", number)))
    return blocks
